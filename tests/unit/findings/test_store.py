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
    monkeypatch.setattr(store_module, "_take_lock", refuse)
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


def test_a_folder_that_is_deleted_under_its_writer_is_not_made_again(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with Store.open(out) as store:
        shutil.rmtree(out)
        with pytest.raises(StoreError, match="was deleted or moved"):
            store.keep_figures()
        with pytest.raises(StoreError, match="cannot write"):
            store.add_pending(a_stored("wrong-1"))
    assert not out.exists()


@pytest.mark.parametrize("text", ["{", "[]", '{"schema": 9}', '{"schema": 1, "counter": [[1]], "duplicates": []}'])
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
