"""The scripts of the bugs that were found: what a run of one tells, and that those here show as noted."""

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from evaluation.bugs import scripts
from evaluation.bugs.page import ROOT, Bug, described
from evaluation.bugs.scripts import ScriptRun, ScriptRuns, run_scripts
from evaluation.bugs.view import bugs_view
from evaluation.measures import unwatched
from miscompile.base.errors import MissingCompilerError
from miscompile.triage.script import DIES, SHOWS

TEXTS = {
    "shows": f"import sys; print({SHOWS!r}, 'level full raises'); sys.exit(1)",
    "dies": f"import os; print({DIES!r}, flush=True); os.abort()",
    "absent": "print('the bug does not show')",
    "broken": "raise SystemExit('no such level')",
    "hangs": "import time; time.sleep(60)",
}
SCRIPTED = [bug for bug in described() if bug.script]


def _bugs(tmp_path: Path, *names: str, target: str = "toy", fixed_in: str = "") -> list[Bug]:
    for name in names:
        (tmp_path / f"{name}.py").write_text(TEXTS[name], "utf-8")
    return [Bug(target, "", "", "a.", "crash", "", f"{name}.py", fixed_in) for name in names]


def _runs(tmp_path: Path, bugs: list[Bug], seconds: float = 30) -> ScriptRuns:
    return list(run_scripts(bugs, seconds, unwatched, tmp_path))[-1]


def test_each_ending_of_a_script_is_told(tmp_path: Path) -> None:
    runs = _runs(tmp_path, _bugs(tmp_path, "shows", "dies", "absent", "broken")).runs
    assert [run.status for run in runs] == ["shows", "shows", "absent", "broken"]
    assert [run.expected for run in runs] == [True, True, False, False]
    assert "level full raises" in runs[0].said
    assert runs[3].said == "no such level"


def test_a_script_that_does_not_end_is_broken(tmp_path: Path) -> None:
    (run,) = _runs(tmp_path, _bugs(tmp_path, "hangs"), 1).runs
    assert run.status == "broken"


def test_bugs_without_script_are_not_run_and_missing_compilers_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_compiler(target: str) -> dict[str, str]:
        raise MissingCompilerError(f"{target} is not installed")

    monkeypatch.setattr(scripts, "versions_of", no_compiler)
    bugs = [Bug("tvm", "", "", "a.", "crash", ""), *_bugs(tmp_path, "shows")]
    found = _runs(tmp_path, bugs)
    assert (found.runs, found.without_compiler) == ((), ("toy",))


@pytest.mark.parametrize(
    ("version", "fixed_in", "status", "expected"),
    [
        ("1.32.0", "", "shows", True),
        ("1.32.0", "1.33.0", "shows", True),
        ("1.33.0", "1.33.0", "shows", False),
        ("1.33.1", "1.33.0", "absent", True),
        ("1.33.1", "", "absent", False),
    ],
)
def test_a_mended_bug_shows_in_older_releases_only(version: str, fixed_in: str, status: str, expected: bool) -> None:
    run = ScriptRun("toy", "a.py", version, "shows" if status == "shows" else "absent", "", 0.1, fixed_in)
    assert run.expected is expected


def test_the_table_names_what_is_not_as_noted(tmp_path: Path) -> None:
    figures = _runs(tmp_path, _bugs(tmp_path, "shows", "absent"))
    console = Console(width=100, record=True, file=StringIO())
    console.print(bugs_view(figures))
    text = console.export_text()
    assert "1 of 2 bugs show" in text
    assert "not as noted: absent.py: absent" in text
    assert figures.as_json()["runs"][0]["expected"] is True


def test_scripts_and_entries_belong_together() -> None:
    files = {str(path.relative_to(ROOT)) for path in (ROOT / "docs" / "bugs").rglob("*.py")}
    assert {bug.script for bug in SCRIPTED} == files
    assert all(bug.script.startswith(f"docs/bugs/{bug.target}/") for bug in SCRIPTED)


@pytest.mark.slow
@pytest.mark.parametrize("bug", SCRIPTED, ids=lambda bug: bug.script.removeprefix("docs/bugs/"))
def test_a_bug_of_the_book_shows_as_noted(bug: Bug) -> None:
    figures = list(run_scripts([bug], 300, unwatched))[-1]
    if figures.without_compiler:
        pytest.skip(f"{bug.target} is not installed")
    (run,) = figures.runs
    assert run.expected, f"{run.status}: {run.said}"
