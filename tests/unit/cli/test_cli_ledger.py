"""`miscompile bugs` and `miscompile recheck`: what they print, change, and refuse."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from miscompile import __version__
from miscompile.cli.main import program
from miscompile.core.case import Case
from miscompile.core.finding import Finding, Property, Signature
from miscompile.core.tensor import tensor
from miscompile.core.verdict import FindingKind
from miscompile.findings.folder import FindingStatus, Stored
from miscompile.findings.ledger import LEDGER, Ledger
from miscompile.findings.ledger_entry import LedgerEntry
from miscompile.findings.store import Campaign, Store
from miscompile.graph.emit import to_program
from miscompile.graph.text.parser import parse_model

NOW = "2026-01-01T00:00:00Z"
MODEL = parse_model("ir 10\nopset 18\n\ngraph g(%x: float32[2]) -> (%y: float32[2]) {\n  %y = Neg(%x)\n}\n")
CASE = Case(to_program(MODEL), ((tensor(np.ones(2, np.float32)),),))


def call(*words: str | Path) -> Result:
    return CliRunner().invoke(program, [str(word) for word in words])


def bug(name: str, **values: Any) -> LedgerEntry:
    entry = LedgerEntry(Signature("toy", "wrong", "", (name,), ""), found=NOW, changed=NOW, finding=f"wrong-{name}")
    return replace(entry, **values)


@pytest.fixture
def book(tmp_path: Path) -> Path:
    path = tmp_path / "bugs.db"
    with Ledger.open(path) as ledger:
        ledger.merge(
            [bug("Fuse"), bug("Fold", state="reported", link="https://a", first_release="1.0", last_release="1.0")]
        )
    return path


def listed(book: Path, *words: str) -> dict[str, dict[str, Any]]:
    result = call("bugs", "list", "--ledger", book, "--json", *words)
    assert result.exit_code == 0, result.output
    return {entry["signature"]: entry for entry in json.loads(result.stdout)}


def test_a_damaged_ledger_is_one_line_and_exit_code_3_and_is_left_alone(book: Path) -> None:
    book.write_bytes(b"nonsense " * 500)
    result = call("bugs", "list", "--ledger", book)
    assert (result.exit_code, result.stderr.count("\n")) == (3, 1)
    assert "is damaged" in result.stderr
    assert [(path.name, path.read_bytes()) for path in book.parent.glob("bugs.db*")] == [
        (book.name, b"nonsense " * 500)
    ]


def test_the_list_is_a_table_or_json(book: Path) -> None:
    table = call("bugs", "list", "--ledger", book)
    assert table.exit_code == 0
    assert all(text in table.stdout for text in ("open", "toy:wrong:Fuse", "reported", "https://a", "wrong-Fold"))
    assert list(listed(book)) == ["toy:wrong:Fold", "toy:wrong:Fuse"]
    assert list(listed(book, "--state", "open")) == ["toy:wrong:Fuse"]
    assert listed(book)["toy:wrong:Fuse"]["parts"]["culprits"] == ["Fuse"]
    assert call("bugs", "list", "--ledger", book, "--state", "invalid").stdout == "no bugs\n"


def test_decisions_about_a_bug(book: Path) -> None:
    def state(*words: str) -> str:
        result = call("bugs", *words, "--ledger", book)
        assert result.exit_code == 0, result.output
        return result.stdout

    assert state("link", "toy:wrong:Fu", "https://b", "--note", "soon") == "toy:wrong:Fuse: reported\n"
    assert state("close", "wrong-Fu", "--fixed-in", "1.25") == "toy:wrong:Fuse: fixed-in 1.25\n"
    assert state("reopen", "wrong-Fu") == "toy:wrong:Fuse: reported\n"
    assert state("close", "wrong-Fu", "--wontfix") == "toy:wrong:Fuse: wontfix\n"
    assert state("close", "wrong-Fu", "--invalid") == "toy:wrong:Fuse: invalid\n"
    assert state("dup", "wrong-Fu", "wrong-Fo") == "toy:wrong:Fuse: duplicate-of toy:wrong:Fold\n"
    assert json.loads(state("undup", "wrong-Fu", "--json"))["state"] == "reported"
    entry = listed(book)["toy:wrong:Fuse"]
    assert (entry["link"], entry["note"]) == ("https://b", "soon")
    assert entry["changed"] > NOW


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("link", "wrong-Fuse", "somewhere"), "no link"),
        (("link", "wrong-Fuze", "https://b"), "did you mean wrong-Fuse"),
        (("close", "wrong-F", "--wontfix"), "begins 2 bugs: toy:wrong:Fold, toy:wrong:Fuse"),
        (("close", "wrong-Fuse"), "say one of"),
        (("close", "wrong-Fuse", "--wontfix", "--invalid"), "say one of"),
        (("close", "wrong-Fuse", "--fixed-in", "soon"), "'soon' is no version"),
        (("undup", "wrong-Fuse"), "is no duplicate, but open"),
        (("dup", "wrong-Fuse", "wrong-Fuse"), "a duplicate of it"),
        (("list", "--state", "closed"), "closed"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_exit_code_2(book: Path, words: tuple[str, ...], message: str) -> None:
    before = listed(book)
    result = call("bugs", *words, "--ledger", book)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert listed(book) == before


def test_a_team_shares_a_file(book: Path, tmp_path: Path) -> None:
    file, other = tmp_path / "bugs.toml", tmp_path / "theirs" / "other.db"
    assert call("bugs", "export", file, "--ledger", book).stdout == f"2 bugs in {file}\n"
    result = call("bugs", "import", file, "--ledger", other)
    assert result.stdout == f"2 bugs in {file}: 2 new, 0 changed, in {other}\n"
    assert listed(other) == listed(book)
    assert "0 new, 0 changed" in call("bugs", "import", file, "--ledger", other).stdout
    file.write_text("bug = ", "utf-8")
    refused = call("bugs", "import", file, "--ledger", other)
    assert (refused.exit_code, "no TOML file" in refused.stderr) == (2, True)


def test_without_a_ledger_there_is_nothing_to_list(tmp_path: Path) -> None:
    result = call("bugs", "list", "--out", tmp_path)
    assert (result.exit_code, "there is no ledger" in result.stderr) == (2, True)


def a_stored(name: str, script: str, kind: FindingKind = "wrong", **values: Any) -> Stored:
    target = values.pop("target", "toy{bugs=all}")
    signature = Signature(target.partition("{")[0], kind, "", (name,), "")
    message = values.pop("message", "y differs")
    status: FindingStatus = values.pop("status", "confirmed")
    return Stored(Finding(name, Property("p", target, signature), CASE, message, values), status, script=script)


SHOWS = "print('BUG: output 0'); raise SystemExit(1)"
HERE = "from pathlib import Path; import os; seen = Path(__file__ + '.seen')\n"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A campaign with findings whose scripts end in every way."""
    with Store.open(tmp_path / "out") as store:
        store.begin(Campaign("toy{bugs=all}", 1, {}, {}, 1.0))
        for stored in (
            a_stored("there", SHOWS),
            a_stored("gone", "pass"),
            a_stored("rare", HERE + "if not seen.exists(): seen.touch(); raise SystemExit(0)\n" + SHOWS),
            a_stored("broken", "import nothing_of_that_name"),
            a_stored("same", "print('BUG: level full raises KeyError: no 7'); raise SystemExit(1)", "exception",
                     message="KeyError at compile: no 3"),
            a_stored("another", "print('BUG: level full raises KeyError: no'); raise SystemExit(1)", "exception",
                     message="TypeError at run: an operand is odd"),
            a_stored("dies", "import os; print('DIES: now', flush=True); os.kill(os.getpid(), 11)", "death",
                     message="the process died of signal 11 at run"),
            a_stored("aborts", "import os; print('DIES: now', flush=True); os.abort()", "death",
                     message="the process died of signal 11 at run"),
            a_stored("killed", "import os; os.abort()"),
            a_stored("doubtful", SHOWS, status="unconfirmed"),
            a_stored("foreign", SHOWS, target="reference"),
            a_stored("unwritten", ""),
        ):  # fmt: skip
            store.add_pending(stored)
    return tmp_path / "out"


