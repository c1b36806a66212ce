"""What the verbs print and leave behind when a campaign finds something."""

import json
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from miscompile.base.errors import ExecutionError, UsageError
from miscompile.cli.campaigns import terminated_as_interrupt
from miscompile.cli.main import program
from miscompile.cli.verbs.findings import bisected_sentence
from miscompile.core.case import Case
from miscompile.core.events import Found, Notice, Progress, Started, Suspected, WorkPhase, WorkPhaseListener
from miscompile.core.finding import Finding, Property, Signature
from miscompile.core.ports import Listener
from miscompile.core.tensor import tensor
from miscompile.core.verdict import FindingKind
from miscompile.engine import coordinator, single
from miscompile.engine.plan import Plan
from miscompile.findings import folder
from miscompile.findings.folder import FindingStatus, Stored
from miscompile.findings.store import Campaign, Store
from miscompile.graph.emit import to_program
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.triage.script import SHOWS

KIND = TensorType("float32", (2,))
GRAPH = Graph("g", (ValueInfo("x", KIND),), (ValueInfo("y", KIND),), (Node("Add", ("x", "x"), ("y",)),))
CASE = Case(to_program(Model(GRAPH, {"": 18}), ("y",)), ((tensor(np.ones(2, np.float32)),),), {"seed": 3})


def a_stored(status: FindingStatus = "confirmed", kind: FindingKind = "wrong", script: str = "") -> Stored:
    signature = Signature("onnxruntime", kind, "", ("FuseAdd",), "")
    facts = {"test": 11, "nodes": 1, "reproduced": True, "rule": "exact", "output": "y"}
    finding = Finding(f"{kind}-1", Property("pair", "onnxruntime", signature), CASE, "output 'y' differs", facts)
    return Stored(finding, status, None, {"onnxruntime": "1.0"}, script)


def campaign(stored: Stored, *, then: Callable[[], None] = lambda: None) -> Callable[..., None]:
    def fuzz(options: Plan, listeners: Sequence[Listener]) -> None:
        with Store.open(options.out) as store:
            store.begin(Campaign(options.target, options.seed, options.remembered(), {"onnxruntime": "1.0"}, 1.0))
            number = store.begin_session(1.0)
            store.add_pending(stored)
            store.add_counters({"tests": 100, "invalid": 1, "unsupported": 4, "rounds": 2})
            store.note_session(number, 10.0)
            for event in (
                Started(), Suspected(stored.finding.identifier, "onnxruntime:wrong:FuseAdd", 3),
                Progress(10.0, {"tests": 100, "unsupported": 4}),
                Found(stored.finding, True), Found(stored.finding, False),
                Notice("lane 1 was started anew"), Progress(16.0, {"tests": 190}),
            ):  # fmt: skip
                for listener in listeners:
                    listener.on(event)
            then()

    return fuzz


def call(*words: str | Path) -> Result:
    return CliRunner().invoke(program, [str(word) for word in words])


def fuzz(out: Path, *words: str) -> Result:
    return call("fuzz", "onnxruntime", "--out", out, "--seed", "5", *words)


def test_a_finding_is_exit_code_1_with_table_summary_and_issue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator, "fuzz", campaign(a_stored()))
    result = fuzz(tmp_path)
    assert result.exit_code == 1
    assert "100 tests in 10 s (10/s), 95% taken" in result.stdout
    assert "FuseAdd" in result.stdout
    for text in ("seed 5", "found wrong-1", "lane 1", "100 tests  10/s"):
        assert text in result.stderr
    assert "suspect: wrong-1: onnxruntime:wrong:FuseAdd (3 nodes)" in result.stderr.split("found wrong-1")[0]
    data = json.loads((tmp_path / "summary.json").read_text())
    assert {key: data[key] for key in ("tests", "seconds", "tests_per_second", "invalid", "unsupported", "deaths")} == {
        "tests": 100, "seconds": 10.0, "tests_per_second": 10.0, "invalid": 1, "unsupported": 4, "deaths": 0,
    }  # fmt: skip
    assert (data["timeouts"], data["mismatches_judged_benign"], data["counters"]) == (0, 0, {"rounds": 2})
    [finding] = data["findings"]
    assert (finding["id"], finding["signature"]) == ("wrong-1", "onnxruntime:wrong:FuseAdd")
    assert (finding["kind"], finding["culprits"], finding["nodes"], finding["reproduced"]) == (
        "wrong",
        ["FuseAdd"],
        1,
        True,
    )
    assert data["versions"] == {"onnxruntime": "1.0"}
    issue = (tmp_path / "findings" / "wrong-1" / "issue.md").read_text()
    assert "Add" in issue
    assert "FuseAdd" in issue


