"""The triage desk: a thread of the lead that has a clerk examine pending findings, one at a time.

The clerk is a process of its own (`miscompile.triage.worker`), because what it does may abort; the thread only waits
for it. The desk touches neither the store nor the display: findings go in and come out through queues, so that
everything that is written is written by one thread.
"""

import json
import os
import queue
import shutil
import subprocess
import sys
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from miscompile.engine.plan import Plan
from miscompile.findings import folder
from miscompile.findings.folder import Stored


def desk_folder(out: Path) -> Path:
    """Return the folder where findings lie while they are examined."""
    return out / "desk"


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a finding at the desk.

    `slips` are other violations met while it was reduced, findings of their own; `problem` says what went wrong.
    """

    stored: Stored
    slippages: tuple[Stored, ...] = ()
    problem: str = ""


class Desk:
    """The thread. `submit` findings, `collect` answers, `close` at the end; findings not done stay pending."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._todo: queue.SimpleQueue[Stored | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
        self._open = 0
        self._closing = threading.Event()
        self._clerk: subprocess.Popen[str] | None = None
        self._thread = threading.Thread(target=self._serve, name="triage", daemon=True)
        self._thread.start()

    @property
    def open(self) -> int:
        """Number of findings that were submitted and not collected."""
        return self._open

    @property
    def alive(self) -> bool:
        """Tell whether the thread is at work."""
        return self._thread.is_alive()

    def submit(self, stored: Stored) -> None:
        """Queue a finding."""
        self._open += 1
        self._todo.put(stored)

    def collect(self) -> list[Answer]:
        """Return the answers that have come in; does not wait."""
        found = []
        while True:
            try:
                found.append(self._answers.get_nowait())
            except queue.Empty:
                self._open -= len(found)
                return found

    def close(self) -> None:
        """End the clerk and the thread; the finding in hand stays pending, like those behind it."""
        self._closing.set()
        if self._clerk is not None:
            self._clerk.kill()
        self._todo.put(None)
        self._thread.join(timeout=10)
        shutil.rmtree(desk_folder(self._plan.out), ignore_errors=True)

    def _serve(self) -> None:
        try:
            while (stored := self._todo.get()) is not None and not self._closing.is_set():
                self._answers.put(self._examine(stored))
        finally:
            if self._clerk is not None:
                self._dismiss(self._clerk)

    def _examine(self, stored: Stored) -> Answer:
        place, identifier = desk_folder(self._plan.out), stored.finding.identifier
        try:
            folder.save(place, stored)
            said = self._ask(identifier)
            if self._closing.is_set() or "problem" in said:
                return Answer(stored, problem=said.get("problem", ""))  # pending, for `reduce` or a resumed campaign
            if "died" in said:
                problem = f"triage of {identifier} died (status {said['died']}); it is kept as it was found"
                return Answer(replace(stored, status="unconfirmed"), problem=problem)
            slippages = tuple(folder.load(place, name) for name in said["slips"])
            return Answer(folder.load(place, identifier), slippages)
        except Exception as error:  # noqa: BLE001 - a thread that ends would leave every later finding unexamined
            return Answer(stored, problem=f"triage of {identifier} failed: {type(error).__name__}: {error}")

    def _ask(self, identifier: str) -> dict[str, Any]:
        """Have the clerk examine a finding; return its answer, or `died` with its exit status."""
        clerk = self._clerk or self._hire()
        assert clerk.stdin is not None
        assert clerk.stdout is not None
        line = ""
        try:
            clerk.stdin.write(identifier + "\n")
            clerk.stdin.flush()
            line = clerk.stdout.readline()
        except BrokenPipeError:
            pass  # it has ended, as the empty line says
        if line:
            said: dict[str, Any] = json.loads(line)
            return said
        self._clerk = None
        return {"died": self._dismiss(clerk)}

    def _hire(self) -> "subprocess.Popen[str]":
        desk_folder(self._plan.out).mkdir(parents=True, exist_ok=True)
        with (self._plan.out / "desk.log").open("ab") as log:
            clerk = subprocess.Popen(
                [sys.executable, "-m", "miscompile.triage.worker", str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=dict(os.environ),
                start_new_session=True,  # a terminal's Ctrl-C is the lead's to hear, even while this one starts
            )
        assert clerk.stdin is not None
        clerk.stdin.write(self._plan.as_json() + "\n")
        clerk.stdin.flush()
        self._clerk = clerk
        return clerk

    def _dismiss(self, clerk: "subprocess.Popen[str]") -> int:
        for pipe in (clerk.stdin, clerk.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    continue  # it ended before it read everything
        try:
            return clerk.wait(timeout=5)
        except subprocess.TimeoutExpired:
            clerk.kill()
            return clerk.wait()
