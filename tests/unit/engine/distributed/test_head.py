"""The head of a campaign on several machines, on scripted nodes: what it merges, counts, announces and gives out."""

import signal
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from miscompile.base.errors import ExecutionError, StoreError, UsageError
from miscompile.core.case import Case
from miscompile.core.events import Event, Found, Notice
from miscompile.core.finding import Finding, Property, Signature
from miscompile.engine.distributed.head import (
    MOST_FAILURES,
    NodeEvent,
    NodeJoined,
    NodeLost,
    NodeSaid,
    NodeUnfit,
    fuzz_on,
)
from miscompile.engine.distributed.parcel import pack, pack_known, unpack
from miscompile.engine.distributed.shard import ShardOrders, shard_orders_from
from miscompile.engine.known_bugs import ENTERED
from miscompile.engine.plan import Plan
from miscompile.findings.folder import FindingStatus, Stored, identify
from miscompile.findings.ledger import Ledger
from miscompile.findings.store import Store, record_of
from miscompile.graph.emit import to_program
from miscompile.graph.text.parser import parse_model


def stored(culprit: str, name: str = "a", status: FindingStatus = "confirmed", **recipe: int) -> Stored:
    """A finding that the pass `culprit` is guilty of; `name` tells programs apart."""
    text = f"ir 10\nopset 18\n\ngraph {name}(%x: float32[2]) -> (%y: float32[2]) {{\n  %y = Neg(%x)\n}}\n"
    case = Case(to_program(parse_model(text)), (), recipe)
    held = Property("optimisation", "toy", Signature("toy", "wrong", "", (culprit,), ""))
    return Stored(
        Finding(identify("wrong", "toy", case), held, case, "y differs", {"test": 3}), status, script="print()"
    )


def found(one: Stored, kind: str = "found") -> dict[str, Any]:
    return {kind: pack(one), "identifier": one.finding.identifier}


def ended(tests: int, *rows: tuple[Stored, int]) -> dict[str, Any]:
    """The last report of a shard; `rows` are its findings with their duplicates."""
    listed = [asdict(replace(record_of(one), duplicates=count)) for one, count in rows]
    return {"ended": {"counters": {"tests": tests}, "activity": [], "rows": listed}}


STATUS = {"status": 0}

Script = Sequence[Sequence[dict[str, Any] | str]]
"""By the number of the shard that is given out: its messages, or the cause of its node's death."""


