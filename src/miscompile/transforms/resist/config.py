"""Reading the optimisation classes: the shipped file, optionally extended by the user's own."""

import tomllib
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from miscompile.base.errors import SpecError
from miscompile.ops.operand_roles import wanted_constant
from miscompile.ops.registry import schema, written
from miscompile.transforms.resist.rules import CATEGORIES, Config, ResistanceRule, integers, rule_of, strings

_NEWEST = 2**31 - 1
"""An opset above all others, to look up whether any version of an operator exists."""

_TABLES = ("categories", "structural", "rule", "alone")


def config_of(path: str) -> Config:
    """Return the configuration of the option `config`: the shipped rules for "", else extended by those of a file.

    A file is read again when it has changed. Raises SpecError when it cannot be read or is invalid.
    """
    if not path:
        return embedded()
    try:
        state = Path(path).stat()
        return _of_file(path, state.st_mtime_ns, state.st_size)
    except OSError as error:
        raise SpecError(f"cannot read the resistance rules {path}: {error.strerror}") from None


@cache
def embedded() -> Config:
    """Return the shipped rules."""
    text = files("miscompile.transforms.resist").joinpath("classes.toml").read_text("utf-8")
    return parse_config(text, "classes.toml")


@lru_cache(16)
def _of_file(path: str, changed: int, size: int) -> Config:
    del changed, size  # part of the cache key only, so that a changed file is read again
    try:
        text = Path(path).read_text("utf-8")
    except UnicodeDecodeError:
        raise SpecError(f"{path} is not text in UTF-8") from None
    return parse_config(text, path, embedded())


def parse_config(text: str, source: str, base: Config | None = None) -> Config:
    """Return the configuration in `text` (TOML); `source` names it in errors.

    It extends `base`: rules of the text come first, and replace those of the same name; the category and the structural
    operands of an operator replace those of `base`. With `alone = true` the rules of `base` are dropped, but not its
    other tables. Raises SpecError with one line that names the rule and what is allowed there.
    """
    try:
        data = tomllib.loads(text)
        return _config(data, base)
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"{source} is no TOML: {error}") from None
    except SpecError as error:
        raise SpecError(f"{source}: {error}") from None


def _config(data: Mapping[str, Any], base: Config | None) -> Config:
    for key in data:
        if key not in _TABLES:
            raise SpecError(f"there is no table or key '{key}'; allowed are: {', '.join(_TABLES)}")
    alone = data.get("alone", False)
    if not isinstance(alone, bool):
        raise SpecError("'alone' must be true or false")
    categories = {**(base.categories if base else _specified()), **_categories(data.get("categories", {}))}
    structural = {**(base.structural if base else _without_barriers()), **_structural(data.get("structural", {}))}
    rows = data.get("rule", [])
    if not isinstance(rows, list):
        raise SpecError("rules are written as [[rule]], with two brackets")
    own = _distinct([rule_of(row, place, categories, _is_operator) for place, row in enumerate(rows, 1)])
    names = {rule.name for rule in own}
    inherited = () if base is None or alone else tuple(rule for rule in base.rules if rule.name not in names)
    if not own and not inherited:
        raise SpecError("there are no rules; write at least one [[rule]]")
    return Config((*own, *inherited), categories, structural)


def _distinct(rules: list[ResistanceRule]) -> tuple[ResistanceRule, ...]:
    seen: set[str] = set()
    for rule in rules:
        if rule.name in seen:
            raise SpecError(f"two rules are named '{rule.name}'")
        seen.add(rule.name)
    return tuple(rules)


def _categories(table: object) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, ops in _table(table, "categories").items():
        if name not in CATEGORIES:
            raise SpecError(f"there is no category '{name}'; allowed are: {', '.join(CATEGORIES)}")
        for op in strings(ops, f"category '{name}'"):
            _check_operator(op, f"category '{name}'")
            if op in found:
                raise SpecError(f"operator '{op}' stands in two categories")
            found[op] = CATEGORIES.index(name) + 1
    return found


def _specified() -> dict[str, int]:
    """Return the categories that operators' specs say."""
    return {op: CATEGORIES.index(spec.fusion) + 1 for op, spec in written().items() if spec.fusion != CATEGORIES[-1]}


def _structural(table: object) -> dict[str, frozenset[int]]:
    found = {}
    for op, slots in _table(table, "structural").items():
        _check_operator(op, "table 'structural'")
        found[op] = integers(slots, f"structural operands of '{op}'")
    return found


def _table(table: object, name: str) -> Mapping[str, object]:
    if not isinstance(table, dict):
        raise SpecError(f"'{name}' must be a table: write [{name}]")
    return table


def _check_operator(op: str, where: str) -> None:
    if "::" not in op and not _is_operator(op):
        raise SpecError(f"{where}: there is no operator '{op}' in the standard; others are written domain::operator")


def _is_operator(op: str) -> bool:
    return schema(op, _NEWEST) is not None


def _without_barriers() -> Mapping[str, frozenset[int]]:
    """Return the operands that get no barrier: those that compilers want constant, but for the condition of If.

    A constant condition is what the class `control` is about: the barrier makes it known at run time only.
    """
    return {op: places for op, places in wanted_constant().items() if op != "If"}