def answers(out: Path, *words: str | Path) -> tuple[int, dict[str, Any]]:
    result = call("recheck", out, "--target", "toy", "--json", "--workers", "2", *words)
    assert result.exit_code in (0, 1), result.output
    return result.exit_code, json.loads(result.stdout)


def test_recheck_runs_every_script(out: Path) -> None:
    code, found = answers(out)
    assert code == 1
    assert {one["id"]: one["answer"] for one in found["findings"]} == {
        "there": "still there", "gone": "fixed", "rare": "still there", "broken": "changed", "same": "still there",
        "another": "changed", "dies": "still there", "aborts": "changed", "killed": "changed",
    }  # fmt: skip
    assert found["counts"] == {"fixed": 1, "still there": 4, "changed": 4}
    reasons = {one["id"]: one["reason"] for one in found["findings"]}
    assert "nothing_of_that_name" in reasons["broken"]
    assert "it dies of signal 6" in reasons["killed"]
    assert "raises another error: KeyError: no" in reasons["another"]
    assert "in another way, with status -6" in reasons["aborts"]
    assert found["skipped"] == {
        "doubtful": "it is unconfirmed", "foreign": "it is of reference",
        "unwritten": "it has no script; `miscompile reduce` writes one",
    }  # fmt: skip
    assert found["release"] == __version__