def test_json_is_the_summary_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator, "fuzz", campaign(a_stored()))
    result = fuzz(tmp_path, "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout) == json.loads((tmp_path / "summary.json").read_text())
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("status", "code"), [("confirmed", 1), ("pending", 1), ("known", 0), ("unconfirmed", 0), ("non-default", 0)]
)
def test_only_new_findings_count(
    status: FindingStatus, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator, "fuzz", campaign(a_stored(status)))
    assert fuzz(tmp_path).exit_code == code
    assert call("findings", tmp_path).exit_code == code


def test_an_interrupt_keeps_what_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(coordinator, "fuzz", campaign(a_stored(), then=interrupt))
    result = fuzz(tmp_path)
    assert result.exit_code == 1
    assert "wrong-1" in result.stdout
    assert "continue with --resume" in result.stderr
    assert (tmp_path / "summary.json").exists()


def test_a_failure_of_the_tool_keeps_what_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise ExecutionError("no worker starts")

    monkeypatch.setattr(coordinator, "fuzz", campaign(a_stored(), then=fail))
    result = fuzz(tmp_path)
    assert result.exit_code == 3
    assert len(json.loads((tmp_path / "summary.json").read_text())["findings"]) == 1
    assert (tmp_path / "findings" / "wrong-1" / "issue.md").exists()


def test_a_damaged_finding_is_a_warning_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def damage() -> None:
        (tmp_path / "findings" / "wrong-1" / "finding.json").write_text("{")

    monkeypatch.setattr(coordinator, "fuzz", campaign(a_stored(), then=damage))
    result = fuzz(tmp_path)
    assert result.exit_code == 1
    assert result.stderr.count("miscompile: warning: finding ") == 1
    assert "wrong-1 is damaged" in result.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_sigterm_and_sighup_are_interrupts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    before = signal.getsignal(number)
    monkeypatch.setattr(coordinator, "fuzz", campaign(a_stored(), then=lambda: os.kill(os.getpid(), number)))
    result = fuzz(tmp_path)
    assert result.exit_code == 1
    assert "continue with --resume" in result.stderr
    assert signal.getsignal(number) is before


def test_a_second_signal_does_not_interrupt_the_ending() -> None:
    """A terminal that closes sends SIGHUP more than once."""
    with terminated_as_interrupt():
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGHUP)
        os.kill(os.getpid(), signal.SIGHUP)
        os.kill(os.getpid(), signal.SIGTERM)


def test_sighup_stays_ignored_under_nohup() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with terminated_as_interrupt():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("name", ["finding.json", "model.onnx"])
def test_a_damaged_finding_does_not_keep_repro_from_its_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(coordinator, "fuzz", campaign(a_stored(script=f"print({SHOWS!r})\nraise SystemExit(1)\n")))
    fuzz(tmp_path)
    (tmp_path / "findings" / "wrong-1" / name).write_text("{")
    result = call("repro", tmp_path, "wrong-1")
    assert result.exit_code == 1, result.stderr
    assert "wrong-1 shows" in result.stdout
    assert "is damaged" in result.stderr
    for verb in ("replay", "reduce", "bisect"):
        result = call(verb, tmp_path, "wrong-1")
        assert (result.exit_code, result.stderr.count("\n")) == (3, 1)
        assert "is damaged" in result.stderr


