"""Scan: slices of one or two values along any axis, forwards or backwards, with states kept within intervals.

Source: https://onnx.ai/onnx/operators/onnx__Scan.html
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from miscompile.base.errors import RejectedDraft
from miscompile.graph.attributes import PlainValue, attributes
from miscompile.graph.model import Graph, TensorType
from miscompile.ops.facts import Facts
from miscompile.ops.shapes import draw_shape
from miscompile.ops.spec import Operand
from miscompile.ops.values import choose_range
from miscompile.producers.control.body import BodyScope
from miscompile.producers.control.forms import Blocks
from miscompile.producers.control.shaping import distinct, invariant_of, kept_inside, mixed, result_of
from miscompile.producers.control.work import BodyFill, initial, open_body, some_results, still_exact, work
from miscompile.producers.scope import Scope, tensor_type

_MOST_LENGTH = 6
_MOST_STATES = 2
_MOST_SCANNED = 2
_LOOKS = 12
_LARGEST = 4096


class _Scanned(NamedTuple):
    """A value and the axis that is scanned."""

    operand: Operand
    axis: int

    @property
    def slice(self) -> tuple[int, ...]:
        """Shape of one slice."""
        shape = self.operand.shape
        return shape[: self.axis] + shape[self.axis + 1 :]


def scan(scope: Scope, blocks: Blocks, fill: BodyFill) -> tuple[Operand, ...]:
    """Plant a Scan and return its results. Raises RejectedDraft; roll the scope back then."""
    rng = scope.rng
    turned = blocks.has("Scan", "turned")
    scanned = _scanned(scope, blocks.dtypes["Scan"], turned=turned)
    length = scanned[0].operand.shape[scanned[0].axis]
    starts = [initial(scope, blocks.dtypes["Scan"]) for _ in range(int(rng.random() * (_MOST_STATES + 1)))]
    body = open_body(scope, "Scan", blocks)
    states = [body.parameter(x.dtype, x.shape, invariant_of(x, scope.style)) for x in starts]
    slices = [body.parameter(x.operand.dtype, x.slice, x.operand.facts) for x in scanned]
    work(body, fill)
    ends = [_next(body, state, slices) for state in states]
    rows = some_results(body, _MOST_SCANNED) if not ends or rng.random() < 0.8 else []
    rows = [x for x in rows if math.prod(x.shape) * length <= _LARGEST]
    if not ends and not rows:
        raise RejectedDraft("the scan has no result")
    results = distinct(body, [*ends, *rows])
    rows = results[len(ends) :]
    graph = body.close(results)
    given, axes = _attributes(scope, graph, scanned, rows, turned=turned)
    exact = still_exact(graph, [(x.name, end) for x, end in zip(states, results, strict=False)], rows)
    kinds: list[tuple[TensorType, Facts]] = [
        (tensor_type(x.dtype, x.shape), x.facts._replace(exact=x.facts.exact and exact[end.name]))
        for x, end in zip(states, results, strict=False)
    ]
    for row, axis in zip(rows, axes, strict=True):
        shape = (*row.shape[:axis], length, *row.shape[axis:])
        kinds.append((tensor_type(row.dtype, shape), row.facts._replace(exact=exact[row.name])))
    return scope.add_block("Scan", (*starts, *(x.operand for x in scanned)), attributes(given), kinds)


def _scanned(scope: Scope, taken: Sequence[str], *, turned: bool) -> list[_Scanned]:
    """Choose one or two values with an axis of the same length."""
    first = _find(scope, None, taken, turned=turned)
    if first is None:
        shape = draw_shape(scope.rng, scope.limits, (1, 4))
        shape = tuple(min(max(size, 1), _MOST_LENGTH) for size in shape)
        dtype = "float32" if "float32" in taken and scope.rng.random() < 0.4 else scope.rng.choice(taken)
        first = _Scanned(scope.new_input(dtype, shape, choose_range(dtype, scope.style)), 0)
    if scope.rng.random() < 0.5:
        return [first]
    length = first.operand.shape[first.axis]
    second = _find(scope, length, taken, turned=turned)
    if second is None:
        shape = (length, *first.slice[: int(scope.rng.random() * 3)])
        span = choose_range(first.operand.dtype, scope.style)
        second = _Scanned(scope.new_input(first.operand.dtype, shape, span), 0)
    return [first, second]


def _find(scope: Scope, length: int | None, taken: Sequence[str], *, turned: bool) -> _Scanned | None:
    rng = scope.rng
    operands = list(scope.operands.values())
    for _ in range(_LOOKS if operands else 0):
        operand = operands[max(int(rng.random() * len(operands)), int(rng.random() * len(operands)))]
        if operand.value is not None or operand.dtype not in taken or 0 in operand.shape or not operand.shape:
            continue
        axis = int(rng.random() * operand.rank) if turned and rng.random() < 0.5 else 0
        size = operand.shape[axis]
        if size <= _MOST_LENGTH and size == (length or size):
            return _Scanned(operand, axis)
    return None


def _next(body: BodyScope, state: Operand, slices: list[Operand]) -> Operand:
    """Return the next state, computed from state and slices unless a result of the body already depends on both."""
    result = result_of(body, state.dtype, state.shape)
    for other in (state, *slices):
        if body.uses[other.name] == 0 or body.rng.random() < 0.2:
            mark = body.mark()
            try:
                result = mixed(body, result, other)
            except RejectedDraft:
                body.rollback(mark)
    return kept_inside(body, result, state.facts)


def _attributes(
    scope: Scope, body: Graph, scanned: list[_Scanned], rows: list[Operand], *, turned: bool
) -> tuple[dict[str, PlainValue], list[int]]:
    """Return the attributes, and the axis of each scan output counted from the front."""
    rng = scope.rng
    given: dict[str, PlainValue] = {"body": body, "num_scan_inputs": len(scanned)}
    axes = [x.axis for x in scanned]
    if any(axes) or rng.random() < 0.2:
        ranks = [x.operand.rank for x in scanned]
        given["scan_input_axes"] = [_signed(scope, axis, rank) for axis, rank in zip(axes, ranks, strict=True)]
    if turned and rng.random() < 0.4:
        given["scan_input_directions"] = [int(rng.random() < 0.6) for _ in scanned]
    if not rows:
        return given, []
    outs = [0] * len(rows)
    if turned and rng.random() < 0.5:
        outs = [int(rng.random() * (row.rank + 1)) for row in rows]
    if any(outs) or rng.random() < 0.2:
        given["scan_output_axes"] = [_signed(scope, axis, row.rank + 1) for axis, row in zip(outs, rows, strict=True)]
    if turned and rng.random() < 0.4:
        given["scan_output_directions"] = [int(rng.random() < 0.6) for _ in rows]
    return given, outs


def _signed(scope: Scope, axis: int, rank: int) -> int:
    """Return an axis as it is, or sometimes counted from the back."""
    return axis - rank if scope.rng.random() < 0.25 else axis
