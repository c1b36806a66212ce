"""Checks that an If, Loop or Scan can be lowered: array frameworks require types that do not change.

ONNX allows branches of an If with different shapes, and a Loop that changes the shape of a carried value. The
control flow of array frameworks allows neither, and an error during tracing would look like a bug of the compiler.
Such nodes are therefore refused, according to the statically known types.
Sources: https://onnx.ai/onnx/operators/onnx__If.html, onnx__Loop.html, onnx__Scan.html
"""

from collections.abc import Sequence
from dataclasses import replace

from miscompile.graph.bodies import CONTROL, Typing, constant_turns
from miscompile.graph.model import Node, TensorType, ValueType

_FIRST_SCAN = 9
"""The first opset in which Scan has no batch and no sequence lengths."""

ValueKinds = Sequence[ValueType | None]


def turns_of(node: Node, place: Typing) -> int | None:
    """Return the number of iterations of a Loop if it is known and positive; None otherwise and for other operators."""
    if node.op != "Loop":
        return None
    (body,) = node.subgraphs()
    body = replace(body, initializers={**place.constants, **body.initializers})  # its condition may be an outer value
    turns = constant_turns(node, body, place.constants)
    return turns if turns is not None and turns > 0 else None


def refusal(node: Node, place: Typing) -> str:
    """Return why a node with bodies has no lowering; an empty text if it may have one.

    `place` is the typing at the node. Every result of a body must have a type that is the same for all inputs, and
    stacked results require a known number of iterations.
    """
    if node.op not in CONTROL:
        return f"operator {node.op} has no lowering"
    bodies, inside = list(node.subgraphs()), list(place.bodies(node))
    kinds = [
        [_sharpest(typing.types.get(info.name), info.type) for info in body.outputs]
        for body, typing in zip(bodies, inside, strict=True)
    ]
    if node.op == "If":
        return "" if _same(*kinds) else "an If whose branches differ in shape has no lowering"
    given = [_sharpest(inside[0].types.get(info.name), info.type) for info in bodies[0].inputs]
    return _of_loop(node, place, given, kinds[0]) if node.op == "Loop" else _of_scan(node, place, given, kinds[0])


def _of_loop(node: Node, place: Typing, given: ValueKinds, kinds: ValueKinds) -> str:
    starts = [place.types.get(name) for name in node.inputs[2:]]
    rows = kinds[1 + len(starts) :]
    if list(given[:2]) != [TensorType("int64", ()), TensorType("bool", ())]:
        return "a Loop whose turn or condition is no scalar has no lowering"
    if not _same(starts, given[2:]) or not _same(starts, kinds[1 : 1 + len(starts)]):
        return "a Loop whose states may change in shape has no lowering"
    if rows and turns_of(node, place) is None:
        return "a Loop that gives results of every turn has a lowering for a constant number of turns only"
    return "" if all(map(_fixed, rows)) else "a Loop whose turns may give results of different shapes has no lowering"


def _of_scan(node: Node, place: Typing, given: ValueKinds, kinds: ValueKinds) -> str:
    if place.opset < _FIRST_SCAN:
        return "a Scan with a batch has no lowering"
    states = len(node.inputs) - int(node.attributes["num_scan_inputs"].value)
    starts = [place.types.get(name) for name in node.inputs[:states]]
    if not _same(starts, given[:states]) or not _same(starts, kinds[:states]):
        return "a Scan whose states may change in shape has no lowering"
    scanned = [place.types.get(name) for name in node.inputs[states:]]
    if any(not isinstance(kind, TensorType) or not kind.shape or 0 in kind.shape for kind in scanned):
        return "a Scan over no elements has no lowering"
    fixed = all(map(_fixed, kinds[states:]))
    return "" if fixed else "a Scan whose turns may give results of different shapes has no lowering"


def _same(ones: ValueKinds, others: ValueKinds) -> bool:
    """Tell whether all pairs of types are provably equal."""
    pairs = zip(ones, others, strict=False)
    return len(ones) == len(others) and all(one == other and _fixed(one) for one, other in pairs)


def _sharpest(inferred: ValueType | None, declared: ValueType | None) -> ValueType | None:
    """Return the type of a value: the declared one if inference finds less."""
    return inferred if declared is None or _fixed(inferred) else declared


def _fixed(kind: ValueType | None) -> bool:
    """Tell whether a type is that of a tensor whose sizes are all numbers or names."""
    return isinstance(kind, TensorType) and kind.shape is not None and None not in kind.shape