@pytest.mark.slow
def test_recheck_updates_the_ledger_and_closes_on_demand(out: Path) -> None:
    answers(out)
    before = listed(out / LEDGER)
    assert {entry["state"] for entry in before.values()} == {"open"}
    assert before["toy:wrong:there"]["last_release"] == __version__
    _, found = answers(out, "--close")
    assert [one["id"] for one in found["findings"] if one["closed"]] == ["gone"]
    entries = listed(out / LEDGER)
    assert (entries["toy:wrong:gone"]["state"], entries["toy:wrong:gone"]["fixed_in"]) == ("fixed-in", __version__)
    assert entries["toy:wrong:there"]["state"] == "open"


@pytest.mark.slow
def test_recheck_tells_a_regression(out: Path) -> None:
    answers(out)
    call("bugs", "close", "there", "--fixed-in", "0.0.1", "--out", out)
    result = call("recheck", out, "--target", "toy", "--workers", "2", "-v")
    assert result.exit_code == 1
    assert "still there, a regression" in result.stdout
    assert "1 fixed, 4 still there, 4 changed, 3 skipped" in result.stdout
    assert "`--close` closes" in result.stdout
    assert "there: still there" in result.stderr
    assert listed(out / LEDGER)["toy:wrong:there"]["regressed_in"] == __version__


def test_recheck_names_a_damaged_finding_and_checks_the_others(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with Store.open(out) as store:
        store.begin(Campaign("toy", 1, {}, {}, 1.0))
        store.add_pending(a_stored("gone", "pass"))
        store.add_pending(a_stored("spoilt", "pass"))
    (out / "findings" / "spoilt" / "finding.json").write_text("{")
    code, found = answers(out)
    assert (code, [one["id"] for one in found["findings"]]) == (0, ["gone"])
    assert "is damaged" in found["skipped"]["spoilt"]


def test_recheck_of_nothing_that_is_there_is_exit_code_0(tmp_path: Path) -> None:
    with Store.open(tmp_path / "out") as store:
        store.begin(Campaign("toy", 1, {}, {}, 1.0))
        store.add_pending(a_stored("gone", "pass"))
    assert answers(tmp_path / "out")[0] == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--target", "toi"), "there is no target 'toi'"),
        ((), "Missing option '--target'"),
        (("--target", "toy==1.2"), "has no versions"),
    ],
)
def test_recheck_refuses_what_it_cannot_do(out: Path, words: tuple[str, ...], message: str) -> None:
    result = call("recheck", out, *words)
    assert (result.exit_code, message in result.stderr) == (2, True), result.stderr


def test_recheck_needs_a_campaign(tmp_path: Path) -> None:
    result = call("recheck", tmp_path, "--target", "toy")
    assert (result.exit_code, "there is no campaign" in result.stderr) == (2, True)
