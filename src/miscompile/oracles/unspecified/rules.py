"""Rules of unspecified behaviour: operators whose results are random, undefined or unspecified cannot be compared.

`data/unspecified.toml` lists the operators with the reason; `library_reference` detects randomness by running an
operator twice. OPERA sorted such false alarms out by hand (paper, section VI: Mod, RoiAlign, Trilu, random operators).

    [[unspecified]]
    library = "torch"
    apis = ["torch.empty", "torch.empty_like"]     # import paths, `*` at the end stands for any rest
    kind = "undefined"                             # or "unspecified", "random"
    outputs = [1]                                  # the results, by index; default: all of them
    when = "..."                                   # a condition of `CONDITIONS`; default: always
    elements = "..."                               # elements of the first result, of `ELEMENTS`; default: all
    unless = { stable = true }                     # parameters that make the result specified
    given = { sorted = 0 }                         # parameters without which the rule does not apply
    before = 14                                    # only operator sets before this one (onnx)
    reason = "..."

A rule for an operator of torch covers its in-place version as well: `pow` covers `pow_`, `__lshift__` `__ilshift__`.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Literal, get_args

import numpy as np

from miscompile.base.errors import SpecError
from miscompile.core.case import Feed
from miscompile.core.tensor import Array
from miscompile.instances.instance import Instance
from miscompile.instances.values import Value
from miscompile.oracles.unspecified.collisions import ELEMENTS, met_twice
from miscompile.oracles.unspecified.conditions import CONDITIONS
from miscompile.oracles.unspecified.pages.verdict import broken

UnspecifiedKind = Literal["random", "undefined", "unspecified"]


@dataclass(frozen=True, slots=True)
class UnspecifiedBehaviour:
    """A rule about one or several operators. Without `outputs` and `elements`, all results are unspecified."""

    library: str
    apis: tuple[str, ...]
    kind: UnspecifiedKind
    reason: str
    outputs: tuple[int, ...] = ()
    when: str = ""
    unless: Mapping[str, Value] = field(default_factory=dict)
    given: Mapping[str, Value] = field(default_factory=dict)
    before: int = 0
    elements: str = ""

    @property
    def whole(self) -> bool:
        """Tell whether no result of an instance can be compared."""
        return not self.elements and (not self.outputs or self.kind != "unspecified")

    def covers(self, instance: Instance, feed: Feed) -> bool:
        """Tell whether the rule applies to this instance on this feed."""
        if instance.library != self.library or not self._names(instance):
            return False
        if self.before and instance.version >= self.before:
            return False
        has = instance.parameters()
        if self.unless and all(name in has and has[name] == value for name, value in self.unless.items()):
            return False
        if not all(name in has and has[name] == value for name, value in self.given.items()):
            return False
        if self.when and not CONDITIONS[self.when](instance, feed):
            return False
        open_here = met_twice(self.elements, instance) if self.elements else None
        return open_here is None or bool(open_here.any())

    def open_elements(self, instance: Instance, shape: tuple[int, ...]) -> Array:
        """Return which elements of the first result, of this shape, are unspecified, for a rule with `elements`."""
        found = met_twice(self.elements, instance)
        return np.ones(shape, bool) if found is None or found.shape != shape else found

    def _names(self, instance: Instance) -> bool:
        ways = {instance.api, _out_of_place(instance.api)} if instance.library == "torch" else {instance.api}
        return any(_matches(api, pattern) for api in ways for pattern in self.apis)


def unspecified_of(instance: Instance, feed: Feed) -> list[UnspecifiedBehaviour]:
    """Return all rules that apply to an instance on a feed.

    A node that breaks a condition of its operator's page is undefined as a whole.
    """
    said = broken(instance)
    found = [UnspecifiedBehaviour("onnx", (instance.api,), "undefined", said)] if said else []
    return found + [rule for rule in unspecified() if rule.covers(instance, feed)]


@cache
def unspecified() -> tuple[UnspecifiedBehaviour, ...]:
    """Read the rules that come with the tool. Raises SpecError when one is malformed."""
    return parse_unspecified(
        files("miscompile.oracles.unspecified").joinpath("data", "unspecified.toml").read_text("utf-8")
    )


def parse_unspecified(text: str) -> tuple[UnspecifiedBehaviour, ...]:
    """Read rules from TOML. Raises SpecError that names the error."""
    try:
        return tuple(_rule_of(row) for row in tomllib.loads(text).get("unspecified", ()))
    except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as error:
        raise SpecError(f"rules about operators are malformed: {type(error).__name__}: {error}") from None


def _rule_of(row: Mapping[str, object]) -> UnspecifiedBehaviour:
    given = dict(row)
    kind, when, elements = str(given["kind"]), str(given.get("when", "")), str(given.get("elements", ""))
    if kind not in get_args(UnspecifiedKind) or when not in ("", *CONDITIONS) or elements not in ("", *ELEMENTS):
        raise ValueError(f"kind {kind}, when {when}, elements {elements}")
    apis, outputs = given["apis"], given.get("outputs", [])
    unless, needed = given.get("unless", {}), given.get("given", {})
    if not isinstance(apis, list) or not isinstance(outputs, list):
        raise TypeError("apis and outputs are lists")
    if not isinstance(unless, dict) or not isinstance(needed, dict):
        raise TypeError("unless and given are tables")
    return UnspecifiedBehaviour(
        str(given["library"]), tuple(map(str, apis)), kind, str(given["reason"]),  # type: ignore[arg-type]
        tuple(int(place) for place in outputs), when, dict(unless), dict(needed), int(str(given.get("before", 0))),
        elements,
    )  # fmt: skip


def _matches(api: str, pattern: str) -> bool:
    return api.startswith(pattern[:-1]) if pattern.endswith("*") else api == pattern


def _out_of_place(api: str) -> str:
    """Return the out-of-place version of an in-place operator of torch, else the operator itself."""
    found = re.sub(r"__i(lshift|rshift|pow|floordiv|mod|truediv|add|sub|mul|and|or|xor)__$", r"__\1__", api)
    return found[:-1] if found.endswith("_") and not found.endswith("__") else found
