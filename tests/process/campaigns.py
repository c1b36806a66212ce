"""Campaigns in processes of their own, as a user starts them, and what is left of them afterwards."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from miscompile.findings.store import Store

COMMAND = (sys.executable, "-c", "from miscompile.cli.main import main; main()")
COMMON = ("--opset", "21", "--limit-memory", "400M")
"""One opset, so that asking the target takes a second; memory that the fatal bugs reach soon."""


@dataclass
class Campaign:
    """A running `miscompile fuzz`, in a process group of its own; `out` is its OUT."""

    out: Path
    process: "subprocess.Popen[str]"

    @property
    def family(self) -> list[psutil.Process]:
        """The coordinator's process and all its descendants that are alive."""
        coordinator = psutil.Process(self.process.pid)
        return [coordinator, *coordinator.children(recursive=True)]

    @property
    def lanes(self) -> list[psutil.Process]:
        """The lanes' processes that are alive."""
        return [one for one in self.family[1:] if "miscompile.engine.lane" in _words(one)]

    @property
    def workers(self) -> list[psutil.Process]:
        """The lanes' workers: the processes below a lane that have no children."""
        below = [child for lane in self.lanes for child in _children(lane)]
        return [one for one in below if not _children(one)]

    def end(self, seconds: float = 90) -> tuple[int, str, str]:
        """Wait for the end; return exit code, stdout, stderr."""
        stdout, stderr = self.process.communicate(timeout=seconds)
        return self.process.returncode, stdout, stderr

    def until(self, condition: Callable[[], bool], seconds: float = 60) -> None:
        """Wait for something while the campaign runs. Raises AssertionError when it takes too long, or it ends."""
        end = time.monotonic() + seconds
        while not condition():
            ended = self.process.poll() is not None
            assert not ended, f"exit code {self.process.returncode}: {self.end()[2]}"
            assert time.monotonic() < end, "it did not happen"
            time.sleep(0.02)

    def tests(self) -> int:
        """Tests that the store knows of; 0 before there is one."""
        return counters(self.out).get("tests", 0)


def _words(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return list(process.children(recursive=True))
    except psutil.Error:
        return []


Start = Callable[..., Campaign]
"""Starts a campaign; takes what `fuzz` takes, but for the cache. The fixture `start` is one."""


def fuzz(
    out: Path,
    cache: Path,
    *words: str,
    limit: float = 5.0,
    before: Callable[[], None] | None = None,
    terminal: int = subprocess.PIPE,
) -> Campaign:
    """Start `miscompile fuzz WORDS --out OUT`; `cache` holds support tables, `limit` is that of one run in seconds.

    `before` runs in the child. `terminal` is a descriptor for its output, instead of pipes.
    """
    process = subprocess.Popen(
        [*COMMAND, "fuzz", *COMMON, *words, "--limit-seconds", str(limit), "--out", str(out)],
        stdout=terminal,
        stderr=terminal,
        text=True,
        start_new_session=True,
        preexec_fn=before,
        env={**os.environ, "XDG_CACHE_HOME": str(cache)},
    )
    return Campaign(out, process)


def counters(out: Path) -> dict[str, int]:
    """The counters in OUT so far."""
    if not (out / "miscompile.db").exists():
        return {}
    with Store.open(out, create=False) as store:
        return store.counters()


def all_gone(processes: Sequence[psutil.Process], seconds: float = 20) -> None:
    """Wait until none of `processes` lives. Raises AssertionError when one stays."""
    _, alive = psutil.wait_procs([one for one in processes if not _ended(one)], timeout=seconds)
    left = [one for one in alive if not _ended(one)]
    for one in left:
        one.send_signal(signal.SIGKILL)
    assert not left, f"left behind: {left}"


def _ended(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True
