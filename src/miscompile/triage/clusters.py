"""Clusters of findings that seem to have one root cause, so that a person files one issue for them.

A signature tells bugs apart by what fails, and one cause may fail in several ways: a fusion that drops a dimension
gives a wrong shape, wrong values, and errors of other passes; an importer that loses an empty constant fails in each
operator that takes one. Clusters are a reading aid. Nothing is merged, because two bugs may look alike.
"""

import re
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

from miscompile.base.errors import MiscompileError, StoreError
from miscompile.findings.folder import REPEATED, Stored
from miscompile.findings.store import Store
from miscompile.graph.model import Model
from miscompile.graph.read import read
from miscompile.ops.registry import specs
from miscompile.oracles.disruptive import INVALID, UNDEFINED
from miscompile.triage.predicate import BugPredicate, Described, described, inner_operators, predicate_from

_PLACE = re.compile(r"\.(?:cc|cpp|h|hpp|inl|py|rs|td):#")
"""A line of the compiler's source in a masked message, which tells causes apart by itself."""

_PART = re.compile(r"\b(?:operand|attribute) \w+")
"""The part of a call that an invalid program breaks."""

_MANY = 3
"""Operators that tell causes apart by themselves, because a reduced program has none that its failure can do without.
"""

_BROKEN = re.compile(r" with broken (\w+)$")


@dataclass(frozen=True, slots=True)
class CauseCluster:
    """Findings that seem to have one cause, the smallest program that shows it by default first; `reason` says why."""

    identifiers: tuple[str, ...]
    reason: str


def clusters(findings: Sequence[Stored]) -> list[CauseCluster]:
    """Return the clusters of two findings and more among triaged ones of one or more targets."""
    triaged = [_Triaged(stored) for stored in findings if stored.status in REPEATED]
    joined = _Joined([one.name for one in triaged])
    by_key: dict[Hashable, list[str]] = defaultdict(list)
    for one in triaged:
        for key in _keys(one):
            by_key[key].append(one.name)
    for same in by_key.values():
        for other in same[1:]:
            joined.join(same[0], other, "they fail in the same way")
    for first, second in combinations([one for one in triaged if one.culprits], 2):
        if not joined.together(first.name, second.name) and (_follows(first, second) or _follows(second, first)):
            joined.join(first.name, second.name, "the passes and the pattern are the same")
    sizes = {one.name: (one.stored.status == "non-default", one.size, one.name) for one in triaged}
    return [CauseCluster(tuple(sorted(names, key=sizes.__getitem__)), reason) for names, reason in joined.groups()]


def clusters_of(store: Store) -> list[CauseCluster]:
    """Return the clusters among the findings of a store; damaged findings are left out."""
    found = []
    for record in store.findings():
        if record.status in REPEATED:
            with suppress(StoreError):
                found.append(store.load(record.identifier))
    return clusters(found)


def one_of_each_cause(store: Store) -> list[str]:
    """Return the confirmed findings without those that seem to have the cause of a smaller one."""
    more = {name for cluster in clusters_of(store) for name in cluster.identifiers[1:]}
    return [record.identifier for record in store.findings("confirmed") if record.identifier not in more]


class _Triaged:
    """A triaged finding; its program and its pattern are read when they are first asked for."""

    def __init__(self, stored: Stored) -> None:
        self.stored, self.name = stored, stored.finding.identifier
        self.culprits = frozenset(stored.finding.property.signature.culprits)
        self.size = int(stored.finding.facts.get("nodes", 0)) or len(stored.finding.case.program.payload)

    @cached_property
    def model(self) -> Model | None:
        """The program; None if it is no ONNX model, or cannot be read."""
        program = self.stored.finding.case.program
        try:
            return read(program.payload) if program.kind == "onnx" else None
        except MiscompileError:
            return None

    @cached_property
    def described(self) -> Described | None:
        """The program as patterns are held against it."""
        try:
            return None if self.model is None else described(self.model)
        except MiscompileError:
            return None

    @cached_property
    def pattern(self) -> BugPredicate | None:
        """The pattern of the bug, whatever the ranks and sizes."""
        data = self.stored.finding.facts.get("predicate")
        return _loosened(predicate_from(data), rank=None, shape=None) if data else None

    @cached_property
    def untyped_pattern(self) -> BugPredicate | None:
        """The pattern of the bug, whatever the ranks, sizes and types."""
        return _loosened(self.pattern, dtype=None) if self.pattern else None


