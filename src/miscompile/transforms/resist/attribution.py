"""Which class of optimisations, and which edge, a difference comes from: the ones whose resistance makes it vanish.

ORTHRUS promises this attribution (section III-B: the user selects the classes that are tested). Barriers of several
classes may stand on one edge, so that more than one class heals; the narrowest is blamed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from miscompile.graph.model import Model
from miscompile.transforms.resist.config import config_of
from miscompile.transforms.resist.edges import surroundings
from miscompile.transforms.resist.form import Resistant, Site, sites
from miscompile.transforms.resist.rules import ResistanceRule, Selector

_MANY = 200
"""About as many operators as the standard has: what a rule admits that does not name any."""

_CONDITIONED = 20
"""By how much each condition on the edge itself narrows a rule down."""


@dataclass(frozen=True, slots=True)
class Attribution:
    """The class to blame with the sites that heal alone; `healing` are all classes that heal, with their sites.

    Empty texts and tuples when no class heals: the fault lies within one operator, or in a body.
    """

    kind: str
    sites: tuple[Site, ...]
    healing: Mapping[str, tuple[Site, ...]]


def attribute(model: Model, form: Resistant, heals: Callable[[Resistant], bool]) -> Attribution:
    """Return which class, and which edges alone, `heals` says to make a difference vanish.

    `heals` builds and runs `model` as the form that it is given presents it, and is asked once for each class that
    `form` allows and has an edge for, then once for each edge of each class that heals. Blamed is a class that heals on
    an edge between operators, if there is one, before those that heal on a constant alone (a constant that is fused
    with two operators heals as well); then the class whose rule for that edge admits the fewest pairs of operators.
    """
    config = config_of(form.config)
    allowed = form.classes.split("+") if form.classes else config.classes
    found: dict[str, tuple[Site, ...]] = {}
    alone: dict[str, tuple[Site, ...]] = {}
    for kind in allowed:
        one = replace(form, classes=kind)
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
    """Return about how many pairs of operators a rule admits."""
    conditions = (rule.constant, rule.foldable, rule.neutral, rule.same_operand, rule.twin, rule.dtypes, rule.ranks)
    narrowed = sum(condition is not None for condition in conditions)
    factor: int = _CONDITIONED**narrowed
    return max(1, _ends(rule.producer) * _ends(rule.consumer) // factor)


def _ends(selector: Selector | None) -> int:
    return _MANY if selector is None or selector.opaque else len(selector.names)
