"""The function bodies in onnx's schemas: definitions of operators by other operators.

Source: https://onnx.ai/onnx/intro/concepts.html#functions, and the pages of the operators ("function body").
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache

import onnx
from onnx import defs

from miscompile.base.errors import RejectedDraft
from miscompile.graph.edges import reads
from miscompile.graph.emit import node_proto, type_proto
from miscompile.graph.model import Attribute, Function, Node, ValueType
from miscompile.graph.read import read
from miscompile.ops.registry import schema, version_of

_WIDENED: Mapping[str, int] = {
    "Add": 7, "Cast": 9, "CastLike": 15, "Ceil": 6, "Constant": 11, "ConstantOfShape": 9, "Cos": 7, "Div": 7,
    "Elu": 6, "Equal": 11, "Flatten": 11, "Greater": 9, "HardSigmoid": 6, "Identity": 1, "If": 11, "Less": 9,
    "Loop": 11, "Mul": 7, "NegativeLogLikelihoodLoss": 13, "Pad": 18, "Pow": 13, "ReduceMax": 18, "ReduceMin": 18,
    "Relu": 6, "Reshape": 13, "Round": 11, "Shape": 13, "Size": 13, "Softplus": 1, "Squeeze": 13, "Sub": 7,
    "Transpose": 1, "Unsqueeze": 13, "Where": 9,
}  # fmt: skip
"""Operators, and the version from which newer ones only add types, or attributes whose defaults keep the old meaning
(compared page by page, up to opset 28).
"""


def has_body(op: str, opset: int) -> bool:
    """Tell whether the standard operator `op` has a body in `opset`, whether or not its types are known."""
    return _version(op, opset) is not None


def body_of(node: Node, opset: int, types: Mapping[str, ValueType]) -> tuple[Function, Node]:
    """Return a function equivalent to `node`, a standard operator, and the call that replaces the node.

    The function is named after the operator, without a domain, and has the operands and results of the node. Its nodes
    mean the same in `opset`. `types` gives the operands' types, which some bodies depend on. Raises RejectedDraft when
    there is no such body: onnx has none, it uses operators whose meaning has changed since, needs types that are not
    known, or reads an operand that the node omits.
    """
    version = _version(node.op, opset)
    if version is None:
        raise RejectedDraft(f"{node.op} has no body in opset {opset}")
    known = defs.get_schema(node.op, opset)
    function = _depending(node, opset, version, types) if _depends(known) else _fixed(node.op, opset, version)
    _check_versions(function.nodes, function.opsets.get("", version), opset)
    return _fitted(function, node, opset)


def _depends(known: "defs.OpSchema") -> bool:
    return not known.has_function


def _version(op: str, opset: int) -> int | None:
    """Return the newest opset, up to `opset`, for which a body of `op` was written."""
    known = schema(op, opset)
    if known is None or not (known.has_function or known.has_context_dependent_function):
        return None
    versions = known.context_dependent_function_opset_versions if _depends(known) else known.function_opset_versions
    return max((int(version) for version in versions if version <= opset), default=None)


@lru_cache(256)
def _fixed(op: str, opset: int, version: int) -> Function:
    return _read(defs.get_schema(op, opset).get_function_with_opset_version(version))


def _depending(node: Node, opset: int, version: int, types: Mapping[str, ValueType]) -> Function:
    kinds = []
    for name in node.inputs:
        if name and name not in types:
            raise RejectedDraft(f"the body of {node.op} depends on types that are not known")
        kinds.append(type_proto(types[name]).SerializeToString() if name else b"")
    known = defs.get_schema(node.op, opset)
    written = known.get_context_dependent_function_with_opset_version(
        version, node_proto(node).SerializeToString(), kinds
    )
    if not written:
        raise RejectedDraft(f"{node.op} has no body for these types and attributes")
    return _read(written)


def _read(written: bytes) -> Function:
    proto = onnx.ModelProto(ir_version=8, functions=[onnx.FunctionProto.FromString(written)])
    proto.graph.SetInParent()
    return read(proto).functions[0]


def _check_versions(nodes: Iterable[Node], written_for: int, opset: int) -> None:
    for node in nodes:
        before, now = version_of(node.op, written_for), version_of(node.op, opset)
        if node.domain in ("", "ai.onnx") and before != now and before < _WIDENED.get(node.op, opset):
            raise RejectedDraft(f"the body uses {node.op} of opset {written_for}, which means something else now")
        for body in node.subgraphs():
            _check_versions(body.nodes, written_for, opset)


def _fitted(function: Function, node: Node, opset: int) -> tuple[Function, Node]:
    """Return `function` with the operands, results and attributes of `node`, and the call of it."""
    if len(node.inputs) > len(function.inputs) or len(node.outputs) > len(function.outputs):
        raise RejectedDraft(f"{node.op} has more operands or results here than its body")
    operands = {formal: actual for formal, actual in zip(function.inputs, node.inputs, strict=False) if actual}
    results = {formal: actual for formal, actual in zip(function.outputs, node.outputs, strict=False) if actual}
    made = {name for inner in function.nodes for name in inner.outputs}
    if not made.issuperset(results):
        raise RejectedDraft(f"the body of {node.op} does not give all that is asked for")
    read_there = {name for inner in function.nodes for name in reads(inner)}
    if not read_there <= made | operands.keys():
        raise RejectedDraft(f"the body of {node.op} reads an operand that is left out")
    given = _given(node, opset, dict.fromkeys(_references(function.nodes)))
    fitted = replace(
        function,
        domain="",
        name=node.op,
        inputs=tuple(operands),
        outputs=tuple(results),
        nodes=tuple(_bound(inner, given) for inner in function.nodes),
        opsets={"": opset},
        attributes=tuple(given),
        defaults={},
        types={},
    )
    return fitted, Node(node.op, tuple(operands.values()), tuple(results.values()), given)


def _references(nodes: Iterable[Node]) -> Iterable[str]:
    """Yield the attributes of the function that `nodes` refer to."""
    for node in nodes:
        yield from (attribute.value for attribute in node.attributes.values() if attribute.kind == "ref")
        for body in node.subgraphs():
            yield from _references(body.nodes)


def _given(node: Node, opset: int, wanted: Iterable[str]) -> dict[str, Attribute]:
    """Return the values of the attributes `wanted` in `node`, or else their defaults, if any."""
    known = schema(node.op, opset)
    found: dict[str, Attribute] = {}
    for name in wanted:
        if name in node.attributes:
            found[name] = node.attributes[name]
        elif known is not None and name in known.attributes and known.attributes[name].default_value.type:
            found[name] = default_of(known.attributes[name].default_value)
    return found


def default_of(proto: onnx.AttributeProto) -> Attribute:
    """Return the default value of an attribute as schemas write it."""
    model = onnx.ModelProto(ir_version=8)
    model.graph.node.add(op_type="Holder").attribute.append(proto)
    ((_, attribute),) = read(model).graph.nodes[0].attributes.items()
    return attribute


def _bound(node: Node, given: Mapping[str, Attribute]) -> Node:
    """Return `node` without references to attributes that have no value, and with their kinds where it lacks them."""
    attributes = {
        name: replace(attribute, ref_kind=attribute.ref_kind or given[attribute.value].kind)
        if attribute.kind == "ref"
        else attribute
        for name, attribute in node.attributes.items()
        if attribute.kind != "ref" or attribute.value in given
    }
    return replace(node, attributes=attributes)
