"""Whole campaigns and their ledger: shared by several, one after the other and at the same time, and rechecked."""

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from campaigns import COMMAND, Start

from miscompile import __version__
from miscompile.findings.folder import identifiers, load, place
from miscompile.findings.store import Store

pytestmark = pytest.mark.process

TARGET = "toy{bugs=sub_commutes+sub_self_dtype}"
"""Bugs that show within a few tests and are triaged within seconds."""

OTHER = "toy{bugs=sub_commutes}"


def command(*words: str | Path) -> tuple[int, str]:
    done = subprocess.run([*COMMAND, *map(str, words)], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, done.stdout


def bugs(book: Path) -> dict[str, dict[str, Any]]:
    return {one["signature"]: one for one in json.loads(command("bugs", "list", "--json", "--ledger", book)[1])}


@pytest.mark.slow  # four campaigns
def test_a_ledger_is_taken_from_campaign_to_campaign(tmp_path: Path, start: Start) -> None:
    """Absorbed in the second campaign, a regression in the third, and known in a fourth that got it as a file."""
    book = tmp_path / "shared.db"

    def campaign(name: str, seed: int, ledger: Path = book) -> tuple[int, dict[str, Any]]:
        words = ("--seed", str(seed), "--workers", "1", "--tests", "150", "--ledger", str(ledger), "--json")
        code, stdout, stderr = start(tmp_path / name, TARGET, *words).end(240)
        assert code in (0, 1), stderr
        return code, json.loads(stdout)

    code, first = campaign("first", 2)
    announced = {one["signature"] for one in first["findings"] if one["status"] == "confirmed"}
    assert (code, len(announced) >= 2) == (1, True)
    assert set(bugs(book)) == announced
    assert {one["first_release"] for one in bugs(book).values()} == {__version__}

    code, second = campaign("second", 2)  # the same programs, all of whose bugs are known from the start
    assert code == 0
    assert {one["status"] for one in second["findings"]} <= {"known", "unconfirmed"}
    assert second["counters"]["recognised"] > 0
    assert sum(one["seen"] for one in bugs(book).values()) > len(announced)

    for signature in announced:
        command("bugs", "close", signature, "--fixed-in", "0.0.1", "--ledger", book)
    code, third = campaign("third", 2)
    again = [one for one in third["findings"] if one["regression"]]
    assert (code, {one["signature"] for one in again}) == (1, announced)
    issue = load(tmp_path / "third", again[0]["id"]).issue
    assert "regression: " in issue.splitlines()[0]
    assert "was fixed in 0.0.1" in issue
    assert {one["state"] for one in bugs(book).values()} == {"open"}

    command("bugs", "export", tmp_path / "bugs.toml", "--ledger", book)
    command("bugs", "import", tmp_path / "bugs.toml", "--ledger", tmp_path / "team.db")
    code, fourth = campaign("fourth", 2, tmp_path / "team.db")
    assert (code, fourth["counters"]["recognised"] > 0) == (0, True)


@pytest.mark.slow  # four campaigns
def test_two_campaigns_write_one_store_at_the_same_time(tmp_path: Path, start: Start) -> None:
    first = start(tmp_path, TARGET, "--seed", "1", "--workers", "1", "--time", "1500")
    first.until(lambda: bool(identifiers(tmp_path)))
    second = start(tmp_path, OTHER, "--seed", "2", "--workers", "1", "--time", "10", "--join")
    second.until(lambda: len(_campaigns(tmp_path)) == 2)
    refused = start(tmp_path, TARGET, "--resume", "--time", "1").end()
    assert (refused[0], "another process is running campaign 1" in refused[2]) == (2, True)
    assert second.end(240)[0] == 1
    first.process.send_signal(signal.SIGINT)
    assert first.end(240)[0] == 1
    with Store.open(tmp_path) as store:
        records = store.findings()
        assert [(one.target, one.seed) for one in store.campaigns().values()] == [(TARGET, 1), (OTHER, 2)]
        assert [ending for _, _, _, ending in store.sessions()] == ["interrupted", "done"]
        signatures = [one.signature for one in records if one.status != "unconfirmed"]
        assert len(signatures) == len(set(signatures)) >= 2
        store.choose(2)
        assert store.pending() == []
        for one in records:
            store.load(one.identifier)
    assert json.loads((tmp_path / "summary.json").read_text("utf-8"))["campaigns"][1] == {"target": OTHER, "seed": 2}
    code, stdout, stderr = start(tmp_path, OTHER, "--resume", "--tests", "20", "--workers", "1", "--json").end(240)
    assert code == 1, stderr
    with Store.open(tmp_path, create=False) as store:
        assert [number for number, *_ in store.sessions()] == [1, 1, 2]
    assert len(json.loads(stdout)["campaigns"]) == 2


def _campaigns(out: Path) -> dict[int, Any]:
    with Store.open(out, create=False) as store:
        return store.campaigns()


@pytest.mark.slow  # a campaign; the verb itself is tested in tests/unit/cli
def test_recheck_runs_the_scripts_of_a_campaign(tmp_path: Path, start: Start) -> None:
    """One script stands for a release that has the bug fixed: it switches the toy's planted bugs off."""
    start(tmp_path, TARGET, "--seed", "2", "--workers", "1", "--tests", "200").end(240)
    with Store.open(tmp_path, create=False) as store:
        fixed, *others = [one.identifier for one in store.findings("confirmed")]
    script = place(tmp_path, fixed) / "repro.py"
    text = script.read_text("utf-8")
    assert "\nBUGS = " in text
    script.write_text(
        "\n".join("BUGS = 'none'" if one.startswith("BUGS = ") else one for one in text.split("\n")), "utf-8"
    )
    code, stdout = command("recheck", tmp_path, "--target", "toy", "--close", "--json", "--workers", "2")
    found = json.loads(stdout)
    assert (code, bool(others)) == (1, True)
    assert {one["id"]: one["answer"] for one in found["findings"]} == {
        fixed: "fixed", **dict.fromkeys(others, "still there")
    }  # fmt: skip
    entries = bugs(tmp_path / "ledger.db").values()
    assert {one["finding"]: one["state"] for one in entries} == {fixed: "fixed-in", **dict.fromkeys(others, "open")}
