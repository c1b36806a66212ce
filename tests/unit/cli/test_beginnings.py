"""Beginnings of identifiers, and help as people ask for it."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from miscompile.api.plans import plan_of
from miscompile.cli.main import VERBS, program
from miscompile.findings.store import Store


def call(*words: object) -> Result:
    return CliRunner().invoke(program, [str(word) for word in words])


@pytest.fixture
def out(tmp_path: Path) -> Path:
    with Store.open(tmp_path):
        for name in ("wrong-aa11", "wrong-ab22", "death-cc33"):
            (tmp_path / "findings" / name).mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize("verb", ["repro", "replay", "reduce", "bisect", "findings", "ready"])
def test_a_beginning_that_fits_several_findings_is_refused(out: Path, verb: str) -> None:
    result = call(verb, out, "wrong-a")
    assert result.exit_code == 2
    assert "wrong-aa11, wrong-ab22" in result.output


@pytest.mark.parametrize("text", ["death", "death-cc33"])
def test_a_beginning_that_fits_one_finding_stands_for_it(out: Path, text: str) -> None:
    result = call("repro", out, text)
    assert "death-cc33" in result.output


def test_a_text_that_fits_nothing_is_named(out: Path) -> None:
    result = call("replay", out, "hang")
    assert result.exit_code in (2, 3)
    assert "there is no finding 'hang'" in result.output


def test_help_is_a_verb() -> None:
    assert call("help").output == call("--help").output
    assert call("help", "fuzz").output == call("fuzz", "--help").output
    assert all(call("help", verb).exit_code == 0 for verb in VERBS)
    assert call("help", "nonsense").exit_code == 2


@pytest.mark.parametrize(("seconds", "most"), [(None, 150.0), (60.0, 120.0), (0.0, 600.0), (7200.0, 600.0)])
def test_triage_after_the_tests_takes_half_of_their_time(tmp_path: Path, seconds: float | None, most: float) -> None:
    given = {"seconds": seconds, "tests": None, "seed": 1, "out": tmp_path, "workers": 1, "keep_passes": False}
    assert plan_of(("toy",), given).triage_seconds == most
