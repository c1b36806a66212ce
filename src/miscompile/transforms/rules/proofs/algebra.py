"""Normal forms of elements: polynomials over integers that wrap around, and quotients of polynomials over the reals.

Two elements with one normal form are equal. Over integers that holds for every width at once, because the laws of rings
hold modulo any power of two. Over the reals it is what a rule that rounds promises: both sides would be equal in exact
arithmetic. A different normal form proves nothing.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Literal, TypeAlias

from miscompile.base.dtypes import DTYPES
from miscompile.transforms.rules.proofs.elements import Element, Obligation

NumberDomain = Literal["ring", "reals"]
"""Integers modulo a power of two | real numbers."""

Atom: TypeAlias = tuple[Hashable, ...]
Monomial: TypeAlias = frozenset[tuple[Atom, int]]
"""Atoms with their exponents, none of them 0."""

ONE: Monomial = frozenset()
_MOST_TERMS = 400
_SMALL_DENOMINATOR = 1000
_CLOSE = Fraction(1, 1 << 48)
_LATTICE = {"Max": "Max", "Min": "Min", "ReduceMax": "Max", "ReduceMin": "Min"}
_ORDERLESS = frozenset({"And", "Or", "Xor", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Equal"})


@dataclass(frozen=True, slots=True)
class Polynomial:
    """A sum of monomials with their coefficients, none of them 0."""

    terms: frozenset[tuple[Monomial, Fraction]]

    def __add__(self, other: "Polynomial") -> "Polynomial":
        """Return the sum."""
        return _collected((*self.terms, *other.terms))

    def __mul__(self, other: "Polynomial") -> "Polynomial":
        """Return the product. Raises OverflowError where it has too many terms."""
        if len(self.terms) * len(other.terms) > _MOST_TERMS:
            raise OverflowError("too many terms")
        return _collected((_times(m, n), a * b) for m, a in self.terms for n, b in other.terms)

    @property
    def number(self) -> Fraction | None:
        """The value of a polynomial without atoms, or None."""
        if not self.terms:
            return Fraction(0)
        ((monomial, factor), *rest) = self.terms
        return factor if not rest and not monomial else None


def _collected(terms: Iterable[tuple[Monomial, Fraction]]) -> Polynomial:
    found: dict[Monomial, Fraction] = {}
    for monomial, factor in terms:
        found[monomial] = found.get(monomial, Fraction(0)) + factor
    return Polynomial(frozenset((monomial, factor) for monomial, factor in found.items() if factor))


def _times(first: Monomial, second: Monomial) -> Monomial:
    powers = dict(first)
    for atom, power in second:
        powers[atom] = powers.get(atom, 0) + power
    return frozenset((atom, power) for atom, power in powers.items() if power)


def constant(value: Fraction | int | float) -> Polynomial:
    """Return a number as a polynomial."""
    return _collected([(ONE, Fraction(value))])


def atom(*key: Hashable, power: int = 1) -> Polynomial:
    """Return a power of an atom, which nothing is known about."""
    return Polynomial(frozenset([(frozenset([(key, power)]), Fraction(1))]))


MINUS_ONE = constant(-1)


def inverse(value: Polynomial) -> Polynomial:
    """Return 1 / value, for real numbers; a sum becomes an atom, freed of what its terms share.

    Raises ZeroDivisionError.
    """
    if not value.terms:
        raise ZeroDivisionError
    shared = _shared([monomial for monomial, _ in value.terms])
    undone = frozenset((part, -power) for part, power in shared)
    lead = _lead(value)
    rest = _collected((_times(monomial, undone), factor / lead) for monomial, factor in value.terms)
    outside = Polynomial(frozenset([(undone, 1 / lead)]))
    return outside if rest.number == 1 else outside * atom("sum", rest.terms, power=-1)


def _shared(monomials: list[Monomial]) -> Monomial:
    """Return the greatest monomial that divides all of them."""
    powers = [dict(monomial) for monomial in monomials]
    atoms = {part for each in powers for part in each}
    least = {part: min(each.get(part, 0) for each in powers) for part in atoms}
    return frozenset((part, power) for part, power in least.items() if power)


def _lead(value: Polynomial) -> Fraction:
    """Return the factor of the term that comes first in some order, always the same one."""
    return min(value.terms, key=lambda term: _order(term[0]))[1]


def _order(key: Hashable) -> str:
    """Return a text that orders atoms and monomials; sets are written in order."""
    if isinstance(key, frozenset):
        return "{" + ",".join(sorted(map(_order, key))) + "}"
    if isinstance(key, Polynomial):
        return _order(key.terms)
    if isinstance(key, tuple):
        return "(" + ",".join(map(_order, key)) + ")"
    return str(key)


def same_normal_form(stated: Obligation, numbers: NumberDomain) -> bool:
    """Tell whether both sides of an obligation have one normal form; False proves nothing."""
    sides = _normal_forms(stated, numbers)
    return sides is not None and sides[0] == sides[1]


def differ_in_exact_arithmetic(stated: Obligation) -> bool:
    """Tell whether the sides are proved unequal as functions of real numbers: different polynomials of the variables.

    False proves nothing: an operator that the algebra knows nothing about may be what makes the forms differ.
    """
    sides = _normal_forms(stated, "reals")
    if sides is None or sides[0] == sides[1]:
        return False
    return all(part[0] == "Variable" for side in sides for monomial, _ in side.terms for part, _ in monomial)


def _normal_forms(stated: Obligation, numbers: NumberDomain) -> tuple[Polynomial, Polynomial] | None:
    """Return the normal forms of both sides; None where one is too large, or divides by zero."""
    values: list[Polynomial] = []
    try:
        for element in stated.elements:
            values.append(_normal(element, [values[child] for child in element.children], numbers))
    except (OverflowError, ZeroDivisionError):
        return None
    return values[stated.left], values[stated.right]


def _normal(element: Element, children: list[Polynomial], numbers: NumberDomain) -> Polynomial:
    if element.op == "Constant" and isinstance(element.parameters[0], int | float):
        value = element.parameters[0]
        if isinstance(value, bool) or value != value or value in (float("inf"), float("-inf")):
            return atom("Constant", str(value))
        return constant(_ratio(value))
    if element.op == "Neg" and numbers == "reals":
        return _negated(children[0])
    rule = _RING.get(element.op) or (_REALS.get(element.op) if numbers == "reals" else None)
    if rule is not None and element.sort != "bool":
        return rule(element, children)
    if element.op == "Cast" and numbers == "reals" and DTYPES.get(element.sort, DTYPES["bool"]).kind == "float":
        return children[0]
    if element.op in _LATTICE:
        return _extreme(_LATTICE[element.op], children)
    keys = [child.terms for child in children]
    if element.op in _ORDERLESS:
        return atom(element.op, frozenset(keys), len(set(keys)) == 1)
    return atom(element.op, element.parameters, element.sort, *keys)


def _ratio(value: int | float) -> Fraction:
    """Return the number that a constant stands for: 1/3 for the float next to it."""
    near = Fraction(value).limit_denominator(_SMALL_DENOMINATOR)
    return near if abs(near - Fraction(value)) < abs(Fraction(value)) * _CLOSE else Fraction(value)


def _extreme(op: str, children: list[Polynomial]) -> Polynomial:
    """Return a maximum or minimum of all operands, nested ones included, each once and in no order."""
    members: set[Polynomial] = set()
    for child in children:
        inner = _members(op, child)
        members |= inner if inner is not None else {child}
    return members.pop() if len(members) == 1 else atom(op, frozenset(members))


def _negated(value: Polynomial) -> Polynomial:
    """Return the negative, which turns the order of the reals around, and with it their extremes."""
    for op, other in (("Max", "Min"), ("Min", "Max")):
        members = _members(op, value)
        if members is not None:
            return _extreme(other, [_negated(member) for member in members])
    return MINUS_ONE * value


def _members(op: str, value: Polynomial) -> frozenset[Polynomial] | None:
    """Return the operands where `value` is an extreme of kind `op`, or None."""
    if len(value.terms) == 1:
        ((monomial, factor),) = value.terms
        if factor == 1 and len(monomial) == 1:
            ((key, power),) = monomial
            if power == 1 and key[0] == op:
                members: frozenset[Polynomial] = key[1]  # type: ignore[assignment]
                return members
    return None


def _sum(children: Iterable[Polynomial]) -> Polynomial:
    return reduce(Polynomial.__add__, children, constant(0))


def _exp(value: Polynomial) -> Polynomial:
    """Return exp of a sum as the product of the exps of its terms: powers where the factors are integers."""
    found = constant(1)
    for monomial, factor in value.terms:
        whole, power = (monomial, int(factor)) if factor.denominator == 1 else ((monomial, factor), 1)
        found = found * atom("Exp", whole, power=power)
    return found


def _tanh(value: Polynomial) -> Polynomial:
    square = _exp(constant(2) * value)
    return (square + MINUS_ONE) * inverse(square + constant(1))


def _parity(element: Element, children: list[Polynomial]) -> Polynomial:
    """Return an odd or even function of an operand whose sign is fixed."""
    value = children[0]
    turned = bool(value.terms) and _lead(value) < 0
    found = atom(element.op, (MINUS_ONE * value if turned else value).terms)
    return MINUS_ONE * found if turned and element.op == "Sin" else found


def _softmax(element: Element, children: list[Polynomial]) -> Polynomial:
    powers = [_exp(child) for child in children]
    place = element.parameters[0]
    assert isinstance(place, int)
    return powers[place] * inverse(_sum(powers))


def _mean(element: Element, children: list[Polynomial]) -> Polynomial:
    return _sum(children) * constant(Fraction(1, len(children)))


Normal: TypeAlias = Callable[[Element, list[Polynomial]], Polynomial]

_RING: Mapping[str, Normal] = {
    "Add": lambda element, c: c[0] + c[1],
    "Sub": lambda element, c: c[0] + MINUS_ONE * c[1],
    "Mul": lambda element, c: c[0] * c[1],
    "Neg": lambda element, c: MINUS_ONE * c[0],
    "ReduceSum": lambda element, c: _sum(c),
    "Relu": lambda element, c: _extreme("Max", [c[0], constant(0)]),
}

_REALS: Mapping[str, Normal] = {
    "Div": lambda element, c: c[0] * inverse(c[1]),
    "Reciprocal": lambda element, c: inverse(c[0]),
    "Exp": lambda element, c: _exp(c[0]),
    "Sigmoid": lambda element, c: inverse(constant(1) + _exp(MINUS_ONE * c[0])),
    "Tanh": lambda element, c: _tanh(c[0]),
    "Sin": _parity,
    "Cos": _parity,
    "Softmax": _softmax,
    "Sqrt": lambda element, c: c[0] if c[0].number in (0, 1) else atom("Sqrt", c[0].terms),
    "ReduceMean": _mean,
}
