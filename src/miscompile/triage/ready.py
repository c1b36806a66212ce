"""Whether a finding is ready to be filed: what its maintainers would ask next has been tried.

A confirmed finding has shown itself on this machine. Before a person files it, its script must show it again with the
compiler as it is shipped, with fewer processor features where the compiler can be told so, and the first bad release
must be known.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from miscompile.findings.folder import Stored
from miscompile.findings.switches import switches_of
from miscompile.targets.about import CpuCap
from miscompile.triage.confirm import ScriptResult, run_script

TIMES = 2
"""Fresh processes in which the script must show the bug."""

NO_CAP = CpuCap()

RunScript = Callable[[CpuCap], ScriptResult]
"""Runs a finding's script with a setting of the processor features."""


@dataclass(frozen=True, slots=True)
class Readiness:
    """The answers by name: None means that a check passed, a text says what is missing.

    `notes` say what could not be asked, and is not missing for that.
    """

    checks: Mapping[str, str | None]
    notes: tuple[str, ...] = ()

    @property
    def missing(self) -> list[str]:
        """What is missing, in the order of the checks."""
        return [text for text in self.checks.values() if text is not None]

    def as_json(self) -> dict[str, Any]:
        """Return the fact `ready`."""
        return {"ready": not self.missing, "checks": dict(self.checks), "notes": list(self.notes)}


def readiness(
    stored: Stored, caps: Mapping[str, CpuCap], filed: str, run: RunScript, *, several_releases: bool
) -> Readiness:
    """Try what a maintainer would ask, and return the answers.

    `caps` are settings of the processor features, by the name of the features; `filed` is the link that the ledger has
    for the bug. A release is asked for only if the compiler has `several_releases`.
    """
    facts, held = stored.finding.facts, stored.finding.property
    checks: dict[str, str | None] = {}
    checks["confirmed"] = None if stored.status in ("confirmed", "non-default") else f"it is {stored.status}"
    checks["not filed"] = f"the ledger has {filed}" if filed else None
    needs = switches_of(facts)
    checks["defaults"] = f"it needs {', '.join(needs)}" if needs else None
    checks["fresh processes"] = _shows([run(NO_CAP) for _ in range(TIMES)], held.signature.kind)
    for name, cap in caps.items():
        checks[f"processor features {name}"] = _shows([run(cap)], held.signature.kind)
    known = facts.get("releases")
    ask = "the first bad release is unknown (bisect --releases)"
    checks["first bad release"] = None if known or not several_releases else ask
    notes = () if caps else ("the compiler has no switch for processor features, so those of this machine were used",)
    return Readiness(checks, notes)


def _shows(results: list[ScriptResult], kind: str) -> str | None:
    failed = [one for one in results if one.status != "shows"]
    if not failed:
        return None
    if failed[0].status == "broken":
        return f"the script ends with status {failed[0].code}, which says nothing about the {kind}"
    return f"the script does not show it in {len(failed)} of {len(results)} processes"


def script_runner(script: Path, python: str | Path | None, seconds: float) -> RunScript:
    """Return a function that runs `script` in a fresh process under `python`, for at most `seconds`."""

    def run(cap: CpuCap) -> ScriptResult:
        variables = {**os.environ, **cap.variables} if cap.variables else None
        if cap.words is None:
            return run_script(script, python, seconds, variables)
        with TemporaryDirectory(prefix="miscompile-") as place:
            changed = Path(place) / script.name
            changed.write_text(script.read_text("utf-8").replace(*cap.words), "utf-8")
            return run_script(changed, python, seconds, variables)

    return run
