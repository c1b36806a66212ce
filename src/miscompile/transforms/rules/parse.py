"""Rule files: TOML in, rules out.

A pattern is written as calls of operators with their operands in place and their parameters by name, such as
`Transpose(Add(x, y), perm=p)`; `Split(x, axis=a, sizes=s)[1]` is an operator's second output. The format is described
in docs/adding-a-rule.md.
"""

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, TypeVar, get_args

from miscompile.base.dtypes import FLOATS, INTEGERS, NUMBERS, SIGNED, UNSIGNED
from miscompile.base.errors import SpecError
from miscompile.transforms.rules.draws import drawing
from miscompile.transforms.rules.expressions import FUNCTIONS, ParameterExpression, expression
from miscompile.transforms.rules.kinds import KNOWN
from miscompile.transforms.rules.rule import (
    Apply,
    Rule,
    RuleExactness,
    RuleKind,
    TermPattern,
    Variable,
    parts,
    variables,
)
from miscompile.transforms.rules.side import Side

DTYPE_GROUPS: Mapping[str, tuple[str, ...]] = {
    "any": KNOWN,
    "number": NUMBERS,
    "float": FLOATS,
    "integer": INTEGERS,
    "signed": SIGNED,
    "unsigned": UNSIGNED,
    "bool": ("bool",),
}
"""Words for element types in rule files."""

_KEYS = {
    "name", "group", "left", "right", "where", "draw", "let", "exactness", "dtypes", "source", "both", "kind", "shapes",
    "each", "chance",
}  # fmt: skip
_NEEDED = ("name", "group", "left", "right", "exactness", "dtypes", "source")

RuleEntry = Mapping[str, Any]
Word = TypeVar("Word", bound=str)

EXACTNESS: tuple[RuleExactness, ...] = get_args(RuleExactness)
KINDS: tuple[RuleKind, ...] = get_args(RuleKind)
_EVERY = frozenset(KNOWN)


def parse_rules(text: str, where: str, checked: bool = True) -> tuple[Rule, ...]:
    """Return the rules of a rule file, `where` being its name in errors.

    Raises SpecError for anything malformed. `checked=False` skips the check that every expression is valid and every
    variable is bound. The tests check that for the shipped rules, so that these load fast.
    """
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"{where}: {error}") from None
    if set(content) - {"rule"}:
        raise SpecError(f"{where}: a rule file has [[rule]] entries and nothing else")
    found: dict[str, Rule] = {}
    for entry in content.get("rule", []):
        for rule in _rules(entry, where):
            if rule.name in found:
                raise SpecError(f"{where}: there are two rules called {rule.name}")
            if checked:
                _check(rule, f"{where}, rule {rule.name}")
            found[rule.name] = rule
    return tuple(found.values())


def _rules(entry: RuleEntry, where: str) -> Iterator[Rule]:
    """Yield the rules of one entry: for each operator that OP stands for, and each direction."""
    label = f"{where}, rule {entry.get('name', '?')}"
    missing = [key for key in _NEEDED if key not in entry]
    if missing or not _KEYS.issuperset(entry):
        what = f"lacks {', '.join(missing)}" if missing else f"has {', '.join(sorted(set(entry) - _KEYS))}"
        raise SpecError(f"{label} {what}; the keys are: {', '.join(sorted(_KEYS))}")
    made = _maker(entry, label)
    for op in entry.get("each", ["OP"]):
        rule = made(op)
        yield rule
        if entry.get("both", False):
            yield _turned(rule, label)


def _maker(entry: RuleEntry, label: str) -> Callable[[str], Rule]:
    """Return the function from the operator that replaces OP to the rule of an entry; the other parts are made once."""
    left, right = Side(entry["left"], label), Side(entry["right"], label)
    draws = tuple([drawing(name, text, label) for name, text in entry.get("draw", {}).items()])
    lets = tuple([(name, expression(text)) for name, text in entry.get("let", {}).items()])
    exactness = _one_of(entry["exactness"], EXACTNESS, label)
    kind = _one_of(entry.get("kind", "structural" if draws else "arithmetic"), KINDS, label)
    where = expression(entry["where"]) if "where" in entry else None
    shapes = tuple(entry.get("shapes", {}).items())
    limits = _limits(entry["dtypes"], variables(left.pattern(entry.get("each", ["OP"])[0])), label)
    first = limits[0][1] if limits else _EVERY

    def make(op: str) -> Rule:
        return Rule(
            entry["name"].replace("OP", op), entry["group"], left.pattern(op), right.pattern(op), exactness,
            first, entry["source"], kind, where, draws, lets, limits, shapes, float(entry.get("chance", 1.0)),
        )  # fmt: skip

    return make


