"""Runs a target's tracer, which finds the phase of the compilation that introduces a fault.

The tracer is a module of the target that runs as a child process (`About.trace`). It reads one JSON object: `model` and
`feed` (paths of an ONNX file and of an .npz with the inputs by name), `level` and `disabled` (of the faulty build),
`outputs` (how many), `wrong` (index of the wrong output, null when the build fails); and writes one: `phase`, `fails`,
`detail`, or nothing in it.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from miscompile.base.child import collect
from miscompile.core.case import Case
from miscompile.core.verdict import Evidence

SECONDS = 180.0


def phase_of(module: str, case: Case, evidence: Evidence, seconds: float = SECONDS) -> Mapping[str, Any]:
    """Return `phase`, `fails` and `detail`; an empty mapping when no phase alone is to blame or the tracer fails."""
    wrong = (
        evidence.details.get("output") if evidence.kind in ("wrong", "missing", "shape", "dtype", "special") else None
    )
    with TemporaryDirectory(prefix="miscompile-") as place:
        model, feed = Path(place) / "model.onnx", Path(place) / "feed.npz"
        model.write_bytes(case.program.payload)
        number = int(evidence.details.get("feed", 0))
        names = [port.name for port in case.program.inputs]
        np.savez(feed, **{n: value.array for n, value in zip(names, case.feeds[number], strict=True)})  # type: ignore[arg-type]
        order = {
            "model": str(model),
            "feed": str(feed),
            "level": evidence.faulty.build.level,
            "disabled": sorted(evidence.faulty.build.disabled),
            "outputs": len(case.program.outputs),
            "wrong": wrong,
        }
        done = collect([sys.executable, "-m", module], given=json.dumps(order).encode(), seconds=seconds)
    try:
        answer: Mapping[str, Any] = json.loads(done.stdout) if done.status is not None else {}
    except ValueError:
        return {}
    return answer
