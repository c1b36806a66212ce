"""Optimisation classes as data: categories of operators, and rules that select the edges that a class needs.

The parts are those of ORTHRUS's configuration (targets, matching conditions, strategies), written as TOML; the shipped
rules are in `classes.toml`, and a file of the user's own extends them. `docs/resist.md` explains each key.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from miscompile.base.dtypes import DTYPES, FLOATS, INTEGERS, NUMBERS, SIGNED, UNSIGNED
from miscompile.base.errors import SpecError
from miscompile.transforms.resist.strategies import STRATEGIES

Capability = Literal["ignore", "prefer", "require"]

CATEGORIES = ("elementwise", "broadcast", "injective", "reduction", "out-elementwise-fusable", "opaque")
"""Operators by their fusion capability, strongest first (ORTHRUS, Table I): places 1 to 6."""

OPAQUE = len(CATEGORIES)

DTYPE_GROUPS: Mapping[str, tuple[str, ...]] = {
    "@float": FLOATS, "@integer": INTEGERS, "@signed": SIGNED, "@unsigned": UNSIGNED, "@number": NUMBERS,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Selector:
    """A set of producers or readers: operators by name, `input`, `constant`, and optionally every opaque operator."""

    names: frozenset[str]
    opaque: bool = False


@dataclass(frozen=True, slots=True)
class ResistanceRule:
    """A rule: the edges that a class of optimisations needs, and the strategies of their barriers by preference.

    None in a condition stands for "either". `docs/resist.md` explains each condition.
    """

    name: str
    kind: str
    strategies: tuple[str, ...]
    about: str = ""
    producer: Selector | None = None
    consumer: Selector | None = None
    dtypes: frozenset[str] | None = None
    ranks: frozenset[int] | None = None
    slots: frozenset[int] | None = None
    constant: bool | None = None
    foldable: bool | None = None
    neutral: bool | None = None
    same_operand: bool | None = None
    twin: bool | None = None
    output: bool = False
    dead: bool = False
    instead: bool = False
    readers: str = ""
    capability: Capability = "ignore"


@dataclass(frozen=True, slots=True, eq=False)
class Config:
    """All rules in order, the category of each operator (1 to 5; 6 for what is missing), and structural operands.

    Compared by identity, so that derived data can be cached.
    """

    rules: tuple[ResistanceRule, ...]
    categories: Mapping[str, int]
    structural: Mapping[str, frozenset[int]]

    def category(self, op: str) -> int:
        """Return the place of an operator's category, 1 to 6."""
        return self.categories.get(op, OPAQUE)

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes, in the order of their first rules."""
        return tuple(dict.fromkeys(rule.kind for rule in self.rules))


ConditionReader = Callable[[object, str], object]
"""Converts the value of a key for the rule; the text names the key in errors."""


def rule_of(row: object, place: int, categories: Mapping[str, int], known: Callable[[str], bool]) -> ResistanceRule:
    """Return the rule of a table of the file; `known` tells whether the standard has an operator.

    Raises SpecError that names the rule, the key, and what is allowed.
    """
    if not isinstance(row, dict):
        raise SpecError(f"rule {place} is no table; write [[rule]]")
    where = f"rule {place} ('{row.get('name', 'without a name')}')"
    readers = {**_KEYS, "producer": _selector(categories, known), "consumer": _selector(categories, known)}
    for key in row:
        if key not in readers:
            raise SpecError(f"{where} has no key '{key}'; allowed are: {', '.join(sorted(readers))}")
    for key in ("name", "class", "strategies"):
        if key not in row:
            raise SpecError(f"{where} lacks '{key}'")
    values = {_FIELDS.get(key, key): readers[key](value, f"{where}, key '{key}'") for key, value in row.items()}
    rule = ResistanceRule(**values)  # type: ignore[arg-type]
    if (rule.dead or rule.output) and rule.consumer is not None:
        raise SpecError(f"{where}: an edge that is an output or dead has no consumer; leave 'consumer' out")
    if rule.instead and (rule.dead or rule.output):
        raise SpecError(f"{where}: 'instead' replaces a consumer; an edge that is an output or dead has none")
    return rule


def strings(value: object, where: str) -> tuple[str, ...]:
    """Return a list of texts. Raises SpecError for anything else."""
    if not isinstance(value, list) or not value or not all(isinstance(item, str) for item in value):
        raise SpecError(f"{where} must be a list of texts that is not empty")
    return tuple(value)


def integers(value: object, where: str) -> frozenset[int]:
    """Return a list of numbers that are not negative as a set. Raises SpecError for anything else."""
    good = isinstance(value, list) and all(type(item) is int and item >= 0 for item in value)
    if not good or not isinstance(value, list) or not value:
        raise SpecError(f"{where} must be a list of whole numbers from 0, not empty")
    return frozenset(value)


def _text(value: object, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise SpecError(f"{where} must be a text")
    return value


def _name(value: object, where: str) -> str:
    text = _text(value, where)
    if not all(sign.isalnum() or sign in "-_." for sign in text):
        raise SpecError(f"{where} may have letters, digits, '-', '_' and '.' only, not '{text}'")
    return text


def _boolean(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        raise SpecError(f"{where} must be true or false")
    return value


def _one_of(*allowed: str) -> ConditionReader:
    def read(value: object, where: str) -> str:
        if value not in allowed or not isinstance(value, str):
            raise SpecError(f"{where} must be one of: {', '.join(allowed)}")
        return value

    return read


def _strategies(value: object, where: str) -> tuple[str, ...]:
    names = strings(value, where)
    for name in names:
        if name not in STRATEGIES:
            raise SpecError(f"{where}: there is no strategy '{name}'; allowed are: {', '.join(STRATEGIES)}")
    return names


def _dtypes(value: object, where: str) -> frozenset[str]:
    found: set[str] = set()
    for name in strings(value, where):
        if name not in DTYPE_GROUPS and name not in DTYPES:
            allowed = ", ".join((*DTYPE_GROUPS, *DTYPES))
            raise SpecError(f"{where}: there is no element type '{name}'; allowed are: {allowed}")
        found.update(DTYPE_GROUPS.get(name, (name,)))
    return frozenset(found)


def _selector(categories: Mapping[str, int], known: Callable[[str], bool]) -> ConditionReader:
    def read(value: object, where: str) -> Selector:
        names: set[str] = set()
        for name in strings(value, where):
            if name.startswith("@"):
                if name[1:] not in CATEGORIES:
                    allowed = ", ".join(f"@{category}" for category in CATEGORIES)
                    raise SpecError(f"{where}: there is no category '{name}'; allowed are: {allowed}")
                names.update(op for op, place in categories.items() if CATEGORIES[place - 1] == name[1:])
            elif name in ("input", "constant") or "::" in name or known(name):
                names.add(name)
            else:
                raise SpecError(
                    f"{where}: there is no operator '{name}'; allowed are operators of the standard, domain::operator, "
                    "input, constant and @categories"
                )
        return Selector(frozenset(names), "@opaque" in strings(value, where))

    return read


_FIELDS: Mapping[str, str] = {"class": "kind"}

_KEYS: Mapping[str, ConditionReader] = {
    "name": _name,
    "class": _name,
    "about": _text,
    "strategies": _strategies,
    "dtypes": _dtypes,
    "ranks": integers,
    "slots": integers,
    "constant": _boolean,
    "foldable": _boolean,
    "neutral": _boolean,
    "same_operand": _boolean,
    "twin": _boolean,
    "output": _boolean,
    "dead": _boolean,
    "instead": _boolean,
    "readers": _one_of("one", "several"),
    "capability": _one_of("ignore", "prefer", "require"),
}