@pytest.mark.parametrize("verb", ["findings", "report", "replay", "repro"])
def test_every_verb_makes_a_lost_index_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    monkeypatch.setattr(coordinator, "fuzz", campaign(a_stored(script="raise SystemExit(0)\n")))
    monkeypatch.setattr(single, "replay", lambda *_: (False, ""))
    fuzz(tmp_path)
    before = json.loads(call("findings", tmp_path, "--json").stdout)
    for path in tmp_path.glob("miscompile.db*"):
        path.write_bytes(b"garbage")
    words = {"report": ["summary"], "replay": ["wrong-1"], "repro": ["wrong-1"]}
    result = call(verb, tmp_path, *words.get(verb, []))
    assert result.exit_code == (1 if verb == "findings" else 0), result.stderr
    assert json.loads(call("findings", tmp_path, "--json").stdout) == before


def test_resume_takes_over_seed_and_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator, "fuzz", campaign(a_stored()))
    fuzz(tmp_path, "--ops", "Add", "--max-rank", "2", "--keep-passes", "--tests", "5")
    seen: list[Plan] = []
    monkeypatch.setattr(coordinator, "fuzz", lambda options, _: seen.append(options))
    result = call("fuzz", "onnxruntime", "--out", tmp_path, "--resume", "--max-rank", "3")
    assert result.exit_code == 1, result.output
    [options] = seen
    assert (options.seed, options.ops, options.max_rank, options.steer) == (5, ("Add",), 3, False)
    assert (options.tests, options.seconds) == (None, 300.0)
    for words, says in ((["toy"], "tests onnxruntime, not toy"), (["onnxruntime", "--seed", "6"], "has seed 5")):
        monkeypatch.setattr("miscompile.cli.verbs.fuzz.ready", lambda target, install: target)
        result = call("fuzz", *words, "--out", tmp_path, "--resume")
        assert result.exit_code == 2
        assert says in result.stderr


def test_findings_as_table_json_and_issue(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        store.add_pending(a_stored())
    assert "wrong-1" in call("findings", tmp_path).stdout
    data = json.loads(call("findings", tmp_path, "--json").stdout)
    assert [finding["id"] for finding in data["findings"]] == ["wrong-1"]
    result = call("findings", tmp_path, "wrong-1")
    assert result.exit_code == 0
    assert result.stdout.startswith("# FuseAdd: wrong result for Add\n")
    data = json.loads(call("findings", tmp_path, "wrong-1", "--json").stdout)
    assert data["issue"] == result.stdout


def test_nothing_found_is_exit_code_0(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        store.add_counters({"tests": 5, "unsupported": 4})
    result = call("findings", tmp_path)
    assert (result.exit_code, "Nothing found." in result.stdout) == (0, True)


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("print('BUG: y differs'); raise SystemExit(1)", 1),
        ("pass", 0),
        ("import os; print('DIES: soon', flush=True); os.kill(os.getpid(), 11)", 1),
        ("import no_such_module", 3),
        ("raise SystemExit(7)", 3),
        ("import time; time.sleep(60)", 3),
    ],
)
def test_repro_runs_the_script(script: str, code: int, tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        store.add_pending(a_stored(script=script))
    result = call("repro", tmp_path, "wrong-1", "--limit-seconds", "1.5", "--json")
    assert result.exit_code == code, result.output
    if code < 3:
        assert json.loads(result.stdout)["shows"] is bool(code)
        said = "wrong-1 shows" if code else "wrong-1 does not show"
        assert said in call("repro", tmp_path, "wrong-1").stdout


def test_repro_without_a_script_says_so(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        store.add_pending(a_stored())
    result = call("repro", tmp_path, "wrong-1")
    assert result.exit_code == 2
    assert "has no script yet" in result.stderr


@pytest.mark.parametrize("verb", ["reduce", "bisect"])
def test_reduce_and_bisect_answer_in_a_sentence(verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def reduce(out: Path, identifier: str, seconds: float, on_phase: WorkPhaseListener) -> Stored:
        assert (out, identifier, seconds) == (tmp_path, "wrong-1", 120.0)
        on_phase(WorkPhase("wrong-1: reducing (3 -> 2 nodes)"))
        return a_stored()

    def bisect(out: Path, identifier: str, on_phase: WorkPhaseListener) -> tuple[tuple[str, ...], tuple[str, ...]]:
        del out, identifier, on_phase
        return ("FuseAdd",), ("FuseAdd",)

    monkeypatch.setattr(single, verb, {"reduce": reduce, "bisect": bisect}[verb])
    with Store.open(tmp_path) as store:
        store.add_pending(a_stored())
    said = {"reduce": "1 node, as before; guilty: FuseAdd; confirmed", "bisect": "guilty: FuseAdd, unchanged"}
    assert call(verb, tmp_path, "wrong-1").stdout == f"wrong-1: {said[verb]}\n"
    assert call(verb, tmp_path, "wrong", "-q").stderr == ""
    assert json.loads(call(verb, tmp_path, "wrong-1", "--json").stdout)["id"] == "wrong-1"
    assert folder.load(tmp_path, "wrong-1").issue


def test_a_reduction_that_proves_a_duplicate_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(single, "reduce", lambda *_: None)
    with Store.open(tmp_path) as store:
        store.add_pending(a_stored())
    assert "is the bug of another finding" in call("reduce", tmp_path, "wrong-1").stdout


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        (("A",), ("A",), "guilty: A, unchanged"),
        (("A",), ("B", "C"), "guilty: B + C, before: A"),
        ((), (), "no pass that can be switched off is to blame, unchanged"),
    ],
)
def test_a_bisection_says_what_changed(before: tuple[str, ...], after: tuple[str, ...], says: str) -> None:
    assert bisected_sentence(before, after) == says


def test_quiet_leaves_the_findings_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator, "fuzz", campaign(a_stored()))
    result = fuzz(tmp_path, "-q")
    assert (result.exit_code, result.stderr) == (1, "")
    head, row = result.stdout.splitlines()
    assert head.startswith("finding")
    assert row.startswith("wrong-1")


