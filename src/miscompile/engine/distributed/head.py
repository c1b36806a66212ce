"""The head of a campaign on several machines: gives out shards, merges their findings into the store, announces them.

Each node runs the coordinator of a single machine on one shard at a time (`engine.distributed.shard`). The head runs
no compiler and knows no cluster software: `Nodes` are the nodes as it sees them.
"""

import json
import signal
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any, Protocol

from miscompile.base.errors import ExecutionError, StoreError, UsageError
from miscompile.core.events import Event, Found, Notice, Progress, Started
from miscompile.core.ports import Listener
from miscompile.engine.coordinator import Portion, begin, plan_to_run
from miscompile.engine.distributed.parcel import Parcel, pack, pack_known, unpack
from miscompile.engine.distributed.shard import ShardOrders, row_from
from miscompile.engine.distributed.shards import Shard, ShardBook
from miscompile.engine.known_bugs import (
    KnownBugs,
    enter_findings,
    learn_variant,
    name_in_ledger,
    new_ones,
    release_under_test,
    without_entry,
)
from miscompile.engine.plan import Plan
from miscompile.findings import folder
from miscompile.findings.folder import REPEATED, Stored
from miscompile.findings.ledger import Ledger
from miscompile.findings.store import Store
from miscompile.triage.recognition import SignedPredicate, signed_predicates_of

MOST_FAILURES = 3
"""Shards that fail on a node one after another before the node gets no more."""

WAIT_FOR_NODES = 120.0
"""Seconds without any usable node after which a campaign fails."""

_TURN = 0.2
_DRAIN = 30.0
"""Seconds that nodes get to report their shards after an interrupt."""


@dataclass(frozen=True, slots=True)
class NodeJoined:
    """A node is ready for its first shard; it has so many CPUs."""

    node: str
    cpus: int


@dataclass(frozen=True, slots=True)
class NodeSaid:
    """The shard on a node wrote a message, or `status`: its process has ended."""

    node: str
    message: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class NodeLost:
    """A node, or the process that served it, died; it may join again."""

    node: str
    cause: str


@dataclass(frozen=True, slots=True)
class NodeUnfit:
    """A node cannot take part, for a reason that its owner can mend."""

    node: str
    reason: str


NodeEvent = NodeJoined | NodeSaid | NodeLost | NodeUnfit


class Nodes(Protocol):
    """The nodes of a cluster, each of which runs one shard at a time."""

    @property
    def joining(self) -> bool:
        """Tell whether a node may join soon."""
        ...

    def events(self, timeout: float) -> Iterator[NodeEvent]:
        """Yield what happened, waiting up to `timeout` seconds for the first."""
        ...

    def give(self, node: str, orders: str) -> None:
        """Start the shard with these orders on a node that has none."""
        ...

    def stop(self) -> None:
        """Ask the shards on all nodes to stop and to report."""
        ...


def fuzz_on(nodes: Nodes, plan: Plan, listeners: Sequence[Listener], *, install: bool = False) -> None:
    """Run a campaign on `nodes` until its limits are reached; its findings are in `plan.out` afterwards.

    With `plan.tests`, `plan.workers` lanes share the tests, as they do on a single machine; otherwise each node runs a
    lane for each of its CPUs. KeyboardInterrupt stops the campaign cleanly and is raised again. Raises UsageError when
    no node can do its work, and ExecutionError when no node is left.
    """
    if plan.finite:
        raise UsageError(f"--ray: the tasks of the producer '{plan.producers[0]}' are divided on one machine only")
    plan, found = plan_to_run(plan)
    with Store.open(plan.out) as store:
        plan = replace(plan, number=begin(store, plan, found))
        for listener in listeners:
            listener.on(Started())
        with Ledger.open(plan.ledger_file) as ledger:
            _Head(nodes, plan, store, ledger, listeners, install=install).run()


@dataclass(slots=True)
class _Node:
    """A node and the shard that it runs."""

    cpus: int
    shard: Shard | None = None
    triaged: frozenset[str] = frozenset()
    """Pending findings that it triages."""
    progress: Mapping[str, int] = field(default_factory=dict)
    ended: bool = False
    problem: str = ""


