"""Selections case by case: where every condition is decided, both sides may be the same element."""

from itertools import product

from miscompile.transforms.rules.proofs.elements import ElementTable, Obligation

_MOST_CONDITIONS = 4


def equal_in_each_case(stated: Obligation) -> bool:
    """Tell whether both sides are one element whatever the conditions of Where are; False proves nothing."""
    conditions = {_plain(stated, element.children[0])[0] for element in stated.elements if element.op == "Where"}
    if not conditions or len(conditions) > _MOST_CONDITIONS:
        return False
    ordered = sorted(conditions)
    cases = product((False, True), repeat=len(ordered))
    return all(_same(stated, dict(zip(ordered, truths, strict=True))) for truths in cases)


def _plain(stated: Obligation, place: int) -> tuple[int, bool]:
    """Return a condition without its negations, and whether they negate it."""
    negated = False
    while stated.elements[place].op == "Not":
        place, negated = stated.elements[place].children[0], not negated
    return place, negated


def _same(stated: Obligation, truths: dict[int, bool]) -> bool:
    """Tell whether both sides are one element where the conditions have the values `truths`."""
    table = ElementTable()
    numbers: list[int] = []
    for place, element in enumerate(stated.elements):
        if place in truths:
            numbers.append(table.add("Constant", "bool", (), (truths[place],)))
        elif element.op == "Where":
            condition, negated = _plain(stated, element.children[0])
            numbers.append(numbers[element.children[1 if truths[condition] != negated else 2]])
        else:
            children = tuple([numbers[child] for child in element.children])
            numbers.append(table.add(element.op, element.sort, children, element.parameters))
    return numbers[stated.left] == numbers[stated.right]
