"""`miscompile ci`: what counts as new, the exit codes, the files, and the baseline."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from miscompile.cli.main import program
from miscompile.core.case import Case
from miscompile.core.finding import Finding, Property, Signature
from miscompile.core.ports import Listener
from miscompile.core.tensor import tensor
from miscompile.engine import ci
from miscompile.engine.coordinator import Portion
from miscompile.engine.known_bugs import KnownBugs
from miscompile.engine.plan import Plan
from miscompile.findings.folder import FindingStatus, Stored
from miscompile.findings.ledger import Ledger
from miscompile.findings.ledger_entry import LedgerEntry
from miscompile.findings.ledger_file import read_ledger, write_ledger
from miscompile.findings.store import Campaign, Store
from miscompile.graph.emit import to_program
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo

KIND = TensorType("float32", (2,))
GRAPH = Graph("g", (ValueInfo("x", KIND),), (ValueInfo("y", KIND),), (Node("Add", ("x", "x"), ("y",)),))
CASE = Case(to_program(Model(GRAPH, {"": 18}), ("y",)), ((tensor(np.ones(2, np.float32)),),), {"seed": 3})
SIGNATURE = Signature("toy", "wrong", "", ("FuseAdd",), "")
BUG = LedgerEntry(SIGNATURE, found="2026-01-31T12:00:00Z", changed="2026-01-31T12:00:00Z")


def a_stored(status: FindingStatus, culprit: str = "FuseAdd") -> Stored:
    held = Property("pair", "toy", replace(SIGNATURE, culprits=(culprit,)))
    finding = Finding(f"wrong-{culprit}", held, CASE, "output 'y' differs", {"test": 1, "nodes": 1})
    return Stored(finding, status, None, {"numpy": "2"})


def fake(monkeypatch: pytest.MonkeyPatch, *found: Stored, tests: int = 100, unsupported: int = 0) -> list[Portion]:
    """Let the campaign end with these findings, held against its ledger; return the portions that it is given."""
    portions: list[Portion] = []

    def fuzz(plan: Plan, listeners: Sequence[Listener], portion: Portion) -> None:
        portions.append(portion)
        with Store.open(plan.out) as store, Ledger.open(plan.ledger_file) as ledger:
            store.begin(Campaign(plan.title, plan.seed, plan.remembered(), {"numpy": "2"}, 1.0))
            known = KnownBugs(ledger, f"run {len(portions)} in {plan.out}", {"toy": "1.0"})
            for stored in found:
                store.add_pending(known.enter(stored))
            store.add_counters({"tests": tests, "unsupported": unsupported})

    monkeypatch.setattr(ci, "fuzz", fuzz)
    return portions


Call = Callable[..., Result]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    return lambda *words: CliRunner().invoke(program, ["ci", "toy", *words])


def test_a_finding_that_the_baseline_lacks_fails_the_run(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(monkeypatch, a_stored("confirmed"))
    result = call("--junit", "reports/j.xml", "--sarif", "s.sarif")
    assert result.exit_code == 1, result.output
    assert "1 new finding, 0 known" in result.stdout
    assert "::error" not in result.stdout
    assert '<failure type="wrong"' in Path("reports/j.xml").read_text()
    assert json.loads(Path("s.sarif").read_text())["version"] == "2.1.0"


@pytest.mark.parametrize("status", ["confirmed", "pending"])
def test_a_finding_in_the_baseline_does_not(call: Call, monkeypatch: pytest.MonkeyPatch, status: FindingStatus) -> None:
    write_ledger(Path("ledger.toml"), [BUG])
    before = Path("ledger.toml").read_bytes()
    fake(monkeypatch, a_stored(status))
    result = call("--baseline", "ledger.toml")
    assert result.exit_code == 0, result.output
    assert "0 new findings, 1 known" in result.stdout
    assert Path("ledger.toml").read_bytes() == before


@pytest.mark.parametrize("status", ["confirmed", "pending"])
def test_a_regression_fails_the_run(call: Call, monkeypatch: pytest.MonkeyPatch, status: FindingStatus) -> None:
    write_ledger(Path("ledger.toml"), [replace(BUG, state="fixed-in", fixed_in="0.0.1")])
    fake(monkeypatch, a_stored(status))
    assert call("--baseline", "ledger.toml").exit_code == 1


def test_an_absent_baseline_is_a_usage_error(call: Call) -> None:
    result = call("--baseline", "ledger.toml")
    assert result.exit_code == 2
    assert "--update-baseline makes it" in result.stderr


@pytest.mark.parametrize("status", ["confirmed", "pending"])
def test_the_update_makes_the_next_run_pass(call: Call, monkeypatch: pytest.MonkeyPatch, status: FindingStatus) -> None:
    fake(monkeypatch, a_stored(status), a_stored(status, "FuseMul"))
    assert call("--baseline", "ledger.toml", "--update-baseline").exit_code == 0
    assert [one.signature.culprits for one in read_ledger(Path("ledger.toml"))] == [("FuseAdd",), ("FuseMul",)]
    assert call("--baseline", "ledger.toml").exit_code == 0


def test_the_update_leaves_known_entries_as_they_are(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    write_ledger(Path("ledger.toml"), [BUG])
    before = Path("ledger.toml").read_bytes()
    fake(monkeypatch, a_stored("confirmed"))
    assert call("--baseline", "ledger.toml", "--update-baseline").exit_code == 0
    assert Path("ledger.toml").read_bytes() == before


def test_nothing_tested_is_exit_code_4_and_no_baseline(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(monkeypatch, tests=100, unsupported=100)
    result = call("--baseline", "ledger.toml", "--update-baseline", "--github", "--junit", "j.xml")
    assert result.exit_code == 4
    assert "none of 100 tests could be judged: 100 unsupported" in result.stdout
    assert "::error" in result.stdout
    assert not Path("ledger.toml").exists()
    assert "<error" in Path("j.xml").read_text()


def test_github_actions_get_annotations(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(monkeypatch, a_stored("confirmed"))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    result = call("--json")
    assert result.exit_code == 1
    assert "::error file=miscompile-out/findings/wrong-FuseAdd/repro.py" in result.stderr
    assert json.loads(result.stdout)["tests"] == 100


def test_shards_are_ranges_of_lanes(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    portions = fake(monkeypatch)
    for shard in ("1/3", "3/3"):
        assert call("--shard", shard, "--workers", "4").exit_code == 0
    assert [(one.first, one.lanes) for one in portions] == [(0, 12), (8, 12)]


@pytest.mark.parametrize(
    "words",
    [
        ("--shard", "0/3"), ("--shard", "4/3"), ("--shard", "two"), ("--tests", "5", "--shard", "1/3"),
        ("--update-baseline",), ("--baseline", "l.toml", "--update-baseline", "--shard", "1/2"),
    ],
)  # fmt: skip
def test_usage_errors(call: Call, words: tuple[str, ...]) -> None:
    result = call(*words)
    assert result.exit_code == 2, result.output
    assert not Path("miscompile-out").exists()
