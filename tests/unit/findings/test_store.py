"""The store: deduplication, counters, and honesty about files it cannot use."""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from miscompile.base.errors import InputError, StoreError
from miscompile.core.case import Case, Port, Program
from miscompile.core.finding import Finding, Property, Signature
from miscompile.core.tensor import tensor
from miscompile.findings import folder
from miscompile.findings import store as store_module
from miscompile.findings.database import MIGRATIONS
from miscompile.findings.folder import Stored
from miscompile.findings.snapshot import SNAPSHOT
from miscompile.findings.store import DATABASE, Campaign, Record, Store


def a_stored(
    name: str, culprits: tuple[str, ...] = (), status: folder.FindingStatus = "pending", test: int = 0
) -> Stored:
    port = Port("x", "float32", (1,))
    case = Case(Program("onnx", name.encode(), (port,), (port,)), ((tensor(np.zeros(1, np.float32)),),))
    signature = Signature("toy", "wrong", "", culprits, "")
    facts = {"test": test, "nodes": 2, "reproduced": True}
    return Stored(Finding(name, Property("pair", "toy", signature), case, "y differs", facts), status)


def test_a_pending_finding_is_on_disk_when_it_is_announced(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        assert store.add_pending(a_stored("wrong-1", test=7))
        assert folder.load(tmp_path, "wrong-1").status == "pending"
        [record] = store.pending()
    assert (record.identifier, record.first_seen, record.nodes, record.reproduced) == ("wrong-1", 7, 2, True)


def test_findings_that_name_no_cause_yet_are_never_duplicates_of_each_other(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        assert store.add_pending(a_stored("wrong-1"))
        assert store.add_pending(a_stored("wrong-2"))
        assert not store.add_pending(a_stored("wrong-2"))
        assert [record.duplicates for record in store.findings()] == [0, 1]


def test_a_settled_signature_is_stored_once(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        assert store.add_pending(a_stored("wrong-1", ("Fuse",)))
        assert not store.add_pending(a_stored("wrong-2", ("Fuse",)))
        assert store.add_pending(a_stored("wrong-3", ("Fold",)))
        assert store.duplicate(Signature("toy", "wrong", "", ("Fuse",), ""))
        assert not store.duplicate(Signature("toy", "wrong", "", ("Other",), ""))
        assert {r.signature: r.duplicates for r in store.findings()} == {"toy:wrong:Fuse": 2, "toy:wrong:Fold": 0}
    assert folder.identifiers(tmp_path) == ["wrong-1", "wrong-3"]


def test_triage_can_reveal_a_duplicate(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        store.add_pending(a_stored("wrong-1"))
        store.add_pending(a_stored("wrong-2"))
        store.add_pending(a_stored("wrong-2"))
        assert store.update(a_stored("wrong-1", ("Fuse",), "confirmed"))
        assert not store.update(a_stored("wrong-2", ("Fuse",), "confirmed"))
        [record] = store.findings()
        assert (record.identifier, record.duplicates, record.status) == ("wrong-1", 2, "confirmed")
        assert store.update(a_stored("wrong-1", ("Fuse",), "known"))
        assert store.findings("confirmed") == []
        assert [r.identifier for r in store.findings("known")] == ["wrong-1"]
        assert store.load("wrong-1").status == "known"
    assert folder.identifiers(tmp_path) == ["wrong-1"]


def test_an_unconfirmed_finding_is_stored_once_and_leaves_its_signature_to_a_confirmed_one(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        for name in ("wrong-1", "wrong-2", "wrong-3"):
            store.add_pending(a_stored(name))
        assert store.update(a_stored("wrong-1", ("Fuse",), "unconfirmed"))
        assert not store.update(a_stored("wrong-2", ("Fuse",), "unconfirmed"))
        assert store.update(a_stored("wrong-3", ("Fuse",), "confirmed"))
        seen = [(record.identifier, record.status, record.duplicates) for record in store.findings()]
        assert seen == [("wrong-1", "unconfirmed", 1), ("wrong-3", "confirmed", 0)]
    assert folder.identifiers(tmp_path) == ["wrong-1", "wrong-3"]


def test_an_update_keeps_duplicates_and_the_first_sighting(tmp_path: Path) -> None:
    later = a_stored("wrong-1", ("Fuse",), "confirmed", test=-1)
    with Store.open(tmp_path) as store:
        store.add_pending(a_stored("wrong-1", ("Fuse",), test=5))
        store.duplicate(later.finding.property.signature)
        store.update(later)
        [record] = store.findings()
    assert (record.duplicates, record.first_seen, record.culprits) == (1, 5, ("Fuse",))


def test_counters_campaign_and_sessions_live_on(tmp_path: Path) -> None:
    campaign = Campaign("toy", 2**63 + 1, {"ops": ["Add"]}, {"numpy": "2"}, 10.5)
    with Store.open(tmp_path) as store:
        assert store.campaign() is None
        store.begin(campaign)
        store.add_counters({"tests": 3, "deaths": 1})
        number = store.begin_session(10.5)
        store.note_session(number, 2.0, "time")
    with Store.open(tmp_path) as store:
        store.add_counters({"tests": 4})
        assert store.counters() == {"tests": 7, "deaths": 1}
        assert store.campaign() == campaign
        assert store.begin_session(20.0) == 2
        assert store.sessions() == [(1, 10.5, 2.0, "time"), (2, 20.0, 0.0, "")]


def test_campaigns_of_one_store_have_numbers_sessions_and_counters_of_their_own(tmp_path: Path) -> None:
    first, second = Campaign("toy", 1, {}, {}, 10.5), Campaign("other toy", 1, {}, {}, 11.5)
    with Store.open(tmp_path) as store:
        assert (store.begin(first), store.begin_session(1.0)) == (1, 1)
        store.add_pending(a_stored("wrong-1"))
        store.add_counters({"tests": 3})
        assert (store.begin(second), store.begin_session(2.0), store.begin_session(3.0)) == (2, 1, 2)
        store.note_session(2, 5.0, "done")
        store.add_pending(a_stored("wrong-2"))
        store.add_counters({"tests": 4})
        assert [record.identifier for record in store.pending()] == ["wrong-2"]
        assert [record.identifier for record in store.findings()] == ["wrong-1", "wrong-2"]
        assert store.counters() == {"tests": 7}
        assert store.sessions() == [(1, 1.0, 0.0, ""), (1, 2.0, 0.0, ""), (2, 3.0, 5.0, "done")]
        assert (store.campaign(), store.campaign_of("wrong-1"), store.campaign_of("?")) == (second, first, first)
        with pytest.raises(StoreError, match=r"campaign 1 .* tests toy with the seed 1 already"):
            store.begin(first)
    with Store.open(tmp_path) as store:
        assert (store.campaign(), store.campaigns()) == (first, {1: first, 2: second})


def test_a_finding_without_a_row_belongs_to_the_campaign_of_its_seed_and_target(tmp_path: Path) -> None:
    def made_by(name: str, seed: int) -> Stored:
        stored = a_stored(name)
        case = Case(stored.finding.case.program, stored.finding.case.feeds, {"seed": seed})
        return Stored(Finding(name, stored.finding.property, case, "m", stored.finding.facts))

    with Store.open(tmp_path) as store:
        for target, seed in (("other", 2), ("toy", 1), ("toy other", 2)):
            store.begin(Campaign(target, seed, {}, {}, 1.0))
        for name, seed in (("wrong-1", 1), ("wrong-2", 2), ("wrong-3", 9)):
            folder.save(tmp_path, made_by(name, seed))
        store.adopt()
        assert [record.identifier for record in store.findings()] == ["wrong-2"]
    with Store.open(tmp_path) as store:
        numbers = {}
        for number in (1, 2, 3):
            store.choose(number)
            numbers[number] = [record.identifier for record in store.pending()]
    assert numbers == {1: [], 2: ["wrong-1", "wrong-3"], 3: ["wrong-2"]}


def test_a_fixed_finding_leaves_its_signature_to_a_regression(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        store.add_pending(a_stored("wrong-1", ("Fuse",), "fixed"))
        assert not store.duplicate(Signature("toy", "wrong", "", ("Fuse",), ""))
        again = a_stored("wrong-2", ("Fuse",), "confirmed")
        facts = {**again.finding.facts, "regression": {"fixed_in": "1.2", "release": "1.3", "link": ""}}
        finding = Finding("wrong-2", again.finding.property, again.finding.case, "m", facts)
        assert store.add_pending(Stored(finding, "confirmed"))
        assert [(one.status, one.regression) for one in store.findings()] == [("fixed", ""), ("confirmed", "1.2")]


@pytest.mark.parametrize("shipped", [1, 2, 3])
@pytest.mark.parametrize("writing", [True, False])
def test_a_store_of_an_older_version_is_brought_up_to_date(tmp_path: Path, shipped: int, writing: bool) -> None:
    with sqlite3.connect(tmp_path / DATABASE) as old:
        old.execute("CREATE TABLE migration (version INTEGER PRIMARY KEY)")
        for number in range(shipped):
            old.executescript(MIGRATIONS[number])
            old.execute("INSERT INTO migration VALUES (?)", (number + 1,))
        old.execute("INSERT INTO campaign VALUES (1, 'toy', '7', '{}', '{}', 1.5)")
        old.execute("INSERT INTO session VALUES (1, 1.5, 60.0, 'done')")
        old.execute("INSERT INTO counter VALUES ('tests', 5)")
        old.execute(
            "INSERT INTO finding VALUES ('wrong-1', 'toy:wrong:A', 1, 'confirmed', 'wrong', 'm', 2, 3, '[]', 1, 1)"
        )
    old.close()
    with Store.open(tmp_path, create=writing) as store:
        assert store.campaigns() == {1: Campaign("toy", 7, {}, {}, 1.5)}
        assert (store.sessions(), store.counters()) == ([(1, 1.5, 60.0, "done")], {"tests": 5})
        assert [(one.identifier, one.duplicates, one.regression) for one in store.findings(own=True)] == [
            ("wrong-1", 2, "")
        ]


def test_a_lost_database_is_made_anew_from_the_folders(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        store.add_pending(a_stored("wrong-1", ("Fuse",), test=4))
    (tmp_path / DATABASE).unlink()
    with Store.open(tmp_path) as store:
        [record] = store.findings()
    assert (record.identifier, record.signature, record.first_seen) == ("wrong-1", "toy:wrong:Fuse", 4)


def test_a_kill_between_folder_and_row_is_mended(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        store.add_pending(a_stored("wrong-1"))
    folder.save(tmp_path, a_stored("wrong-1", ("Fuse",), "confirmed"))
    folder.save(tmp_path, a_stored("wrong-2"))
    with Store.open(tmp_path) as store:
        assert {r.identifier: r.status for r in store.findings()} == {"wrong-1": "confirmed", "wrong-2": "pending"}


def test_a_pending_finding_whose_folder_was_moved_away_is_forgotten(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        store.add_pending(a_stored("wrong-1"))
        store.add_pending(a_stored("wrong-2", ("Fuse",), "confirmed"))
    for name in ("wrong-1", "wrong-2"):
        (tmp_path / "findings" / name).rename(tmp_path / name)
    with Store.open(tmp_path) as store:
        assert [r.identifier for r in store.findings()] == ["wrong-2"]


def test_looking_does_not_create(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no campaign in"):
        Store.open(tmp_path / "none", create=False)
    assert not (tmp_path / "none").exists()


def test_one_can_look_while_the_writer_works(tmp_path: Path) -> None:
    with Store.open(tmp_path) as writer, Store.open(tmp_path, create=False) as reader:
        writer.add_pending(a_stored("wrong-1"))
        assert [r.identifier for r in reader.findings()] == ["wrong-1"]


def filled(path: Path) -> list[Record]:
    """A campaign with figures and a finding that was seen three times; return its rows."""
    with Store.open(path) as store:
        store.begin(Campaign("toy", 7, {"nodes": 5}, {"numpy": "2"}, 1.5))
        store.note_session(store.begin_session(2.5), 4.0, "done")
        store.add_counters({"tests": 40})
        store.add_pass_activity([("one", "toy", "Fuse", "", 3)])
        stored = a_stored("wrong-1", ("Fuse",), "confirmed")
        store.add_pending(stored)
        store.duplicate(stored.finding.property.signature)
        store.duplicate(stored.finding.property.signature)
        return store.findings()


def assert_whole(store: Store, rows: list[Record]) -> None:
    assert store.campaign() == Campaign("toy", 7, {"nodes": 5}, {"numpy": "2"}, 1.5)
    assert store.counters() == {"tests": 40}
    assert store.sessions() == [(1, 2.5, 4.0, "done")]
    assert store.pass_activity() == [("one", "toy", "Fuse", "", 3)]
    assert store.findings() == rows


LOSS: dict[str, Callable[[Path], object]] = {
    "deleted": Path.unlink,
    "garbage": lambda path: path.write_bytes(b"this is no database at all, but it is long enough to be one" * 20),
    "a head alone": lambda path: path.write_bytes(b"SQLite format 3\0"),
    "empty": lambda path: path.write_bytes(b""),
    "damaged in the middle": lambda path: path.write_bytes(
        (data := path.read_bytes())[: len(data) // 2] + b"\xa5" * (len(data) // 2)
    ),
}


@pytest.mark.parametrize("create", [True, False], ids=["writer", "reader"])
@pytest.mark.parametrize("kind", sorted(LOSS))
def test_a_lost_index_is_made_anew_with_its_counts(tmp_path: Path, kind: str, create: bool) -> None:
    rows = filled(tmp_path)
    LOSS[kind](tmp_path / DATABASE)
    spoilt = (tmp_path / DATABASE).read_bytes() if (tmp_path / DATABASE).exists() else b""
    with Store.open(tmp_path, create=create) as store:
        assert_whole(store, rows)
    with Store.open(tmp_path, create=False) as store:
        assert_whole(store, rows)
    kept = [path.read_bytes() for path in tmp_path.glob(f"{DATABASE}.damaged-*")]
    assert kept == ([spoilt] if spoilt else [])


@pytest.mark.parametrize("kind", sorted(LOSS))
def test_two_findings_of_one_signature_survive_the_index(tmp_path: Path, kind: str) -> None:
    with Store.open(tmp_path) as store:
        store.begin(Campaign("toy", 7, {}, {}, 1.5))
        assert store.update(a_stored("wrong-2", ("Fuse",), "unconfirmed"))
        assert store.update(a_stored("wrong-1", ("Fuse",), "confirmed"))
        rows = store.findings()
    assert [row.status for row in rows] == ["unconfirmed", "confirmed"]
    LOSS[kind](tmp_path / DATABASE)
    with Store.open(tmp_path) as store:
        assert sorted(store.findings(), key=str) == sorted(rows, key=str)
    assert folder.identifiers(tmp_path) == ["wrong-1", "wrong-2"]


def test_a_lost_index_is_made_in_memory_while_another_process_writes(tmp_path: Path) -> None:
    rows = filled(tmp_path)
    (tmp_path / DATABASE).unlink()
    hold = f"import fcntl; file = open({str(tmp_path / '.lock')!r}, 'ab'); fcntl.lockf(file, fcntl.LOCK_EX); input(1)"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", hold], stdin=pipe, stdout=pipe) as writer:
        assert writer.stdout
        assert writer.stdout.read(1) == b"1"
        with Store.open(tmp_path, create=False) as store:
            assert_whole(store, rows)
        assert not (tmp_path / DATABASE).exists()
        writer.kill()


@pytest.mark.parametrize("log", [b"", b"left by a killed writer"])
def test_a_campaign_that_may_not_be_written_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: bytes
) -> None:
    rows = filled(tmp_path)
    if log:
        (tmp_path / f"{DATABASE}-wal").write_bytes(log)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}

    def refuse(path: Path) -> None:
        raise InputError(f"cannot write {path}")

    monkeypatch.setattr(os, "access", lambda path, how: False)  # root may write everywhere
    monkeypatch.setattr(store_module, "_open_lock", refuse)
    with Store.open(tmp_path, create=False) as store:
        assert_whole(store, rows)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


def test_an_index_that_is_deleted_under_its_writer_is_made_anew(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        store.add_counters({"tests": 5})
        for path in tmp_path.glob(f"{DATABASE}*"):
            path.unlink()
        store.add_counters({"tests": 5})
        store.keep_figures()
        store.add_counters({"tests": 5})
        assert store.counters() == {"tests": 15}
    with Store.open(tmp_path, create=False) as store:
        assert store.counters() == {"tests": 15}


@pytest.mark.parametrize("pattern", [f"{DATABASE}*", DATABASE], ids=["with its logs", "alone"])
def test_several_writers_of_a_deleted_index_go_on_in_one_new_file(tmp_path: Path, pattern: str) -> None:
    with Store.open(tmp_path) as one, Store.open(tmp_path) as two:
        one.add_counters({"tests": 1})
        two.add_counters({"tests": 2})
        for path in tmp_path.glob(pattern):
            path.unlink()
        two.add_counters({"tests": 4})
        one.add_counters({"tests": 8})
        assert one.add_pending(a_stored("wrong-1", ("Fuse",)))
        assert not two.add_pending(a_stored("wrong-2", ("Fuse",)))
        two.add_counters({"tests": 16})
        one.add_counters({"tests": 32})
        assert one.counters() == two.counters() == {"tests": 63}
    with Store.open(tmp_path, create=False) as store:
        assert store.counters() == {"tests": 63}
        assert [(record.identifier, record.duplicates) for record in store.findings()] == [("wrong-1", 1)]


@pytest.mark.parametrize("kind", ["deleted", "garbage"])
def test_a_lost_index_is_left_to_the_process_that_writes(tmp_path: Path, kind: str) -> None:
    filled(tmp_path)
    LOSS[kind](tmp_path / DATABASE)
    spoilt = sorted(path.name for path in tmp_path.iterdir())
    hold = (
        f"import fcntl; file = open({str(tmp_path / '.lock')!r}, 'a+b');"
        " fcntl.lockf(file, fcntl.LOCK_SH, 1, 0); input(1)"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", hold], stdin=pipe, stdout=pipe) as writer:
        assert writer.stdout
        assert writer.stdout.read(1) == b"1"
        with pytest.raises(StoreError, match="makes it anew") as caught:
            Store.open(tmp_path)
        assert not isinstance(caught.value, InputError)
        assert sorted(path.name for path in tmp_path.iterdir()) == spoilt
        writer.kill()


def test_figures_of_several_campaigns_survive_the_index(tmp_path: Path) -> None:
    first, second = Campaign("toy", 1, {"nodes": 5}, {}, 10.5), Campaign("toy", 2, {"nodes": 6}, {}, 11.5)
    with Store.open(tmp_path) as store:
        store.begin(first)
        store.begin_session(1.0)
        store.add_counters({"tests": 3})
        store.begin(second)
        store.begin_session(2.0)
        store.add_counters({"tests": 4})
        store.add_pending(a_stored("wrong-1"))
    (tmp_path / DATABASE).unlink()
    with Store.open(tmp_path) as store:
        assert store.campaigns() == {1: first, 2: second}
        assert store.counters() == {"tests": 7}
        assert store.sessions() == [(1, 1.0, 0.0, ""), (1, 2.0, 0.0, "")]
        assert store.pending() == []
        store.choose(2)
        assert [record.identifier for record in store.pending()] == ["wrong-1"]
        assert store.begin_session(3.0) == 2


def test_a_folder_that_is_deleted_under_its_writer_is_not_made_again(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with Store.open(out) as store:
        shutil.rmtree(out)
        with pytest.raises(StoreError, match="was deleted or moved"):
            store.keep_figures()
        with pytest.raises(StoreError, match="cannot write"):
            store.add_pending(a_stored("wrong-1"))
    assert not out.exists()


@pytest.mark.parametrize("text", ["{", "[]", '{"schema": 9}', '{"schema": 1, "counter": [[1]], "finding": [1, {}]}'])
def test_damaged_figures_do_not_keep_the_findings(tmp_path: Path, text: str) -> None:
    filled(tmp_path)
    (tmp_path / SNAPSHOT).write_text(text)
    (tmp_path / DATABASE).unlink()
    with Store.open(tmp_path, create=False) as store:
        assert [record.identifier for record in store.findings()] == ["wrong-1"]
        assert store.counters() == {}


def test_a_newer_database_is_left_alone(tmp_path: Path) -> None:
    Store.open(tmp_path).close()
    with sqlite3.connect(tmp_path / DATABASE) as connection:
        connection.execute("INSERT INTO migration VALUES (99)")
    connection.close()
    with pytest.raises(StoreError, match="schema version 99"):
        Store.open(tmp_path)


@pytest.mark.parametrize("inner", ["file", "file/out"])
def test_a_place_that_cannot_be_a_folder(tmp_path: Path, inner: str) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StoreError, match="choose another --out"):
        Store.open(tmp_path / inner)
    assert (tmp_path / "file").read_text() == "mine"


def test_a_damaged_folder_is_named_and_does_not_stop_the_writer(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        store.add_pending(a_stored("wrong-1"))
        store.add_pending(a_stored("wrong-2", ("Fuse",)))
    (tmp_path / "findings" / "wrong-1" / "finding.json").write_text("{")
    with Store.open(tmp_path) as store:
        (problem,) = store.damaged
        assert "wrong-1 is damaged" in problem
        assert [record.identifier for record in store.findings()] == ["wrong-1", "wrong-2"]


def test_broken_bytes_in_a_message_are_shown_not_fatal(tmp_path: Path) -> None:
    stored = a_stored("exception-1")
    signature = Signature("toy", "exception", "run", (), "bad \udcff byte")
    finding = Finding("exception-1", Property("pair", "toy", signature), stored.finding.case, "bad \udcff byte")
    with Store.open(tmp_path) as store:
        assert store.add_pending(Stored(finding))
        assert store.duplicate(signature)
        assert store.load("exception-1").finding.message == "bad \udcff byte"
        [record] = store.findings()
    assert record.message == "bad \\udcff byte"
