"""The ledger in its file: look-ups, duplicates, unions, files of teams, and several writers."""

import multiprocessing
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_ledger_entry import JSON, LATER, NOW, SIGNATURE, TEXTS, entries

from miscompile.base.errors import StoreError, UsageError
from miscompile.core.finding import Signature
from miscompile.findings.ledger import Ledger
from miscompile.findings.ledger_entry import LedgerEntry
from miscompile.findings.ledger_file import ledger_entries, ledger_text, read_ledger, write_ledger

SIGNATURES = st.builds(
    Signature,
    st.sampled_from(["toy", "tvm{via=torch}"]),
    st.sampled_from(["wrong", "death"]),
    st.sampled_from(["", "run"]),
    st.lists(TEXTS, max_size=2).map(tuple),
    TEXTS,
)


def bug(name: str, **values: object) -> LedgerEntry:
    given_values = {"found": NOW, "changed": NOW, "finding": f"wrong-{name}", **values}
    return LedgerEntry(replace(SIGNATURE, culprits=(name,)), **given_values)  # type: ignore[arg-type]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.open(tmp_path / "deep" / "ledger.db")


@given(st.lists(entries(SIGNATURES), max_size=4))
def test_a_file_gives_back_what_was_written(bugs: list[LedgerEntry]) -> None:
    distinct = list({one.key: one for one in bugs}.values())
    assert ledger_entries(ledger_text(distinct), "here") == sorted(distinct, key=lambda one: one.key)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(entries(SIGNATURES), st.dictionaries(TEXTS, JSON, max_size=3))
def test_the_database_gives_back_what_was_written(ledger: Ledger, entry: LedgerEntry, predicate: object) -> None:
    whole = replace(entry, predicate=predicate)  # type: ignore[arg-type]
    ledger.put(whole)
    assert ledger.get(whole.key) == whole


def test_texts_that_have_no_bytes_are_escaped(ledger: Ledger, tmp_path: Path) -> None:
    ledger.put(bug("A", message="\udcff"))
    write_ledger(tmp_path / "bugs.toml", [bug("A", message="\udcff"), *ledger.entries()])
    assert {one.message for one in (*read_ledger(tmp_path / "bugs.toml"), *ledger.entries())} == {"\\udcff"}


def test_a_bug_is_found_by_the_beginning_of_its_signature_or_finding(ledger: Ledger) -> None:
    for name in ("Fuse", "FuseMore", "Fold"):
        ledger.put(bug(name))
    assert ledger.find("onnxruntime:wrong:Fuse").signature.culprits == ("Fuse",)  # the whole of one is not ambiguous
    assert ledger.find("onnxruntime:wrong:Fo").signature.culprits == ("Fold",)
    assert ledger.find("wrong-FuseM").signature.culprits == ("FuseMore",)
    with pytest.raises(UsageError, match=r"begins 3 bugs: onnxruntime:wrong:Fold, .*Fuse, "):
        ledger.find("onnxruntime")
    with pytest.raises(UsageError, match="did you mean wrong-Fold"):
        ledger.find("wrong-Fald")
    with pytest.raises(UsageError, match="no bug ''"):
        ledger.find("")


def test_a_duplicate_of_a_duplicate_is_the_first_bug(ledger: Ledger) -> None:
    a, b, c = (bug(name) for name in "ABC")
    for one in (a, b, c):
        ledger.put(one)
    ledger.duplicate(c.key, b.key, LATER)
    ledger.duplicate(b.key, a.key, LATER)
    assert ledger.root(ledger.find(c.key)).key == a.key
    with pytest.raises(UsageError, match="or a duplicate of it"):
        ledger.duplicate(a.key, c.key, LATER)
    with pytest.raises(UsageError, match="or a duplicate of it"):
        ledger.duplicate(a.key, a.key, LATER)
    with pytest.raises(UsageError, match="no bug 'D'"):
        ledger.duplicate(a.key, "D", LATER)
    assert [one.key for one in ledger.entries(("duplicate-of",))] == [b.key, c.key]


