"""A triage worker: a child process that reduces, attributes and confirms pending findings.

Run as `python -m miscompile.triage.worker`. The first line on standard input is the settings, every further one the
identifier of a finding in OUT/findings, with `careful` behind it if the finding has ended a worker before. The worker
tells its phases as JSON lines with `phase`, writes the finding once, when it is done, and answers with one JSON line
more. It reads the index of OUT to see whether a finding is a duplicate. Slippages are written as pending findings
before they are named in the answer.
"""

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

from miscompile.base.errors import MiscompileError
from miscompile.base.rng import stream
from miscompile.core.pool import Pool
from miscompile.findings import folder
from miscompile.findings.folder import Stored
from miscompile.graph.careful import careful
from miscompile.triage.attribution import stored_property
from miscompile.triage.conclude import Concluded, PhaseListener, silent, triage
from miscompile.triage.confirm import ScriptForks
from miscompile.triage.reduce.engine import Budget
from miscompile.triage.settings import CAREFUL, TriageSettings, settings_from
from miscompile.triage.triaged import TriagedFindings

REDUCTION_SECONDS = 20.0
"""Default time limit, in seconds, for the reduction of one finding."""

SLOW_REDUCTION_SECONDS = 60.0
"""The same for a compiler that needs more than `SLOW_SECONDS` for the runs of a finding."""
SLOW_SECONDS = 0.15


def _deadline(stored: Stored, settings: TriageSettings, pool: Pool) -> Callable[[], bool]:
    """Return a function that tells whether the time for the reduction is over; a slow compiler gets more time."""
    seconds = settings.seconds
    if seconds is None:
        held, case = stored_property(stored, settings.context), stored.finding.case
        begin = time.monotonic()
        pool.run(held.plan(case, stream(settings.seed, "patience")))
        slow = time.monotonic() - begin > SLOW_SECONDS
        seconds = SLOW_REDUCTION_SECONDS if slow else REDUCTION_SECONDS
    until = time.monotonic() + seconds
    return lambda: time.monotonic() > until


def serve(
    settings: TriageSettings, pool: Pool, forks: ScriptForks, identifier: str, on_phase: PhaseListener = silent
) -> dict[str, Any]:
    """Examine one finding and write its new state; return the answer with the CPU time that this took."""

    def spent() -> float:
        return (
            sum(os.times()[:4]) + pool.compiler_cpu_seconds + forks.cpu_seconds
        )  # a script's fresh process is a child

    begin = spent()
    answer = _examined(settings, pool, forks, identifier, on_phase)
    return {**answer, "cpu_us": round(1e6 * (spent() - begin))}


def _examined(
    settings: TriageSettings, pool: Pool, forks: ScriptForks, identifier: str, on_phase: PhaseListener
) -> dict[str, Any]:
    try:
        stored = folder.load(settings.out, identifier)
        budget = Budget(expired=_deadline(stored, settings, pool))
        done: Concluded = triage(stored, settings, pool, budget, TriagedFindings(settings.out), forks, on_phase)
        slippages = [one for one in done.slippages if not folder.place(settings.out, one.finding.identifier).exists()]
        for one in (*slippages, done.stored):
            folder.save(settings.out, one)
    except MiscompileError as error:
        return {"problem": f"triage of {identifier}: {error}"}
    except Exception as error:  # noqa: BLE001 - an error in one finding must not stop the triage of others
        traceback.print_exc()  # into OUT/triage.log
        return {"problem": f"triage of {identifier} failed: {type(error).__name__}: {error}"}
    return {"slippages": [one.finding.identifier for one in slippages], "duplicate": done.stored.status == "pending"}


def main() -> int:
    """Serve the parent until it closes the standard input."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # other output must not mix with the answers
    settings = settings_from(sys.stdin.readline())

    def say(message: Mapping[str, Any]) -> None:
        out.write(json.dumps(message) + "\n")
        out.flush()

    def on_phase(phase: str, nodes: int, nodes_before: int) -> None:
        say({"phase": phase, "nodes": nodes, "nodes_before": nodes_before})

    with settings.pool() as pool, ScriptForks() as forks:
        for line in sys.stdin:
            identifier, *words = line.split()
            with careful() if CAREFUL in words else nullcontext():
                say(serve(settings, pool, forks, identifier, on_phase))
    return 0


if __name__ == "__main__":
    sys.exit(main())
