"""Laws of order: maxima and minima of the same elements are compared by the principle of zeros and ones.

A law of maxima and minima holds in every total order if it holds for the values 0 and 1, so that a truth table decides
it. Floats without NaN are totally ordered but for the sign of zero. A NaN spreads through maxima and minima, so that
both sides are NaN for the same inputs where they depend on the same elements.
"""

from typing import TypeAlias

import numpy as np

from miscompile.core.tensor import Array
from miscompile.transforms.rules.proofs.elements import Obligation

_MOST_LEAVES = 19
_MAXIMA = frozenset({"Max", "ReduceMax"})
_MINIMA = frozenset({"Min", "ReduceMin"})

OrderLeaf: TypeAlias = tuple[int, bool]
"""An element that is no maximum or minimum, by its place, and whether it is negated; a place of -1 is zero."""

_ZERO = -1


def equal_by_order(stated: Obligation, floats: bool) -> bool:
    """Tell whether the laws of order make both sides equal, for floats up to the sign of zero; False proves nothing."""
    left, right = _leaves(stated, stated.left, floats), _leaves(stated, stated.right, floats)
    if floats and _variable(stated, left) != _variable(stated, right):
        return False
    leaves = sorted(left | right)
    if not any(_is_extreme(stated, side) for side in (stated.left, stated.right)):
        return False
    if left == right and stated.operators in (_MAXIMA, _MINIMA, {"Max"}, {"ReduceMax"}, {"Min"}, {"ReduceMin"}):
        return True
    if len(leaves) > _MOST_LEAVES:
        return False
    count = 1 << len(leaves)
    numbers = np.arange(count)
    table = {leaf: (numbers >> place) & 1 == 1 for place, leaf in enumerate(leaves)}
    for place, negated in leaves:
        element = stated.elements[place] if place != _ZERO else None
        if element is not None and element.op == "Constant" and element.parameters[0] in (np.inf, -np.inf):
            table[place, negated] = np.full(count, (element.parameters[0] == np.inf) != negated)
    return bool(
        np.array_equal(
            _value(stated, (stated.left, False), table, floats), _value(stated, (stated.right, False), table, floats)
        )
    )


def _is_extreme(stated: Obligation, place: int) -> bool:
    return stated.elements[place].op in _MAXIMA | _MINIMA | {"Relu", "Neg"}


def _parts(stated: Obligation, leaf: OrderLeaf, floats: bool) -> tuple[bool, list[OrderLeaf]] | None:
    """Return whether an element is a maximum, and of what; None for a leaf.

    The negative of a float turns the order around. That of an integer does not: the least one is its own.
    """
    place, negated = leaf
    if place == _ZERO:
        return None
    element = stated.elements[place]
    if element.op == "Neg" and floats:
        return True, [(element.children[0], not negated)]
    children = [(child, negated) for child in element.children]
    if element.op == "Relu":
        return not negated, [*children, (_ZERO, negated)]
    if element.op in _MAXIMA or element.op in _MINIMA:
        return (element.op in _MAXIMA) != negated, children
    return None


def _leaves(stated: Obligation, root: int, floats: bool) -> set[OrderLeaf]:
    found: set[OrderLeaf] = set()
    seen: set[OrderLeaf] = set()
    pending: list[OrderLeaf] = [(root, False)]
    while pending:
        leaf = pending.pop()
        if leaf in seen:
            continue
        seen.add(leaf)
        parts = _parts(stated, leaf, floats)
        if parts is None:
            found.add((_ZERO, False) if _is_zero(stated, leaf[0]) else leaf)
        else:
            pending.extend(parts[1])
    return found


def _is_zero(stated: Obligation, place: int) -> bool:
    return place == _ZERO or (stated.elements[place].op == "Constant" and stated.elements[place].parameters[0] == 0)


def _variable(stated: Obligation, leaves: set[OrderLeaf]) -> set[int]:
    """Return the places of the leaves that may be NaN."""
    return {place for place, _ in leaves if place != _ZERO and stated.elements[place].op != "Constant"}


def _value(stated: Obligation, leaf: OrderLeaf, table: dict[OrderLeaf, Array], floats: bool) -> Array:
    """Return the truth values of an element for those of the leaves."""
    if leaf not in table:
        parts = _parts(stated, leaf, floats)
        if parts is None:
            return table[_ZERO, False]
        operands = [_value(stated, part, table, floats) for part in parts[1]]
        table[leaf] = np.logical_or.reduce(operands) if parts[0] else np.logical_and.reduce(operands)
    return table[leaf]
