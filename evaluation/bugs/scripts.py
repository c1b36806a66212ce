"""Runs the scripts of the bugs that were found, each in a fresh process, on the compilers that are installed."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from evaluation.bugs.page import ROOT, Bug
from evaluation.measures import Watch
from miscompile.base.errors import MissingCompilerError
from miscompile.environments.resolve import python_of, versions_of
from miscompile.findings.ledger_entry import reaches
from miscompile.targets.registry import about, compiler_of
from miscompile.triage.confirm import run_script


@dataclass(frozen=True, slots=True)
class ScriptRun:
    """How a script ended: the bug `shows`, is `absent`, or the script is `broken`; `said` is its last line.

    `version` is that of its compiler here, `fixed_in` the release that mended the bug, as `docs/bugs-found.toml` says.
    """

    target: str
    script: str
    version: str
    status: Literal["shows", "absent", "broken"]
    said: str
    seconds: float
    fixed_in: str

    @property
    def expected(self) -> bool:
        """Whether it ended as the file says: a bug shows, unless this version has its mend."""
        return self.status == ("absent" if reaches(self.version, self.fixed_in) else "shows")


@dataclass(frozen=True, slots=True)
class ScriptRuns:
    """The runs so far, and the targets that have scripts but no compiler here."""

    runs: tuple[ScriptRun, ...]
    without_compiler: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return everything as a JSON object."""
        runs = [{**asdict(run), "expected": run.expected} for run in self.runs]
        return {"runs": runs, "without_compiler": list(self.without_compiler)}


def run_scripts(bugs: Sequence[Bug], seconds: float, watch: Watch, root: Path = ROOT) -> Iterator[ScriptRuns]:
    """Run the scripts of `bugs`, each for at most `seconds`; yield all runs so far after each.

    The paths of the scripts begin at `root`. A script that does not end is broken.
    """
    scripted = [bug for bug in bugs if bug.script]
    versions = {target: _version(target) for target in sorted({bug.target for bug in scripted})}
    without = tuple(target for target, version in versions.items() if not version)
    ready = [bug for bug in scripted if versions[bug.target]]
    runs: tuple[ScriptRun, ...] = ()
    yield ScriptRuns(runs, without)
    for done, bug in enumerate(ready):
        watch(bug.script, done, len(ready))
        runs += (_run(bug, versions[bug.target], seconds, root),)
        yield ScriptRuns(runs, without)


def _version(target: str) -> str:
    """Return the version of a target's compiler, of any distribution of a target that is none; empty without it."""
    try:
        found = versions_of(target)
    except MissingCompilerError:
        return ""
    return found.get(compiler_of(about(target)) or "") or next(iter(found.values()))


def _run(bug: Bug, version: str, seconds: float, root: Path) -> ScriptRun:
    result = run_script(root / bug.script, python_of(bug.target), seconds)
    lines = (result.stderr if result.status == "broken" else result.stdout).strip().splitlines()
    said = lines[-1] if lines else ""
    return ScriptRun(bug.target, bug.script, version, result.status, said, result.seconds, bug.fixed_in)
