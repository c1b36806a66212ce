"""onnx's reference evaluator with our definitions of the operators that it mistakes.

onnx.reference (https://onnx.ai/onnx/api/reference.html) is the second opinion on wrong results, and the judge of
instances and neighbours of ONNX nodes. Where it ignores an attribute or computes another version of an operator, its
results would accuse compilers that are right. It takes implementations of operators in place of its own.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import onnx
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from onnx.reference.ops import load_op

from miscompile.ops.definitions.evaluated_call import Definition, EvaluatedCall
from miscompile.ops.definitions.loop import Loop
from miscompile.ops.definitions.table import DEFINITIONS


class _Defined(OpRun):  # type: ignore[misc]  # onnx's classes have no types
    """An operator of the evaluator that a definition computes."""

    op_domain = ""
    definition: ClassVar[Definition]
    onnx_node: onnx.NodeProto
    run_params: Mapping[str, Any]

    def _run(self, *operands: Any, **attributes: Any) -> Any:  # noqa: ANN401 - onnx's values
        names = {attribute.name for attribute in self.onnx_node.attribute}
        own = {name: value for name, value in attributes.items() if name in names}
        named = tuple(map(bool, self.onnx_node.output))
        opset = self.run_params["opsets"][self.op_domain]
        found = type(self).definition(EvaluatedCall(tuple(operands), own, opset, named))
        return self._left(operands, own, opset) if found is None else tuple(found)

    def _check_and_fix_outputs(self, results: Any) -> Any:  # noqa: ANN401 - onnx's values
        """Return results for what has a name alone: the evaluator takes one without for each operand that is left
        out."""
        checked = super()._check_and_fix_outputs(results)
        return tuple(one if name else None for name, one in zip(self.onnx_node.output, checked, strict=False))

    def _left(self, operands: tuple[Any, ...], own: Mapping[str, Any], opset: int) -> Any:  # noqa: ANN401
        """Return the results of onnx's own implementation. Raises whatever it raises."""
        node = onnx.helper.make_node(self.onnx_node.op_type, self.onnx_node.input, self.onnx_node.output, **own)
        return load_op(self.op_domain, node.op_type, opset)(node, self.run_params).run(*operands)


def _defined(name: str, definition: Definition) -> type[OpRun]:
    return type(name, (_Defined,), {"definition": staticmethod(definition)})


DEFINED: tuple[type[OpRun], ...] = (*(_defined(name, definition) for name, definition in DEFINITIONS.items()), Loop)
"""The classes that the evaluator takes in place of its own."""


class DefinedEvaluator(ReferenceEvaluator):  # type: ignore[misc]
    """onnx's evaluator with our definitions, in place of which it takes the `new_ops` of the same name.

    It makes further evaluators of its own class for functions and bodies, which so have the definitions as well.
    """

    def __init__(self, proto: Any, *given: Any, new_ops: Any = None, **named: Any) -> None:  # noqa: ANN401 - onnx's
        others = list(new_ops or ())
        taken = {other.__name__ for other in others}
        defined = (one for one in DEFINED if one.__name__ not in taken)
        super().__init__(proto, *given, new_ops=[*others, *defined], **named)


def evaluator(model: Any, *others: type[OpRun]) -> ReferenceEvaluator:  # noqa: ANN401 - whatever onnx's takes
    """Return an evaluator of `model` with our definitions, in place of which it takes the `others` of the same name.

    Raises what onnx raises.
    """
    return DefinedEvaluator(model, new_ops=others)
