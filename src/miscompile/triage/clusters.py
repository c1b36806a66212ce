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
from itertools import combinations

from miscompile.base.errors import MiscompileError, StoreError
from miscompile.findings.folder import Stored
from miscompile.findings.store import Store
from miscompile.graph.model import Model
from miscompile.graph.read import read
from miscompile.ops.registry import specs
from miscompile.triage.predicate import described, inner_operators, predicate_from, underlies

_PLACE = re.compile(r"\.(?:cc|cpp|h|hpp|inl|py|rs|td):#")
"""A line of the compiler's source in a masked message, which tells causes apart by itself."""

_PART = re.compile(r"\b(?:operand|attribute) \w+")
"""The part of a call that an invalid program breaks."""

_BROKEN = re.compile(r" with broken (\w+)$")


@dataclass(frozen=True, slots=True)
class CauseCluster:
    """Findings that seem to have one cause, the one with the smallest program first; `reason` says why."""

    identifiers: tuple[str, ...]
    reason: str


def clusters(findings: Sequence[Stored]) -> list[CauseCluster]:
    """Return the clusters of two findings and more among triaged ones of one or more targets."""
    known = {stored.finding.identifier: stored for stored in findings if stored.status in ("confirmed", "known")}
    joined = _Joined(list(known))
    by_key: dict[Hashable, list[str]] = defaultdict(list)
    for identifier, stored in known.items():
        for key in _keys(stored):
            by_key[key].append(identifier)
    for same in by_key.values():
        for other in same[1:]:
            joined.join(same[0], other, "they fail in the same way")
    for first, second in combinations(known.values(), 2):
        if _same_passes(first, second):
            joined.join(first.finding.identifier, second.finding.identifier, "the passes and the pattern are the same")
    groups = joined.groups()
    return [
        CauseCluster(tuple(sorted(group, key=lambda name: (_size(known[name]), name))), reason)
        for group, reason in groups
    ]


def clusters_of(store: Store) -> list[CauseCluster]:
    """Return the clusters among the findings of a store; damaged findings are left out."""
    found = []
    for record in store.findings():
        if record.status in ("confirmed", "known"):
            with suppress(StoreError):
                found.append(store.load(record.identifier))
    return clusters(found)


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


def _keys(stored: Stored) -> Iterator[Hashable]:
    """Yield what findings of one cause have in common, for a finding without culprit passes."""
    held = stored.finding.property
    signature, model = held.signature, _model(stored)
    if signature.culprits or model is None:
        return
    operators = [op for node in model.graph.nodes for op in (node.op, *inner_operators(node))]
    broken = _BROKEN.search(signature.text)
    aspect = broken[1] if broken else ""
    if signature.kind in ("exception", "death"):
        text = _without(signature.text, operators)
        where = "" if _PLACE.search(text) else _family(operators)
        invalid = "the program is invalid" in stored.finding.message
        if text and where is not None:
            yield held.target, signature.kind, signature.stage, text, where, invalid
    elif signature.kind in ("shape", "dtype", "accepted") and len(operators) == 1:
        attributes = frozenset(model.graph.nodes[0].attributes)
        part = _PART.search(stored.finding.message)
        yield held.target, signature.kind, _family(operators), attributes, aspect, part[0] if part else ""
    elif signature.kind == "wrong":
        yield held.target, signature.kind, signature.text.rpartition(":")[0] or signature.text


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


def _same_passes(one: Stored, other: Stored) -> bool:
    """Tell whether two findings with culprits follow from one bug: equal passes and patterns, or more of both."""
    if one.finding.property.target != other.finding.property.target:
        return False
    if underlies(one, other) or underlies(other, one):
        return True
    guilty = set(one.finding.property.signature.culprits)
    if not guilty or guilty != set(other.finding.property.signature.culprits):
        return False
    return _contains(one, other) or _contains(other, one)


def _contains(one: Stored, other: Stored) -> bool:
    """Tell whether the program of `one` contains the pattern of `other`, whatever the ranks, sizes and types."""
    data, model = other.finding.facts.get("predicate"), _model(one)
    if not data or model is None:
        return False
    bug = predicate_from(data)
    values = {name: replace(value, rank=None, shape=None, dtype=None) for name, value in bug.values.items()}
    try:
        return replace(bug, values=values).matches(described(model))
    except MiscompileError:
        return False


def _model(stored: Stored) -> Model | None:
    if stored.finding.case.program.kind != "onnx":
        return None
    try:
        return read(stored.finding.case.program.payload)
    except MiscompileError:
        return None


def _size(stored: Stored) -> int:
    return int(stored.finding.facts.get("nodes", 0)) or len(stored.finding.case.program.payload)