def _turned(rule: Rule, label: str) -> Rule:
    """Return the reverse rule. Raises SpecError where the same text does not define it."""
    if rule.draws or rule.lets:
        raise SpecError(f"{label}: a rule that draws or computes cannot go both ways; write the other way as a rule")
    return Rule(
        f"{rule.name}-back", rule.group, rule.right, rule.left, rule.exactness, rule.dtypes, rule.source, rule.kind,
        rule.where, (), (), rule.limits, rule.shapes, rule.chance,
    )  # fmt: skip


def _one_of(value: str, options: tuple[Word, ...], label: str) -> Word:
    for option in options:
        if option == value:
            return option
    raise SpecError(f"{label}: '{value}' is none of {', '.join(options)}")


def _limits(given: Any, names: tuple[str, ...], label: str) -> tuple[tuple[str, frozenset[str]], ...]:  # noqa: ANN401
    """Return the element types of each tensor variable; one list is for all of them, a table for those it names."""
    if not isinstance(given, dict):
        return tuple((name, _dtypes(given, label)) for name in names)
    if set(given) - set(names):
        raise SpecError(f"{label}: dtypes names {', '.join(sorted(set(given) - set(names)))}, not on the left side")
    return tuple((name, _dtypes(given[name], label)) for name in names if name in given)


def _dtypes(given: str | list[str], label: str) -> frozenset[str]:
    words = (given,) if isinstance(given, str) else tuple(given)
    for word in words:
        if word not in DTYPE_GROUPS and word not in KNOWN:
            raise SpecError(f"{label}: '{word}' is no element type; words for several: {', '.join(DTYPE_GROUPS)}")
    return _named_dtypes(words)


@cache
def _named_dtypes(words: tuple[str, ...]) -> frozenset[str]:
    return frozenset(dtype for word in words for dtype in DTYPE_GROUPS.get(word, (word,)))


def _parameters(pattern: TermPattern) -> Iterator[ParameterExpression]:
    for part in parts(pattern):
        if isinstance(part, Apply):
            yield from part.parameters


def _check(rule: Rule, label: str) -> None:
    """Raise SpecError for a rule that uses unbound variables, or whose left side matches every term."""
    tensors = set(variables(rule.left))
    if isinstance(rule.left, Variable) and rule.kind != "structural":
        raise SpecError(f"{label}: the left side matches everything, so that the rule has to be structural")
    parameters = {parameter.variable for parameter in _parameters(rule.left) if parameter.variable}
    if parameters & tensors or (parameters | tensors) & FUNCTIONS.keys():
        raise SpecError(f"{label}: a variable is two things at once: tensor, parameter or function")
    bound = parameters | tensors
    _defined([*_parameters(rule.left), *([rule.where] if rule.where else [])], bound, label)
    for draw in rule.draws:
        _defined(draw.arguments, bound, label)
        bound.add(draw.name)
    for name, value in rule.lets:
        _defined((value,), bound, label)
        bound.add(name)
    _defined(tuple(_parameters(rule.right)), bound, label)
    unknown = set(variables(rule.right)) - tensors
    if unknown:
        raise SpecError(f"{label}: {', '.join(sorted(unknown))} stands on the right side only")


def _defined(expressions: Iterable[ParameterExpression], bound: set[str], label: str) -> None:
    for each in expressions:
        try:
            missing = set(each.names) - bound
        except SpecError as error:
            raise SpecError(f"{label}: {error}") from None
        if missing:
            raise SpecError(f"{label}: nothing binds {', '.join(sorted(missing))} in '{each.text}'")
