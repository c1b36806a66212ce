"""Specs: the printable form `name{option=value, ...}` of a concrete part.

Every concrete producer, oracle, reduction and target is a frozen dataclass whose fields are its options. The spec is
derived from the fields, prints back, and is used in log, store and command line.
"""

import dataclasses
import re
import types
import typing
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeVar

from miscompile.base.errors import SpecError

Part = TypeVar("Part")

_SPEC = re.compile(r"\s*([A-Za-z_][\w.\-]*)\s*(?:\{(.*)\})?\s*", re.DOTALL)


@dataclasses.dataclass(frozen=True, slots=True)
class Spec:
    """A parsed spec: a name, and raw options in the order in which they are written, each option once.

    It compares and hashes by value, so that it can be a key of a cache. `str` gives text that parses back to an equal
    spec.
    """

    name: str
    options: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        """Return `name`, or `name{option=value, ...}`."""
        shown = ", ".join(f"{key}={value}" for key, value in self.options)
        return f"{self.name}{{{shown}}}" if shown else self.name

    def get(self, option: str, default: str = "") -> str:
        """Return the raw value of `option`, `default` where the spec does not set it."""
        return next((value for key, value in self.options if key == option), default)

    def with_options(self, **more: str) -> "Spec":
        """Return this spec with `more` options.

        An option that is set already keeps its place and gets the new value.
        """
        return Spec(self.name, tuple({**dict(self.options), **more}.items()))


@lru_cache(4096)
def parse_spec(text: str) -> Spec:
    """Parse `name{a=1, b=x+y}`; cached, because a campaign parses the same few texts thousands of times a second.

    Raises SpecError for any other text. Lists are written with `+`, so commas only separate options.
    """
    found = _SPEC.fullmatch(text)
    if not found:
        raise SpecError(f"'{text}' is not a spec; write name or name{{option=value, ...}}")
    options: dict[str, str] = {}
    for item in filter(None, (piece.strip() for piece in (found[2] or "").split(","))):
        key, equals, value = item.partition("=")
        if not equals:
            raise SpecError(f"option '{item}' in '{text}' has no value; write {item}=...")
        options[key.strip()] = value.strip()
    return Spec(found[1], tuple(options.items()))


def stored_spec(text: str) -> Spec | None:
    """Read a spec that `spec_text` wrote: None for an empty text. Raises SpecError as `parse_spec` does."""
    return parse_spec(text) if text else None


def spec_text(spec: Spec | None) -> str:
    """Return the text in which files and messages between processes hold a spec: an empty one for None."""
    return "" if spec is None else str(spec)


def parse_options(cls: type[Part], options: Mapping[str, str], where: str) -> Part:
    """Build dataclass `cls` from raw options; `where` names the spec in errors.

    Raises SpecError for an unknown option or a value of the wrong type.
    """
    hints = typing.get_type_hints(cls)
    known = {f.name for f in dataclasses.fields(cls) if f.init}  # type: ignore[arg-type]
    values: dict[str, Any] = {}
    for key, raw in options.items():
        if key not in known:
            raise SpecError(f"{where} has no option '{key}'; it has: {', '.join(sorted(known)) or 'none'}")
        try:
            values[key] = _convert(hints[key], raw)
        except ValueError as error:
            raise SpecError(f"option {key}={raw} of {where}: {error}") from None
    return cls(**values)


def spec_of(name: str, part: object) -> Spec:
    """Return the spec of `part`: `name` with the options that differ from their defaults. It parses back to `part`."""
    shown = []
    for field in dataclasses.fields(part):  # type: ignore[arg-type]
        value = getattr(part, field.name)
        if field.init and value != _default(field):
            shown.append((field.name, _show(value)))
    return Spec(name, tuple(shown))


def print_spec(name: str, part: object) -> str:
    """Return the text of `spec_of`."""
    return str(spec_of(name, part))


def _default(field: "dataclasses.Field[Any]") -> object:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def _show(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return "+".join(map(_show, value))
    return "none" if value is None else str(value)


def _convert(hint: Any, raw: str) -> object:  # noqa: ANN401 - a type annotation is any object
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        if raw == "none" and type(None) in arguments:
            return None
        return _convert(next(a for a in arguments if a is not type(None)), raw)
    if origin is tuple:
        return tuple(_convert(arguments[0], piece) for piece in raw.split("+") if piece)
    if origin is typing.Literal:
        if raw not in arguments:
            raise ValueError(f"must be one of {', '.join(map(str, arguments))}")
        return raw
    if hint is bool:
        return _boolean(raw)
    if hint in (int, float, str):
        return hint(raw)
    raise ValueError(f"cannot be set in a spec (its type is {hint})")


def _boolean(raw: str) -> bool:
    if raw in ("yes", "true", "on", "1"):
        return True
    if raw in ("no", "false", "off", "0"):
        return False
    raise ValueError("must be yes or no")