def test_verbose_tells_sightings_of_known_bugs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator, "fuzz", campaign(a_stored()))
    assert "known wrong-1" not in fuzz(tmp_path / "usual").stderr
    assert "known wrong-1" in fuzz(tmp_path / "verbose", "-v").stderr


def test_quiet_and_verbose_exclude_each_other(tmp_path: Path) -> None:
    result = fuzz(tmp_path, "-q", "-v")
    assert result.exit_code == 2
    assert "say one of -q and -v" in result.stderr


def test_a_campaign_that_cannot_begin_names_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(options: Plan, listeners: Sequence[Listener]) -> None:
        del options, listeners
        raise UsageError("no such device")

    monkeypatch.setattr(coordinator, "fuzz", refuse)
    result = fuzz(tmp_path)
    assert result.exit_code == 2
    assert str(tmp_path) not in result.stderr


def test_the_table_of_findings_has_a_legend_of_its_own_words(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        store.add_pending(a_stored("pending"))
    said = call("findings", tmp_path).stdout
    assert "pending: seen, not examined yet" in said
    assert "confirmed:" not in said


@pytest.mark.parametrize("shows", [True, False])
def test_replay(shows: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(single, "replay", lambda *_: (shows, "y differs"))
    with Store.open(tmp_path) as store:
        store.add_pending(a_stored())
    result = call("replay", tmp_path, "wrong-1")
    assert result.exit_code == int(shows)
    assert "y differs" in result.stdout
    assert json.loads(call("replay", tmp_path, "wrong-1", "--json").stdout)["shows"] is shows


def test_targets_and_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    result = call("targets", "--json")
    assert result.exit_code == 0
    rows = {row["name"]: row for row in json.loads(result.stdout)}
    assert rows["onnxruntime"]["passes"] > 50
    assert "off" in rows["onnxruntime"]["levels"]
    assert "onnxruntime" in call("targets").stdout
    monkeypatch.setattr(
        single, "matrix", lambda *_: {"Add": {"float32": True, "bfloat16": False}, "Not": {"bool": True}}
    )
    assert json.loads(call("targets", "--matrix", "onnxruntime", "--json").stdout)["Add"]["bfloat16"] is False
    assert "Not" in call("targets", "--matrix", "onnxruntime").stdout