class _Head:
    """One session of a campaign on several machines."""

    def __init__(
        self, nodes: Nodes, plan: Plan, store: Store, ledger: Ledger, listeners: Sequence[Listener], *, install: bool
    ) -> None:
        self.nodes, self.plan, self.store, self.listeners, self.install = nodes, plan, store, listeners, install
        releases = {target: release_under_test(target) for target in plan.targets}
        self.known = KnownBugs(ledger, name_in_ledger(store.campaign()), releases)
        self.members: dict[str, _Node] = {}
        self.refused: dict[str, UsageError | ExecutionError] = {}
        """Nodes that get no more shards, with the reason."""
        self.failures: Counter[str] = Counter()
        """By node: shards that failed one after another."""
        self.counters: Counter[str] = Counter()
        lanes = None if plan.tests is None else min(plan.workers, plan.tests)
        self.book = ShardBook(lanes, plan.seconds)
        self.untriaged = {record.identifier for record in store.pending()}
        self.taken: set[str] = set()
        """Findings of this session that are merged."""
        self.started = self.served = time.monotonic()
        self.session = store.begin_session(time.time())
        for problem in enter_findings(self.known, store):
            self._tell(Notice(problem))
        self.steered = self._steered()

    def run(self) -> None:
        """Give out shards until the limits are reached and all shards have ended."""
        ending = "failed"
        try:
            while not self.book.is_over(self._elapsed()) or self._running():
                with _interrupts_deferred():
                    self._turn()
                    for name, member in self.members.items():
                        if member.shard is None:
                            self._employ(name, member)
                self._require_nodes()
            ending = "done"
        except KeyboardInterrupt:
            ending = "interrupted"
            self._tell(Notice("stopping; the findings so far are kept"))
            self._drain()
            raise
        finally:
            self.store.reindex()
            self.store.note_session(self.session, self._elapsed(), ending)

    def _turn(self) -> None:
        for event in self.nodes.events(_TURN):
            match event:
                case NodeJoined(node, cpus):
                    if node not in self.refused:
                        self.members[node] = _Node(cpus)
                case NodeSaid(node, message):
                    if node in self.members:
                        self._take(node, self.members[node], message)
                case NodeLost(node, cause):
                    self._lose(node, cause)
                case NodeUnfit(node, reason):
                    self.refused[node] = UsageError(f"{node}: {reason}")
                    self._tell(Notice(f"{node} gets no shards: {reason}"))
        running = sum((Counter(member.progress) for member in self.members.values()), Counter[str]())
        self._tell(Progress(self._elapsed(), dict(self.counters + running)))

    def _running(self) -> bool:
        return any(member.shard for member in self.members.values())

    def _employ(self, name: str, member: _Node) -> None:
        """Give an idle node a shard, if there is one."""
        shard = self.book.take(member.cpus, self._elapsed())
        if shard is None:
            return
        member.shard, member.triaged, member.ended, member.problem = shard, frozenset(self.untriaged), False, ""
        self.untriaged.clear()
        # With a number of tests the campaign is repeatable, so that all of its shards steer past the same bugs.
        steered = self.steered if self.plan.tests is not None else self._steered()
        portion = Portion(self.session, shard.first, self.plan.workers, steered)
        plan = replace(self.plan, seconds=shard.seconds, workers=shard.lanes, resume=False)
        self.nodes.give(name, ShardOrders(plan, portion, self._known(shard, member.triaged), self.install).as_json())

    def _known(self, shard: Shard, pending: frozenset[str]) -> dict[str, Parcel]:
        """Return the findings that a shard need not triage, and the pending ones that it shall.

        Those that the same lanes reported before their node died are left out: they are no duplicates of themselves.
        """
        known: dict[str, Parcel] = {}
        for record in self.store.findings():
            if record.identifier in pending or record.status in REPEATED:
                stored = self._load(record.identifier)
                if stored is not None and not self._is_of(stored, shard):
                    known[record.identifier] = (pack if record.identifier in pending else pack_known)(stored)
        return known

    def _is_of(self, stored: Stored, shard: Shard) -> bool:
        recipe = stored.finding.case.recipe
        return recipe.get("session") == self.session and recipe.get("lane") in shard.numbers

    def _steered(self) -> tuple[SignedPredicate, ...]:
        if not self.plan.steer:
            return ()
        stored = (self._load(record.identifier) for record in self.store.findings())
        found = [bug for one in stored if one is not None for bug in signed_predicates_of(one)]
        others, problems = self.known.steered()
        for problem in problems:
            self._tell(Notice(problem))
        return (*found, *new_ones(others, found))

    def _load(self, identifier: str) -> Stored | None:
        """Read a finding; a damaged one is left out and told."""
        try:
            return self.store.load(identifier)
        except StoreError as error:
            self._tell(Notice(str(error)))
            return None

    def _take(self, name: str, member: _Node, message: Mapping[str, Any]) -> None:
        match message:
            case {"progress": counters}:
                member.progress = counters
            case {"notice": text}:
                self._tell(Notice(f"{name}: {text}"))
            case {"found": parcel, "identifier": identifier} | {"kept": parcel, "identifier": identifier}:
                self._merge(unpack(parcel, identifier))
            case {"ended": report}:
                self._complete(name, member, report)
            case {"usage": text}:
                self.refused[name] = UsageError(f"{name}: {text}")
            case {"failure": text}:
                member.problem = text
            case {"status": status}:
                self._release(name, member, status)
            case _:
                raise ExecutionError(f"{name} sent an unknown message: {json.dumps(message)[:200]}")

    def _merge(self, stored: Stored) -> None:
        """Enter a finding by the rules of a single machine; announce it if it is new."""
        identifier = stored.finding.identifier
        if identifier in self.taken:  # a shard that is done again finds it again
            return
        self.taken.add(identifier)
        if stored.status not in REPEATED:
            self.store.update(stored)
            return
        stored = without_entry(stored)  # a shard has entered it in a ledger of its own
        folder.save(self.store.path, stored)
        # A shard tells its findings apart from those that it knows. Two shards that triage one signature at the same
        # time have met what a single machine counts as a duplicate without triage.
        settled = self.store.settle(identifier)
        if settled is None:
            learn_variant(self.store, stored)
            return
        fresh = self.known.enter(settled)
        if fresh == settled or self.store.update(fresh):
            self._tell(Found(fresh.finding, fresh=fresh.status == "confirmed"))

    def _complete(self, name: str, member: _Node, report: Mapping[str, Any]) -> None:
        """Count a shard; only here, so that a shard that is done again counts once."""
        member.ended, member.progress = True, {}
        self.failures.pop(name, None)
        self.counters.update(report["counters"])
        self.store.add_counters(report["counters"])
        self.store.add_pass_activity(tuple(row) for row in report["activity"])
        for row in map(row_from, report["rows"]):
            if row.duplicates:
                self.store.add_duplicates(row, row.duplicates)
        self.store.note_session(self.session, self._elapsed())
        self.known.save()

    def _release(self, name: str, member: _Node, status: int) -> None:
        """The process of a shard is gone: the node is free, and the shard is done again unless it was completed."""
        if not member.ended:
            cause = member.problem or f"its process ended with status {status}"
            self._tell(Notice(f"a shard failed on {self.refused.get(name) or f'{name}: {cause}'}"))
            self._fail(name, member, cause)
        member.shard, member.triaged, member.progress = None, frozenset(), {}
        if name in self.refused:
            self.members.pop(name, None)

    def _lose(self, name: str, cause: str) -> None:
        member = self.members.pop(name, None)
        again = "; its shard is done again" if member is not None and member.shard and not member.ended else ""
        self._tell(Notice(f"{name} is lost ({cause}){again}"))
        self._fail(name, member, cause)

    def _fail(self, name: str, member: _Node | None, cause: str) -> None:
        """Have the shard of a node done again, and refuse the node when that happens too often."""
        if member is not None and not member.ended:
            self._redo(member)
        self.failures[name] += 1
        if name not in self.refused and self.failures[name] >= MOST_FAILURES:
            self.refused[name] = ExecutionError(f"{name}: {cause}")
            self._tell(Notice(f"{name} gets no more shards, because it failed {MOST_FAILURES} times"))

    def _redo(self, member: _Node) -> None:
        if member.shard is None:
            return
        self.untriaged |= member.triaged - self.taken
        if dropped := self.book.give_back(member.shard):
            self._tell(Notice(f"lanes {dropped[0]} to {dropped[-1]} are given up: they failed too often"))

    def _require_nodes(self) -> None:
        """Raise the error of the nodes when none is usable."""
        if self.members:
            self.served = time.monotonic()
        elif self.refused and not self.nodes.joining:
            raise list(self.refused.values())[-1]
        elif time.monotonic() - self.served > WAIT_FOR_NODES:
            raise ExecutionError(f"no node of the cluster was free for {WAIT_FOR_NODES:.0f} seconds; see `ray status`")

    def _drain(self) -> None:
        """After an interrupt: let the shards end and report, for at most half a minute."""
        self.nodes.stop()
        until = time.monotonic() + _DRAIN
        while self._running() and time.monotonic() < until:
            with _interrupts_deferred():
                self._turn()

    def _tell(self, event: Event) -> None:
        for listener in self.listeners:
            listener.on(event)

    def _elapsed(self) -> float:
        return time.monotonic() - self.started


@contextmanager
def _interrupts_deferred() -> Iterator[None]:
    """Handle SIGINT and SIGTERM at the end of this block, so that no message is lost between arrival and store."""
    came: list[tuple[int, FrameType | None]] = []
    before = {int(number): signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for number, _ in came[:1]:
        signal.raise_signal(number)
