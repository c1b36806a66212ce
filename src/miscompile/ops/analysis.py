"""Which outputs of an arbitrary model are exact: the facts of every value, worked out from the fed tensors.

The generator knows this for what it made; reduction and `check` ask it of models that came another way.
"""

import math
from collections.abc import Mapping

from miscompile.base.errors import ModelError, RejectedDraft
from miscompile.core.tensor import Tensor
from miscompile.graph.infer import infer
from miscompile.graph.model import Model, Node, TensorType, ValueType
from miscompile.ops.facts import Facts, measure, settle
from miscompile.ops.registry import specs
from miscompile.ops.spec import Call, Operand
from miscompile.ops.wellformed import well_formed

_UNKNOWN = Facts(-math.inf, math.inf)
_STRUCTURAL_SIZE = 64


def exact_outputs(model: Model, feed: Mapping[str, Tensor]) -> frozenset[str]:
    """Return the names of the outputs of `model` on which every correct implementation agrees to the bit.

    `feed` holds the inputs by name. Operators without a spec, bodies and local functions make their results inexact.
    """
    operands = analyse(model, feed)
    return frozenset(
        info.name for info in model.graph.outputs if info.name in operands and operands[info.name].facts.exact
    )


def require_well_formed(model: Model, operands: Mapping[str, Operand]) -> None:
    """Raise RejectedDraft when a node of the main graph breaks a rule of its operator's page that inference lets pass.

    `operands` come from `analyse`. Nodes with others pass, as those of foreign domains do.
    """
    for node in model.graph.nodes:
        if node.domain or any(name and name not in operands for name in node.inputs):
            continue
        inputs = tuple(operands[name] if name else None for name in node.inputs)
        try:
            fine = well_formed(Call(node.op, inputs, node.attributes, len(node.outputs)))
        except (AssertionError, IndexError):
            continue  # an operand is missing: that is for the checker to say
        if not fine:
            raise RejectedDraft(f"{node.op} breaks a rule of its operator")


def analyse(model: Model, feed: Mapping[str, Tensor]) -> dict[str, Operand]:
    """Return an operand with facts for every value of the main graph whose type can be inferred."""
    operands = {name: _known(name, value) for name, value in [*model.graph.initializers.items(), *feed.items()]}
    local = {(function.domain, function.name) for function in model.functions}
    for node in model.graph.nodes:
        if node.op == "Constant" and "value" in node.attributes:
            operands[node.outputs[0]] = _known(node.outputs[0], node.attributes["value"].value)
            continue
        if all(name in operands for name in node.inputs if name) and (node.domain, node.op) not in local:
            operands.update(_results(node, operands, model.opset))
    return operands


def _known(name: str, value: Tensor) -> Operand:
    return Operand(name, value.dtype, value.shape, measure(value), value.array)


def _results(node: Node, operands: Mapping[str, Operand], opset: int) -> dict[str, Operand]:
    inputs = tuple(operands[name] if name else None for name in node.inputs)
    present = [operand for operand in inputs if operand is not None]
    types: dict[str, ValueType] = {operand.name: TensorType(operand.dtype, operand.shape) for operand in present}
    known = {
        operand.name: Tensor(operand.dtype, operand.value)
        for operand in present
        if operand.value is not None and operand.value.size <= _STRUCTURAL_SIZE
    }
    try:
        kinds = infer(node, types, opset, known)
    except ModelError:
        return {}
    sized = [kind if isinstance(kind, TensorType) and _static(kind) else None for kind in kinds]
    if None in sized:
        return {}
    results = tuple(kind for kind in sized if kind is not None)
    facts = _facts(Call(node.op, inputs, node.attributes, len(results), node.domain), results)
    return {
        name: Operand(name, kind.dtype, kind.shape, fact)  # type: ignore[arg-type]
        for name, kind, fact in zip(node.outputs, results, facts, strict=True)
        if name
    }


def _static(kind: TensorType) -> bool:
    return kind.shape is not None and all(isinstance(size, int) for size in kind.shape)


def _facts(call: Call, types: tuple[TensorType, ...]) -> tuple[Facts, ...]:
    spec = specs().get(call.op)
    unknown = tuple(_UNKNOWN for _ in types)
    if spec is None or call.domain or any(attribute.kind == "ref" for attribute in call.attributes.values()):
        return unknown
    inputs = tuple(operand.facts for operand in call.inputs if operand is not None)
    try:
        if not spec.defined(call):
            return unknown
        return tuple(
            settle(kind.dtype, bound, spec.exactness_of(call), inputs)
            for kind, bound in zip(types, spec.bounds(call, types), strict=True)
        )
    except (RejectedDraft, ArithmeticError, ValueError, AssertionError, IndexError):
        return unknown  # the model is not one that the sampler would have made, so nothing is claimed of it
