"""The search for the first bad release, with releases that are made up."""

from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miscompile.base.errors import UsageError
from miscompile.core.verdict import FindingKind
from miscompile.engine import releases as module
from miscompile.engine.releases import Judge, Trial, search
from miscompile.environments import cache
from miscompile.triage.confirm import ScriptResult

RELEASES = [f"1.{n}.0" for n in range(16)]

Answer = Literal["shows", "absent", "skipped"]


class World:
    """Releases with known answers; counts what is asked."""

    def __init__(self, answers: dict[str, Answer]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def ask(self, release: str) -> Trial:
        assert release not in self.asked, "an environment is made once"
        self.asked.append(release)
        return Trial(release, self.answers[release], "as the test says")


def world(too_old: int, first_bad: int, gaps: frozenset[int] = frozenset()) -> World:
    """Releases before `too_old` cannot answer, nor can those in `gaps`; from `first_bad` on the bug shows."""

    def answer(place: int) -> Answer:
        return "skipped" if place < too_old or place in gaps else "shows" if place >= first_bad else "absent"

    return World({release: answer(place) for place, release in enumerate(RELEASES)})


@given(st.integers(0, 15), st.integers(0, 15))
def test_the_first_bad_release_is_found(too_old: int, first_bad: int) -> None:
    made = world(too_old, first_bad)
    found = search("x", RELEASES, "1.15.0", made.ask)
    assert found.first_bad == RELEASES[max(too_old, first_bad)]
    assert found.last_good == (RELEASES[first_bad - 1] if first_bad > too_old else None)
    assert len(made.asked) <= 6, "both ends, and the logarithm of sixteen"
    assert made.asked[0] == "1.15.0"
    assert found.newest.answer == "shows"


@given(st.integers(1, 15), st.sets(st.integers(1, 14)))
def test_gaps_are_skipped(first_bad: int, holes: set[int]) -> None:
    made = world(0, first_bad, frozenset(holes))
    found = search("x", RELEASES, "1.15.0", made.ask)
    answering = [place for place in range(16) if place not in holes]
    assert found.first_bad == RELEASES[min(place for place in answering if place >= first_bad)]
    assert found.last_good == RELEASES[max(place for place in answering if place < first_bad)]
    assert {trial.release for trial in found.skipped} <= {RELEASES[place] for place in holes}
    assert [trial.release for trial in found.trials] == sorted(made.asked, key=RELEASES.index)


def test_a_newer_release_may_have_mended_it() -> None:
    made = world(0, 4)
    made.answers["1.15.0"] = "absent"
    found = search("x", RELEASES, "1.10.0", made.ask)
    assert (found.first_bad, found.last_good) == ("1.4.0", "1.3.0")
    assert (found.newest.release, found.newest.answer) == ("1.15.0", "absent")
    assert set(made.asked).isdisjoint({"1.11.0", "1.12.0", "1.13.0", "1.14.0"})


def test_a_version_that_no_index_has_is_asked_as_it_is() -> None:
    made = world(0, 4)
    made.answers["1.9.5.dev1"] = "shows"
    assert search("x", RELEASES, "1.9.5.dev1", made.ask).first_bad == "1.4.0"
    made = world(0, 4)
    assert search("x", RELEASES, "1.9", made.ask).first_bad == "1.4.0", "1.9 is 1.9.0"


def test_the_oldest_release_may_show_it() -> None:
    made = world(0, 0)
    found = search("x", RELEASES, "1.15.0", made.ask)
    assert (found.first_bad, found.last_good, len(made.asked)) == ("1.0.0", None, 2)


@pytest.mark.parametrize("answer", ["absent", "skipped"])
def test_where_it_was_found_it_must_show(answer: Answer) -> None:
    made = world(0, 4)
    made.answers["1.15.0"] = answer
    with pytest.raises(UsageError, match=r"the bug does not show in x 1\.15\.0, where it was found: as the test says"):
        search("x", RELEASES, "1.15.0", made.ask)
    assert made.asked == ["1.15.0"]


def result(status: Literal["shows", "absent", "broken"], stdout: str = "", stderr: str = "") -> ScriptResult:
    return ScriptResult(status, {"shows": 1, "absent": 0, "broken": 1}[status], stdout, stderr, 1.0)


def judge(kind: FindingKind, tmp_path: Path) -> Judge:
    return Judge("onnxruntime", kind, "ir_version=10", tmp_path, False, lambda _: None)


def test_wrong_values_show_by_the_announcement_alone(tmp_path: Path) -> None:
    asks = judge("wrong", tmp_path)
    assert asks.judge("1.0", result("shows", "BUG: output 0 on feed 0: 1 of 2 elements")).answer == "shows"
    assert asks.judge("1.0", result("absent")).answer == "absent"
    broken = asks.judge("1.0", result("broken", "", "Traceback\nFail: opset 22 is under development\n"))
    assert (broken.answer, "opset 22" in broken.reason) == ("skipped", True)
    stopped = ScriptResult("broken", None, "", "", 300.0)
    assert "no end within" in asks.judge("1.0", stopped).reason


def test_an_error_must_be_the_same_error(tmp_path: Path) -> None:
    asks = judge("exception", tmp_path)
    first = "versions\nBUG: level full raises Fail: [ONNXRuntimeError] : 1 : FAIL : bad axis 7 in node 'n1'\n"
    again = first.replace("7", "9").replace("n1", "n2")
    other = "BUG: level full raises Fail: [ONNXRuntimeError] : 1 : FAIL : something else\n"
    refusal = "BUG: level full raises NotImplemented: Could not find an implementation for Relu(14) node with name ''"
    assert asks.judge("1.9", result("shows", first)).answer == "shows"
    assert asks.judge("1.8", result("shows", again)).answer == "shows"
    assert asks.judge("1.7", result("shows", other)).answer == "other"
    assert "refuses the program" in asks.judge("1.6", result("shows", refusal)).reason
    refused = judge("exception", tmp_path)
    assert refused.judge("1.9", result("shows", refusal)).answer == "shows", "another build takes the program there"


def test_an_old_release_gets_an_old_ir_version_and_a_failed_installation_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    seen: dict[str, str] = {}

    def prepare(text: str, on_progress: object) -> str:
        del on_progress
        if text.endswith("1.16.0"):
            raise UsageError("onnxruntime==1.16.0 cannot be installed: disk full")
        return text

    def run(path: Path, python: Path, seconds: float) -> ScriptResult:
        del seconds
        seen[str(python)] = path.read_text()
        return result("shows", "BUG: output 0")

    monkeypatch.setattr(module, "prepare", prepare)
    monkeypatch.setattr(module, "python_of", lambda text: Path(text))
    monkeypatch.setattr(module, "run_script", run)
    asks = judge("wrong", tmp_path)
    assert [asks.ask(one).answer for one in ("1.17.3", "1.31.1", "1.16.0")] == ["shows", "shows", "skipped"]
    assert seen == {"onnxruntime==1.17.3": "ir_version=9", "onnxruntime==1.31.1": "ir_version=10"}
    assert cache.environments() == []


SCRIPT = 'model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 26)], ir_version=13)\n'


def test_an_old_release_gets_an_opset_that_shows_the_bug() -> None:
    assert module.opset_of(SCRIPT) == 26
    old = module.readable_script(SCRIPT, "onnxruntime==1.18.0", (26, 25, 17))
    assert 'make_opsetid("", 17)], ir_version=10' in old
    assert module.readable_script(SCRIPT, "onnxruntime==1.32.0", (26, 25, 17)) == SCRIPT
    assert module.opset_of(module.readable_script(SCRIPT, "onnxruntime==1.18.0")) == 26, "no other is known to show it"
