"""Campaigns whose folders are kept, so that a table that is made again runs only those that are missing."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from miscompile.base.errors import UsageError

SUMMARY = "summary.json"
"""The file that `miscompile fuzz` writes when a campaign ends."""


def run_campaign(target: str, out: Path, seconds: float, seed: int, workers: int, words: Sequence[str] = ()) -> None:
    """Run `miscompile fuzz` on `target` into `out`, unless a campaign has ended there; one that was cut off goes on.

    `words` are further options. Raises UsageError when the campaign does not start.
    """
    if (out / SUMMARY).exists():
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    given = [*words, "--time", f"{seconds:.0f}", "--seed", str(seed), "--workers", str(workers), "--out", str(out)]
    command = [sys.executable, "-m", "miscompile", "fuzz", target, *given, *(["--resume"] if out.exists() else [])]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    if not (out / SUMMARY).exists():
        raise UsageError(f"the campaign {out.name} on {target} did not start: {ended.stderr.strip()[-500:]}")
