"""Option values as people write them: `5m`, `2G`, `0.3`, `Add,Mul`. Each function is a click callback.

They take None for an option that was not given, return None for it, and raise click's BadParameter.
"""

import math
import re

import click

from miscompile.base.errors import SpecError
from miscompile.base.specs import Spec, parse_spec

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SIZES = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}


def duration(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """Return seconds from `90`, `90s`, `5m`, `2h` or `1h30m`; not negative."""
    if value is None:
        return None
    text = value.strip().lower()
    pieces = re.findall(r"(\d+(?:\.\d+)?)([smhd]?)", text)
    if not pieces or "".join(number + unit for number, unit in pieces) != text:
        raise click.BadParameter(f"'{value}' is no duration; write 90, 5m, 2h or 1h30m", ctx, param)
    if len(pieces) > 1 and not all(unit for _, unit in pieces):
        raise click.BadParameter(f"'{value}' is no duration; give each part a unit, as in 1h30m", ctx, param)
    return sum(float(number) * _UNITS[unit] for number, unit in pieces)


def size(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """Return bytes from `800M`, `2G` or `2GiB`: powers of two, more than zero."""
    if value is None:
        return None
    found = re.fullmatch(r"(\d{1,12}(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", value.strip().lower())
    if not found or float(found[1]) <= 0:
        raise click.BadParameter(f"'{value}' is no size; write 800M or 2G", ctx, param)
    return int(float(found[1]) * 2 ** _SIZES[found[2]])


def names(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...]:
    """Return the names in `Add,Mul`, each once; `()` for an option that was not given."""
    if value is None:
        return ()
    found = tuple(dict.fromkeys(name.strip() for name in value.split(",") if name.strip()))
    if not found:
        raise click.BadParameter("give at least one name", ctx, param)
    return found


def specs(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> tuple[Spec, ...]:
    """Return the specs in an option that can be repeated, such as `resist{classes=fusion}`."""
    try:
        return tuple(map(parse_spec, value))
    except SpecError as error:
        raise click.BadParameter(str(error), ctx, param) from None


def span(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, int] | None:
    """Return the ends of `3..12`, or of `5` twice; at least 1, the smaller one first."""
    if value is None:
        return None
    found = re.fullmatch(r"\s*(\d{1,6})(?:\.\.(\d{1,6}))?\s*", value)
    least, most = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
    if not 1 <= least <= most:
        raise click.BadParameter(f"'{value}' is no span; write 5 or 3..12", ctx, param)
    return least, most


def probability(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """Return a number from 0 to 1."""
    if value is None:
        return None
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not 0.0 <= number <= 1.0:
        raise click.BadParameter(f"'{value}' is no probability; write a number from 0 to 1", ctx, param)
    return number
