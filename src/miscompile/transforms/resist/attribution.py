"""Attribution of a difference to a class of optimisations and an edge: those whose barriers remove the difference.

ORTHRUS promises this attribution (section III-B: the user selects the classes that are tested). Classes may share an
edge, so that barriers of several classes remove the difference; the narrowest class is blamed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from miscompile.graph.model import Model
from miscompile.transforms.resist.config import config_of
from miscompile.transforms.resist.edges import surroundings
from miscompile.transforms.resist.rules import ResistanceRule, Selector
from miscompile.transforms.resist.transform import BarrierSite, Resistant, sites

_MANY = 200
"""Approximate number of standard operators, counted for a rule that names no operator."""

_CONDITIONED = 20
"""Factor by which each condition on the edge itself narrows a rule."""


@dataclass(frozen=True, slots=True)
class Attribution:
    """The blamed class with the sites whose barrier alone removes the difference; `healing`: all such classes and
    sites.

    Empty texts and tuples when no class does: the bug is within one operator, or in a body.
    """

    kind: str
    sites: tuple[BarrierSite, ...]
    healing: Mapping[str, tuple[BarrierSite, ...]]


def attribute(model: Model, transform: Resistant, heals: Callable[[Resistant], bool]) -> Attribution:
    """Return the class, and the single edges, whose barriers remove the difference according to `heals`.

    `heals` builds and runs `model` as its argument presents it. It is called once for each class that `transform`
    allows and that has an edge, then once for each edge of each class that removes the difference. Classes with such an
    edge between operators come before those with one at a constant only, because a constant that is fused with two
    operators affects both. Among these, the class whose rule for that edge admits the fewest pairs of operators is
    blamed.
    """
    config = config_of(transform.config)
    allowed = transform.classes.split("+") if transform.classes else config.classes
    found: dict[str, tuple[BarrierSite, ...]] = {}
    alone: dict[str, tuple[BarrierSite, ...]] = {}
    for kind in allowed:
        one = replace(transform, classes=kind)
        held = sites(model, one)
        if held and heals(one):
            found[kind] = held
            alone[kind] = tuple(site for site in held if len(held) == 1 or heals(replace(one, only=site.edge)))
    if not found:
        return Attribution("", (), {})
    constants = surroundings(model).constants

    breadth = {rule.name: _breadth(rule) for rule in config.rules}

    def rank(kind: str) -> tuple[bool, int, int]:
        inner = any(site.value not in constants for site in alone[kind])
        return not inner, min(breadth[site.rule] for site in alone[kind] or found[kind]), len(found[kind])

    blamed = min(found, key=rank)
    return Attribution(blamed, alone[blamed], found)


def _breadth(rule: ResistanceRule) -> int:
    """Return the approximate number of operator pairs that a rule admits."""
    conditions = (rule.constant, rule.foldable, rule.neutral, rule.same_operand, rule.twin, rule.dtypes, rule.ranks)
    narrowed = sum(condition is not None for condition in conditions)
    factor: int = _CONDITIONED**narrowed
    return max(1, _ends(rule.producer) * _ends(rule.consumer) // factor)


def _ends(selector: Selector | None) -> int:
    return _MANY if selector is None or selector.opaque else len(selector.names)