def test_files_of_teams_are_united_all_or_none(ledger: Ledger) -> None:
    ledger.put(bug("A"))
    theirs = [bug("A", state="wontfix", changed=LATER), bug("B")]
    assert ledger.merge(theirs) == (1, 1)
    assert ledger.merge(theirs) == (0, 0)
    assert [one.state for one in ledger.entries()] == ["wontfix", "open"]
    circle = [bug(one, state="duplicate-of", duplicate_of=bug(other).key) for one, other in ("CD", "DC")]
    with pytest.raises(UsageError, match="duplicate of itself"):
        ledger.merge([bug("E"), *circle])
    assert [one.signature.culprits for one in ledger.entries()] == [("A",), ("B",)]
    ledger.merge([bug("F", state="duplicate-of", duplicate_of="elsewhere")])  # the other one may come with another file
    assert ledger.root(ledger.find("wrong-F")).key == bug("F").key


def test_sightings_are_counted(ledger: Ledger) -> None:
    ledger.put(bug("A", seen=1))
    assert ledger.sight({bug("A").key: 5, "another": 2}, "1.20") == {"another"}
    assert [(one.seen, one.last_release) for one in ledger.entries()] == [(6, "1.20")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "no TOML"),
        ("schema = 9", "has the schema 9"),
        ("schema = 1\nbug = 3", r"\[\[bug\]\]"),
        ("schema = 1\nbug = [3]", "bug 1 is no table"),
        ("schema = 1\n[[bug]]\ncolour = 'red'", "no field 'colour'"),
        ("schema = 1\n[[bug]]\nlink = 3", "link is no str"),
        ("schema = 1\n[[bug]]\nseen = true", "seen is no int"),
        ("schema = 1\n[[bug]]\nlink = 'a'", "malformed: KeyError: 'signature'"),
        (
            "schema = 1\n[[bug]]\n[bug.signature]\ntarget='t'\nkind='wrong'\nstage=''\nculprits='A'\ntext=''",
            "list of texts",
        ),
        (
            "schema = 1\n[[bug]]\n[bug.signature]\ntarget='t'\nkind='odd'\nstage=''\nculprits=[]\ntext=''",
            "unknown kind",
        ),
    ],
)
def test_files_that_are_no_ledgers_are_told(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ledger_entries(text, "bugs.toml")


def test_damaged_newer_and_absent_ledgers_are_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no ledger"):
        Ledger.open(tmp_path / "ledger.db", create=False)
    Ledger.open(tmp_path / "ledger.db").close()
    with sqlite3.connect(tmp_path / "ledger.db") as connection:
        connection.execute("INSERT INTO migration VALUES (99)")
    with pytest.raises(StoreError, match="newer miscompile that wrote it or choose another --ledger"):
        Ledger.open(tmp_path / "ledger.db")
    (tmp_path / "other.db").write_bytes(b"no database" * 999)
    with pytest.raises(StoreError, match=r"is damaged .* bugs import"):
        Ledger.open(tmp_path / "other.db")


def _write(path: Path, own: str, rounds: int) -> None:
    with Ledger.open(path) as ledger:
        for number in range(rounds):
            ledger.merge([bug(f"{own}{number}")])
            ledger.sight({bug("shared").key: 1}, f"1.{number}")


def test_several_processes_write_one_ledger(tmp_path: Path) -> None:
    path, rounds = tmp_path / "ledger.db", 40
    start = multiprocessing.get_context("spawn")
    with Ledger.open(path) as ledger:
        ledger.put(bug("shared", seen=0))
        ledger.changed_elsewhere()
        writers = [start.Process(target=_write, args=(path, own, rounds)) for own in "AB"]
        for one in writers:
            one.start()
        for one in writers:
            one.join(120)
        assert [one.exitcode for one in writers] == [0, 0]
        assert ledger.changed_elsewhere()
        assert not ledger.changed_elsewhere()
        shared = ledger.find("wrong-shared")
        assert (shared.seen, shared.first_release, shared.last_release) == (2 * rounds, "1.0", "1.39")
        assert len(ledger.entries()) == 2 * rounds + 1


def _open(path: Path, times: int) -> None:
    for number in range(times):
        Ledger.open(path / f"{number}.db").close()


@pytest.mark.slow
def test_several_processes_make_one_ledger(tmp_path: Path) -> None:
    start = multiprocessing.get_context("spawn")
    writers = [start.Process(target=_open, args=(tmp_path, 20)) for _ in range(3)]
    for one in writers:
        one.start()
    for one in writers:
        one.join(120)
    assert [one.exitcode for one in writers] == [0, 0, 0]