class Listening:
    """Keeps the events of a campaign."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def on(self, event: Event) -> None:
        self.events.append(event)

    @property
    def signatures(self) -> list[str]:
        return [str(event.finding.property.signature) for event in self.events if isinstance(event, Found)]

    @property
    def notices(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Notice)]


class Scripted:
    """Nodes that say what a script says: by the number of the shard that is given out, its messages."""

    def __init__(self, nodes: dict[str, int], script: Script) -> None:
        self.queue: list[NodeEvent] = [NodeJoined(name, cpus) for name, cpus in nodes.items()]
        self.script, self.given = script, list[tuple[str, ShardOrders]]()
        self.stopped = self.joining = False

    def events(self, timeout: float) -> Iterator[NodeEvent]:
        queue, self.queue = self.queue, []
        yield from queue

    def give(self, node: str, orders: str) -> None:
        said = self.script[len(self.given)]
        self.given.append((node, shard_orders_from(orders)))
        for message in said:
            if isinstance(message, str):
                self.queue += [NodeLost(node, message), NodeJoined(node, 1)]
            else:
                self.queue.append(NodeSaid(node, message))

    def stop(self) -> None:
        self.stopped = True


def ran(out: Path, nodes: Scripted, **options: Any) -> Listening:
    listening = Listening()
    fuzz_on(nodes, Plan("toy", out=out, **{"seconds": None, **options}), [listening])
    return listening


def test_lanes_are_shared_as_on_one_machine(tmp_path: Path) -> None:
    nodes = Scripted({"a": 2, "b": 1}, [[ended(40), STATUS], [ended(20), STATUS], [ended(20), STATUS]])
    ran(tmp_path, nodes, tests=80, workers=4)
    given = [(node, orders.portion.first, orders.plan.workers, orders.portion.lanes) for node, orders in nodes.given]
    assert given == [("a", 0, 2, 4), ("b", 2, 1, 4), ("a", 3, 1, 4)]
    assert {orders.plan.tests for _, orders in nodes.given} == {80}
    with Store.open(tmp_path) as store:
        assert store.counters() == {"tests": 80}
        assert [ending for *_, ending in store.sessions()] == ["done"]


def test_tasks_of_a_list_are_not_divided_among_machines(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'pairs' are divided on one machine only"):
        ran(tmp_path, Scripted({"a": 2}, []), producers=("pairs",))
    assert not list(tmp_path.iterdir())


def test_two_nodes_that_find_one_bug_announce_it_once(tmp_path: Path) -> None:
    first, second, other = stored("One", "a"), stored("One", "b"), stored("Two", "c")
    script = [
        [found(first), ended(10, (first, 5)), STATUS],
        [found(second), found(other), ended(10, (second, 2), (other, 0)), STATUS],
    ]
    listening = ran(tmp_path, Scripted({"a": 1, "b": 1}, script), tests=20, workers=2)
    assert listening.signatures == ["toy:wrong:One", "toy:wrong:Two"]
    with Store.open(tmp_path) as store:
        assert [(row.signature, row.duplicates) for row in store.findings()] == [
            ("toy:wrong:One", 8),
            ("toy:wrong:Two", 0),
        ]
        assert store.load(first.finding.identifier).script == "print()"


def test_the_ledger_of_the_head_knows_the_bugs_of_other_campaigns(tmp_path: Path) -> None:
    """A shard has entered the finding in a ledger of its own, which says nothing to the head."""
    book = str(tmp_path / "book.db")
    one = stored("One", "a")
    entered = replace(one, finding=replace(one.finding, facts={**one.finding.facts, ENTERED: "of the shard"}))
    script = [[found(entered), ended(10, (entered, 0)), STATUS]]
    ran(tmp_path / "first", Scripted({"a": 1}, script), tests=10, workers=1, ledger=book)
    with Ledger.open(Path(book)) as ledger:
        assert [entry.key for entry in ledger.entries()] == ["toy:wrong:One"]
    again = stored("One", "b")
    listening = ran(
        tmp_path / "second",
        Scripted({"a": 1}, [[found(again), ended(10, (again, 0)), STATUS]]),
        tests=10, workers=1, ledger=book, seed=2,
    )  # fmt: skip
    assert [event.fresh for event in listening.events if isinstance(event, Found)] == [False]
    with Store.open(tmp_path / "second") as store:
        assert [row.status for row in store.findings()] == ["known"]


def test_a_shard_that_is_done_again_counts_once(tmp_path: Path) -> None:
    one = stored("One", session=1, lane=0)
    script: Script = [
        [{"progress": {"tests": 7}}, found(one), "it burned"],
        [found(one), ended(10, (one, 1)), STATUS],
    ]
    nodes = Scripted({"a": 1}, script)
    listening = ran(tmp_path, nodes, tests=10, workers=1)
    assert listening.signatures == ["toy:wrong:One"]
    assert "a is lost (it burned); its shard is done again" in listening.notices
    assert [orders.portion.first for _, orders in nodes.given] == [0, 0]
    assert [dict(orders.known) for _, orders in nodes.given] == [{}, {}]
    with Store.open(tmp_path) as store:
        assert store.counters() == {"tests": 10}
        assert [row.duplicates for row in store.findings()] == [1]


def test_later_shards_know_the_findings_of_earlier_ones(tmp_path: Path) -> None:
    one = stored("One", session=1, lane=0)
    nodes = Scripted({"a": 1}, [[found(one), ended(5, (one, 0)), STATUS], [ended(5, (one, 4)), STATUS]])
    ran(tmp_path, nodes, tests=10, workers=2)
    assert [list(orders.known) for _, orders in nodes.given] == [[], [one.finding.identifier]]
    with Store.open(tmp_path) as store:
        assert [row.duplicates for row in store.findings()] == [4]


def test_pending_findings_are_triaged_by_one_shard_and_again_if_it_dies(tmp_path: Path) -> None:
    waiting = stored("One", status="pending")
    with Store.open(tmp_path) as store:
        store.add_pending(waiting)
    triaged = replace(waiting, status="confirmed")
    script: Script = [
        ["it burned"],
        [ended(5), STATUS],
        [found(triaged), ended(5), STATUS],
    ]
    nodes = Scripted({"a": 1, "b": 1}, script)
    listening = ran(tmp_path, nodes, tests=10, workers=2)
    assert [len(orders.known) for _, orders in nodes.given] == [1, 0, 1]
    assert listening.signatures == ["toy:wrong:One"]


def test_unannounced_findings_are_kept(tmp_path: Path) -> None:
    flaky = stored("One", status="unconfirmed")
    listening = ran(
        tmp_path, Scripted({"a": 1}, [[found(flaky, "kept"), ended(5, (flaky, 0)), STATUS]]), tests=5, workers=1
    )
    assert listening.signatures == []
    with Store.open(tmp_path) as store:
        assert [row.status for row in store.findings()] == ["unconfirmed"]


def test_a_node_that_lacks_something_gets_no_more_shards(tmp_path: Path) -> None:
    script: Script = [
        [{"usage": "no compiler here"}, STATUS],
        [ended(5), STATUS],
        [ended(5), STATUS],
    ]
    nodes = Scripted({"a": 1, "b": 1}, script)
    listening = ran(tmp_path, nodes, tests=10, workers=2)
    assert [node for node, _ in nodes.given] == ["a", "b", "b"]
    assert any("no compiler here" in notice for notice in listening.notices)


def test_when_no_node_is_left_the_campaign_fails_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a: no compiler here"):
        ran(tmp_path / "one", Scripted({"a": 1}, [[{"usage": "no compiler here"}, STATUS]]), tests=10, workers=1)
    failing: Script = [[{"failure": "no memory"}, STATUS]] * MOST_FAILURES
    with pytest.raises(ExecutionError, match="a: no memory"):
        ran(tmp_path / "two", Scripted({"a": 1}, failing), tests=10, workers=1)
    with Store.open(tmp_path / "two") as store:
        assert [ending for *_, ending in store.sessions()] == ["failed"]
        assert store.counters() == {}


def test_an_interrupt_stops_the_nodes_and_takes_their_last_reports(tmp_path: Path) -> None:
    one = stored("One")

    class Interrupted(Scripted):
        def events(self, timeout: float) -> Iterator[NodeEvent]:
            if self.given and not self.stopped:
                raise KeyboardInterrupt
            yield from super().events(timeout)

    nodes = Interrupted({"a": 1}, [[found(one), ended(5, (one, 0)), STATUS]])
    with pytest.raises(KeyboardInterrupt):
        ran(tmp_path, nodes)
    assert nodes.stopped
    with Store.open(tmp_path) as store:
        assert [row.signature for row in store.findings()] == ["toy:wrong:One"]
        assert store.counters() == {"tests": 5}
        assert [ending for *_, ending in store.sessions()] == ["interrupted"]


def test_a_signal_waits_until_its_message_is_stored(tmp_path: Path) -> None:
    one = stored("One")

    class Signalled(Scripted):
        def events(self, timeout: float) -> Iterator[NodeEvent]:
            if self.given and not self.stopped:
                signal.raise_signal(signal.SIGINT)
            yield from super().events(timeout)

    nodes = Signalled({"a": 1}, [[found(one), ended(5, (one, 0)), STATUS], [STATUS]])
    with pytest.raises(KeyboardInterrupt):
        ran(tmp_path, nodes)
    with Store.open(tmp_path) as store:
        assert [row.signature for row in store.findings()] == ["toy:wrong:One"]
        assert store.counters() == {"tests": 5}


def test_an_unfit_node_gets_nothing(tmp_path: Path) -> None:
    nodes = Scripted({"a": 1}, [[ended(5), STATUS]])
    nodes.queue.insert(0, NodeUnfit("b", "it has miscompile 0.0"))
    assert "b gets no shards: it has miscompile 0.0" in ran(tmp_path / "one", nodes, tests=5, workers=1).notices
    nodes = Scripted({}, [])
    nodes.queue = [NodeUnfit("b", "it has miscompile 0.0")]
    with pytest.raises(UsageError, match=r"b: it has miscompile 0\.0"):
        ran(tmp_path / "two", nodes, tests=5, workers=1)


def test_a_parcel_holds_the_whole_finding() -> None:
    one = stored("One", lane=3)
    identifier = one.finding.identifier
    assert unpack(pack(one), identifier) == one
    assert unpack(pack_known(one), identifier) == replace(one, script="")


@pytest.mark.parametrize(
    "damage",
    [{"finding.json": "%%"}, {"finding.json": "e30="}, {"model.onnx": None}],
    ids=["base64", "json", "missing"],
)
def test_a_damaged_parcel_is_refused(damage: dict[str, str | None]) -> None:
    one = stored("One")
    parcel = {name: data for name, data in {**pack(one), **damage}.items() if data is not None}
    with pytest.raises(StoreError, match=one.finding.identifier):
        unpack(parcel, one.finding.identifier)


def test_a_parcel_cannot_write_elsewhere(tmp_path: Path) -> None:
    one = stored("One")
    aim = tmp_path / "file"
    unpack({**pack(one), str(aim): "aGVsbG8="}, one.finding.identifier)
    assert not aim.exists()
