"""The check that a draft is well defined, because undefined behaviour from a reduction must never pass for a bug.

The check looks at concrete inner values, as far as they are known. Sources: the operator pages of
the ONNX documentation (Div, Mod, BitShift, Gather, Cast and their kin).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from miscompile.base.dtypes import BY_CODE, DTYPES
from miscompile.core.tensor import Tensor
from miscompile.graph.model import Node
from miscompile.triage.reduce.capture import Capture
from miscompile.triage.reduce.draft import Draft
from miscompile.triage.reduce.flattening import KnownValues, flattened, is_block

_INDEXED = {"Gather": "axis", "GatherElements": "axis", "ScatterElements": "axis"}


@dataclass(frozen=True, slots=True)
class Guard:
    """Decides whether a draft is well defined on all its feeds."""

    capture: Capture

    def __call__(self, draft: Draft) -> bool:
        """Return False when a node has undefined behaviour, in the main graph or in a body in some iteration."""
        if any(is_block(node) for node in draft.graph.nodes):
            return self._sound(draft) and all(map(self._sound, flattened(draft, self.capture)))
        return self._sound(draft)

    def _sound(self, draft: Draft) -> bool:
        return all(
            _RULES[node.op](node, known)
            for known in self.capture(draft)
            for node in draft.graph.nodes
            if node.op in _RULES and not node.domain
        )


def _value(node: Node, known: KnownValues, place: int) -> Tensor | None:
    return known.get(node.inputs[place]) if place < len(node.inputs) else None


def _division(node: Node, known: KnownValues) -> bool:
    """Integers must not be divided by zero, nor the smallest one by -1."""
    dividend, divisor = _value(node, known, 0), _value(node, known, 1)
    if divisor is None or divisor.array.dtype.kind not in "iu" or DTYPES[divisor.dtype].kind == "float":
        return True
    if (divisor.array == 0).any():
        return False
    if dividend is None or divisor.array.dtype.kind != "i" or not (divisor.array == -1).any():
        return True
    return not (dividend.array == DTYPES[dividend.dtype].low).any()


def _shift(node: Node, known: KnownValues) -> bool:
    amount = _value(node, known, 1)
    return amount is None or not (amount.array >= DTYPES[amount.dtype].bits).any()


def _index(node: Node, known: KnownValues) -> bool:
    data, indices = _value(node, known, 0), _value(node, known, 1)
    if data is None or indices is None or not indices.array.size:
        return True
    attribute = node.attributes.get(_INDEXED[node.op])
    axis = 0 if attribute is None else int(attribute.value)
    if not -len(data.shape) <= axis < len(data.shape):
        return False
    size = data.shape[axis]
    inside = bool(((indices.array >= -size) & (indices.array < size)).all())
    return inside and (node.op != "ScatterElements" or _reduces(node) or _distinct(indices, axis, size))


def _reduces(node: Node) -> bool:
    """Several writes to one element are defined if they are summed, multiplied, or reduced to an extreme."""
    reduction = node.attributes.get("reduction")
    return reduction is not None and reduction.value != "none"


def _distinct(indices: Tensor, axis: int, size: int) -> bool:
    """No element is written twice, because the order of writes is unspecified."""
    lines = np.moveaxis(indices.array % max(size, 1), axis, -1).reshape(-1, indices.shape[axis])
    return all(np.unique(line).size == line.size for line in lines)


def _tuples(node: Node, known: KnownValues) -> bool:
    """Each tuple of GatherND and ScatterND names a place; none is written twice."""
    data, indices = _value(node, known, 0), _value(node, known, 1)
    if data is None or indices is None or not indices.array.size or not indices.shape:
        return True
    batch = node.attributes.get("batch_dims")
    sizes = np.asarray(data.shape[0 if batch is None else int(batch.value) :][: indices.shape[-1]], np.int64)
    if len(sizes) != indices.shape[-1]:
        return False
    if not ((indices.array >= -sizes) & (indices.array < sizes)).all():
        return False
    rows = (indices.array % np.maximum(sizes, 1)).reshape(-1, len(sizes))
    return node.op != "ScatterND" or _reduces(node) or len(np.unique(rows, axis=0)) == len(rows)


def _positions(node: Node, known: KnownValues) -> bool:
    """Positions are indices of the cache."""
    cache, positions = _value(node, known, 1), _value(node, known, 3)
    if cache is None or positions is None or not cache.shape:
        return True
    return bool(((positions.array >= 0) & (positions.array < cache.shape[0])).all())


def _classes(node: Node, known: KnownValues) -> bool:
    """Labels are classes, or the index to ignore."""
    scores, labels = _value(node, known, 0), _value(node, known, 1)
    if scores is None or labels is None or len(scores.shape) < 2:
        return True
    ignored = node.attributes.get("ignore_index")
    counted = labels.array if ignored is None else labels.array[labels.array != int(ignored.value)]
    return bool(((counted >= 0) & (counted < scores.shape[1])).all())


def _length(node: Node, known: KnownValues) -> bool:
    """A signal has at least one element."""
    length = _value(node, known, 1)
    return length is None or not (length.array < 1).any()


def _cast(node: Node, known: KnownValues) -> bool:
    """A float outside the integer type's range has no defined conversion."""
    value, to = _value(node, known, 0), node.attributes.get("to")
    if value is None or to is None or to.kind != "int" or DTYPES[value.dtype].kind != "float":
        return True
    goal = BY_CODE[int(to.value)]
    if goal.kind not in ("int", "uint"):
        return True
    numbers = value.numbers().astype(np.float64)
    return bool(((numbers > goal.low - 1) & (numbers < goal.high + 1)).all())


_RULES: Mapping[str, Callable[[Node, KnownValues], bool]] = {
    "Div": _division,
    "Mod": _division,
    "BitShift": _shift,
    "Gather": _index,
    "GatherElements": _index,
    "ScatterElements": _index,
    "GatherND": _tuples,
    "ScatterND": _tuples,
    "RotaryEmbedding": _positions,
    "NegativeLogLikelihoodLoss": _classes,
    "SoftmaxCrossEntropyLoss": _classes,
    "Cast": _cast,
    "DFT": _length,
}
