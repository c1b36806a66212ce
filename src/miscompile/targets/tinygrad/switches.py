"""tinygrad's rewrite rules and optimising functions as passes, which can be named, observed and switched off.

tinygrad optimises by pattern matchers: lists of (pattern, function) that `PatternMatcher.rewrite` tries in order.
Sums of matchers share the pattern objects, so the pattern identifies a rule in every matcher.

A rule is called `matcher:pattern`, where the pattern is spelled from its operators and the names of its variables:
`symbolic_simple:MUL(x.1)` is the rule of `symbolic_simple` that replaces x * 1. Line numbers change with every
release, and ordinals with every new rule; this spelling only changes with the rule.

Three optimisations are functions instead and are wrapped. tinygrad has switches for two of them (NOOPT,
NO_MEMORY_PLANNER). The third, which merges adjacent loads and stores into vectors, has an environment variable that is
read once per process, so its wrapper skips it.
"""

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from tinygrad.uop.ops import GroupOp, Ops, PatternMatcher, UPat

from miscompile.targets.tinygrad.names import MATCHERS
from miscompile.targets.tinygrad.releases import STAGE_FUNCTIONS, present

_GROUPS = {
    frozenset(members): name
    for name, members in vars(GroupOp).items()
    if isinstance(members, set | frozenset) and len(members) > 1
}
_FEW = 4
_TABLE = "_rules_that_are_on"

_original = PatternMatcher.rewrite


def spell(pattern: UPat) -> str:
    """Return `pattern` as text without spaces and commas: operators, then operands in brackets, separated by dots.

    Of alternatives only the first is spelled; commutative operands are in the order of the source.
    """
    if pattern.op == (Ops.CONST,):
        return str(pattern.arg) if pattern.arg is not None else (pattern.name or "const")
    if _is_any(pattern):
        return spell(pattern.src[0][0])
    if pattern.op is None:
        head = pattern.name or "_"
    else:
        found = sorted(op.name for op in pattern.op)
        head = _GROUPS.get(frozenset(pattern.op)) or ("_or_".join(found) if len(found) < _FEW else f"{len(found)}ops")
    if pattern.src is None:
        return head
    given = pattern._in_src
    operands = [given] if isinstance(given, UPat) else given
    return f"{head}({'.'.join(map(spell, operands))})"


def rules() -> Iterator[tuple[str, UPat]]:
    """Yield the name and the pattern of every rule of `MATCHERS`; a matcher that this release lacks has none."""
    seen: set[int] = set()
    counts: dict[str, int] = {}
    for path in MATCHERS:
        for pattern in _patterns(path):
            if id(pattern) not in seen:
                seen.add(id(pattern))
                name = f"{path.rpartition('.')[2]}:{spell(pattern)}"
                counts[name] = counts.get(name, 0) + 1
                yield (name if counts[name] == 1 else f"{name}#{counts[name]}"), pattern


def _patterns(path: str) -> list[UPat]:
    return [pattern for matcher in present(path) for pattern, _ in matcher.patterns]


def _is_any(pattern: UPat) -> bool:
    """Tell whether a pattern is a list of alternatives; they are a class of their own before release 0.12."""
    return bool(getattr(pattern, "is_any", type(pattern) is not UPat))


class Switch:
    """Replaces `PatternMatcher.rewrite`, to switch rules off and to record rules that fire.

    `known` maps the identity of a pattern to its rule's name. The matchers themselves do not change.
    """

    def __init__(self, known: dict[int, str]) -> None:
        self.known = known
        self.names = frozenset(known.values())
        self.fired: dict[str, None] = {}
        self._off: frozenset[str] = frozenset()

    def set(self, off: frozenset[str], observe: bool) -> None:
        """Switch the rules `off`, clear the record of fired rules, and record them from now on if `observe`."""
        self.fired = {}
        if off != self._off:
            self._off = off
        PatternMatcher.rewrite = self._rewriter(observe) if off or observe else _original

    def _table(self, matcher: PatternMatcher) -> dict[Any, list[Any]]:
        """The rules of `matcher` by operator, without those that are off; cached in the matcher."""
        table: dict[Any, list[Any]]
        off, table = matcher.__dict__.get(_TABLE, (None, {}))
        if off is not self._off:
            table = {op: [entry for entry in entries if self._on(entry)] for op, entries in matcher.pdict.items()}
            matcher.__dict__[_TABLE] = self._off, table
        return table

    def _on(self, entry: Any) -> bool:  # noqa: ANN401 - a list of tinygrad's
        return self.known.get(id(entry[0]), "") not in self._off

    def _rewriter(self, observe: bool) -> Callable[..., Any]:
        """Return tinygrad's `rewrite` with filtered tables; a rule fires when its result differs from its operand."""
        known, fired = self.known, self.fired

        def rewrite(matcher: PatternMatcher, uop: Any, ctx: Any = None) -> Any:  # noqa: ANN401 - as in tinygrad
            entries = self._table(matcher).get(uop.op)
            if not entries:
                return None
            operators = uop.__dict__.get("_src_ops")
            if operators is None:
                uop.__dict__["_src_ops"] = operators = {operand.op for operand in uop.src}
            for pattern, match, needed in entries:
                if needed.issubset(operators):
                    result = match(uop, ctx)
                    if result is not None and result is not uop:
                        if observe and id(pattern) in known:
                            fired[known[id(pattern)]] = None
                        return result
            return None

        return rewrite


_CONTEXT = {"hand_coded_optimizations": "NOOPT", "memory_plan_rewrite": "NO_MEMORY_PLANNER"}


def _changed(stage: str, before: Any, after: Any) -> bool:  # noqa: ANN401 - tinygrad's types
    """Tell whether a stage that made `after` of `before` has changed something; old releases return lists."""
    if stage == "hand_coded_optimizations":
        return bool(after if isinstance(after, list) else after.applied_opts)
    if isinstance(after, list):
        return any(one.bufs != other.bufs for one, other in zip(before, after, strict=True))
    return after is not before


class Stages:
    """Wraps the functions when it is constructed; a wrapped function behaves as before unless it is off."""

    def __init__(self) -> None:
        self.fired: dict[str, None] = {}
        self._off: frozenset[str] = frozenset()
        self._observe = False
        for stage, paths in STAGE_FUNCTIONS.items():
            for path in [path for path in paths if present(path)][:1]:
                module, _, name = path.rpartition(".")
                setattr(import_module(module), name, self._wrap(stage, *present(path)))

    def set(self, off: frozenset[str], observe: bool) -> None:
        """Switch the stages `off`, clear the record of fired stages, and record them from now on if `observe`."""
        self._off, self._observe, self.fired = off, observe, {}

    @staticmethod
    def context(off: frozenset[str]) -> dict[str, int]:
        """Return tinygrad's switches for the stages `off`."""
        return {variable: int(name in off) for name, variable in _CONTEXT.items()}

    def _wrap(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(subject: Any, *rest: Any, **options: Any) -> Any:  # noqa: ANN401 - tinygrad's types
            if stage in self._off:
                return subject
            result = function(subject, *rest, **options)
            if self._observe and _changed(stage, subject, result):
                self.fired[stage] = None
            return result

        return wrapper
