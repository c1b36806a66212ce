"""What may not be held against a front end, by rule: operators whose results are random, undefined or not specified.

`data/doubts.toml` says it of single operators, with the reason; chance is found by running an operator twice, see
`reference`. OPERA sorted such false alarms out by hand (paper, section VI: Mod, RoiAlign, Trilu, random operators).

    [[doubt]]
    library = "torch"
    apis = ["torch.empty", "torch.empty_like"]     # import paths, `*` at the end stands for any rest
    kind = "undefined"                             # or "unspecified", "random"
    outputs = [1]                                  # which results, by place; left out: all of them
    when = "..."                                   # a condition of `CONDITIONS`; left out: always
    unless = { stable = true }                     # parameters that lift the doubt
    given = { sorted = 0 }                         # parameters without which there is none
    before = 14                                    # only operator sets before this one (onnx)
    reason = "..."
"""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Literal, get_args

import numpy as np

from miscompile.base.dtypes import DTYPES
from miscompile.base.errors import SpecError
from miscompile.core.case import Feed
from miscompile.core.tensor import Tensor
from miscompile.instances.instance import Instance
from miscompile.instances.values import Value

DoubtKind = Literal["random", "undefined", "unspecified"]


@dataclass(frozen=True, slots=True)
class Doubt:
    """A rule about one or several operators. With `outputs` empty, all results are in doubt."""

    library: str
    apis: tuple[str, ...]
    kind: DoubtKind
    reason: str
    outputs: tuple[int, ...] = ()
    when: str = ""
    unless: Mapping[str, Value] = field(default_factory=dict)
    given: Mapping[str, Value] = field(default_factory=dict)
    before: int = 0

    def covers(self, instance: Instance, feed: Feed) -> bool:
        """Tell whether the rule is about this instance, run on this feed."""
        if instance.library != self.library or not any(_matches(instance.api, api) for api in self.apis):
            return False
        if self.before and instance.version >= self.before:
            return False
        has = instance.parameters()
        if self.unless and all(name in has and has[name] == value for name, value in self.unless.items()):
            return False
        if not all(name in has and has[name] == value for name, value in self.given.items()):
            return False
        return not self.when or CONDITIONS[self.when](feed)


def doubts_of(instance: Instance, feed: Feed) -> list[Doubt]:
    """Return all rules about an instance."""
    return [doubt for doubt in doubts() if doubt.covers(instance, feed)]


def beyond_integers(feed: Feed, results: Sequence[Tensor | None]) -> bool:
    """Tell whether floats that no integer type holds may have been converted to integers: undefined in C++.

    That is possible where an operator takes floats that are not finite, or beyond 31 bits, and gives integers.
    """
    wild = any(
        DTYPES[value.dtype].kind == "float" and value.array.size and not _tame(value) for value in feed
    )  # fmt: skip
    return wild and any(value is not None and DTYPES[value.dtype].kind in ("int", "uint") for value in results)


def _tame(value: Tensor) -> bool:
    numbers = np.asarray(value.numbers(), np.float64)
    return bool(np.isfinite(numbers).all() and np.abs(numbers).max() < 2.0**31)


def _shifts_too_far(feed: Feed) -> bool:
    """A shift by a negative number of bits, or by as many as there are: undefined in C++."""
    if len(feed) < 2:
        return False
    bits = DTYPES[feed[0].dtype].bits
    by = np.asarray(feed[1].numbers())
    return bool(by.size and ((by < 0) | (by >= bits)).any())


def _divides_by_zero(feed: Feed) -> bool:
    """An integer divided by zero, or the least integer by minus one."""
    if len(feed) < 2 or any(DTYPES[value.dtype].kind not in ("int", "uint") for value in feed[:2]):
        return False
    by = np.asarray(feed[1].numbers())
    least = np.asarray(feed[0].numbers()) == DTYPES[feed[0].dtype].low
    return bool(by.size and ((by == 0).any() or ((by == -1).any() and least.any())))


def _has_negative_variance(place: int) -> Callable[[Feed], bool]:
    """Return the condition that the operand at `place` is below zero somewhere, which no variance is."""
    return lambda feed: len(feed) > place and bool((np.asarray(feed[place].numbers()) < 0).any())


def _all_whole(feed: Feed) -> bool:
    """All operands are integers."""
    return bool(feed) and all(DTYPES[value.dtype].kind in ("int", "uint") for value in feed)


def _has_double(feed: Feed) -> bool:
    """An operand is float64."""
    return any(value.dtype == "float64" for value in feed)


CONDITIONS: Mapping[str, Callable[[Feed], bool]] = {
    "shifts too far": _shifts_too_far,
    "divides by zero": _divides_by_zero,
    "all operands are integers": _all_whole,
    "an operand is float64": _has_double,
    "third operand is a negative variance": _has_negative_variance(2),
    "fifth operand is a negative variance": _has_negative_variance(4),
}


@cache
def doubts() -> tuple[Doubt, ...]:
    """Read the rules that come with the tool. Raises SpecError when one is malformed."""
    return parse_doubts(files("miscompile.migration").joinpath("data", "doubts.toml").read_text("utf-8"))


def parse_doubts(text: str) -> tuple[Doubt, ...]:
    """Read rules from TOML. Raises SpecError that names what is wrong."""
    try:
        return tuple(_doubt(row) for row in tomllib.loads(text).get("doubt", ()))
    except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as error:
        raise SpecError(f"rules about operators are malformed: {type(error).__name__}: {error}") from None


def _doubt(row: Mapping[str, object]) -> Doubt:
    given = dict(row)
    kind, when = str(given["kind"]), str(given.get("when", ""))
    if kind not in get_args(DoubtKind) or (when and when not in CONDITIONS):
        raise ValueError(f"kind {kind}, when {when}")
    apis, outputs = given["apis"], given.get("outputs", [])
    unless, needed = given.get("unless", {}), given.get("given", {})
    if not isinstance(apis, list) or not isinstance(outputs, list):
        raise TypeError("apis and outputs are lists")
    if not isinstance(unless, dict) or not isinstance(needed, dict):
        raise TypeError("unless and given are tables")
    return Doubt(
        str(given["library"]), tuple(map(str, apis)), kind, str(given["reason"]),  # type: ignore[arg-type]
        tuple(int(place) for place in outputs), when, dict(unless), dict(needed), int(str(given.get("before", 0))),
    )  # fmt: skip


def _matches(api: str, pattern: str) -> bool:
    return api.startswith(pattern[:-1]) if pattern.endswith("*") else api == pattern