def _loosened(bug: BugPredicate, **changes: None) -> BugPredicate:
    return replace(bug, values={name: replace(value, **changes) for name, value in bug.values.items()})


class _Joined:
    """Disjoint sets of identifiers, each with the reason by which it was first joined."""

    def __init__(self, names: Sequence[str]) -> None:
        self._parent = {name: name for name in names}
        self._reason: dict[str, str] = {}

    def join(self, one: str, other: str, reason: str) -> None:
        """Put both into one set."""
        root, second = self._root(one), self._root(other)
        if root != second:
            self._parent[second] = root
            self._reason.setdefault(root, self._reason.get(second, reason))

    def together(self, one: str, other: str) -> bool:
        """Tell whether both are in one set."""
        return self._root(one) == self._root(other)

    def groups(self) -> list[tuple[list[str], str]]:
        """Return the sets of two names and more, with their reasons."""
        found: dict[str, list[str]] = defaultdict(list)
        for name in self._parent:
            found[self._root(name)].append(name)
        return [(names, self._reason[root]) for root, names in found.items() if len(names) > 1]

    def _root(self, name: str) -> str:
        while self._parent[name] != name:
            name = self._parent[name]
        return name


def _keys(one: _Triaged) -> Iterator[Hashable]:
    """Yield what findings of one cause have in common, for a finding without culprit passes."""
    held, stored, model = one.stored.finding.property, one.stored, one.model
    signature = held.signature
    if one.culprits or model is None:
        return
    operators = [op for node in model.graph.nodes for op in (node.op, *inner_operators(node))]
    broken = _BROKEN.search(signature.text)
    aspect = broken[1] if broken else ""
    if signature.kind in ("exception", "death"):
        text = _without(signature.text, operators)
        where = "" if _PLACE.search(text) else _family(operators)
        invalid = any(fault in stored.finding.message for fault in (INVALID, UNDEFINED))
        if text and where is not None:
            yield held.target, signature.kind, signature.stage, text, where, invalid
        if len(model.graph.nodes) >= _MANY and not invalid:
            yield held.target, signature.kind, signature.stage, tuple(sorted(node.op for node in model.graph.nodes))
    elif signature.kind in ("shape", "dtype", "accepted") and len(operators) == 1:
        attributes = frozenset(model.graph.nodes[0].attributes)
        part = _PART.search(stored.finding.message)
        yield held.target, signature.kind, _family(operators), attributes, aspect, part[0] if part else ""
    elif signature.kind in ("wrong", "special", "cost"):
        yield held.target, signature.kind, signature.stage, signature.text.rpartition(":")[0] or signature.text


def _without(text: str, operators: Sequence[str]) -> str:
    """Return a message without the names of the program's operators."""
    for name in sorted(set(operators), key=len, reverse=True):
        text = re.sub(rf"\b{re.escape(name)}\b", "<operator>", text)
    return text


def _family(operators: Sequence[str]) -> str | None:
    """Return the family of the operators; None if they are of several, or one has none."""
    known = specs()
    found = {known[name].family if name in known else None for name in operators}
    return found.pop() if len(found) == 1 else None


def _follows(cause: _Triaged, other: _Triaged) -> bool:
    """Tell whether `other` needs the passes of `cause`, and perhaps more, and its program contains that one's pattern.

    With further passes, the element types must be those of the pattern too: another type may be another bug.
    """
    pattern = cause.untyped_pattern if cause.culprits == other.culprits else cause.pattern
    if not cause.culprits <= other.culprits or pattern is None or other.described is None:
        return False
    same = cause.stored.finding.property.target == other.stored.finding.property.target
    return same and pattern.matches(other.described)
