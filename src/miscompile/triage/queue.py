"""The triage queue: workers reduce, attribute and confirm the pending findings that are submitted to it.

A worker is a process of its own (`miscompile.triage.worker`), because reduction puts thousands of odd programs through
onnx's checker and inference, which are C++ and may abort. One thread waits for each worker. The queue touches neither
the index nor the display: only identifiers and answers pass through it, and a finding's folder is read and written by
its worker alone.
"""

import json
import queue
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from miscompile.base.child import FROM_OUTSIDE, Conversation
from miscompile.base.wording import counted
from miscompile.triage.settings import CAREFUL, TriageSettings

LIFETIME = 50
"""Findings after which a worker is replaced, because checkers and compilers leak memory."""

MOST_TRIES = 3
"""Workers that one finding may cost in a session; it is retried, because another process may have killed them, and
because a worker that is told so tries each of onnx's calls in a fork first."""

_LATER = {"hang-": 1, "accepted-": 2}
"""Beginnings of the identifiers of findings that wait until none of a lower rank does. The triage of a hang takes as
long as that of a dozen others. Few maintainers want to know that an invalid program runs to values."""

PATIENCE = 1200.0
"""Seconds for one finding, far more than its reduction and scripts take, after which its worker is stuck."""


@dataclass(frozen=True, slots=True)
class TriageAnswer:
    """The result of one triage: the finding's folder holds the new state, or `problem` is a line on the failure.

    `slippages` are the identifiers of other violations that the reduction met; their folders lie beside it. `died` is
    the exit status of the worker, if the finding killed it time and again: not when the system or a person killed it,
    which says nothing about the finding. A `duplicate` of a triaged finding stays pending, reduced and without a
    script, until the store merges both. `cpu_us` is the CPU time of the worker, the compilers and the scripts, in
    microseconds.
    """

    identifier: str
    slippages: tuple[str, ...] = ()
    problem: str = ""
    died: int | None = None
    duplicate: bool = False
    cpu_us: int = 0


@dataclass(frozen=True, slots=True)
class TriageStep:
    """The phase in which the triage of a finding is, and how many nodes its program has and had; 0: not known."""

    identifier: str
    phase: str
    nodes: int = 0
    nodes_before: int = 0

    def __str__(self) -> str:
        """Print it for people."""
        before = f"{self.nodes_before} -> " if self.nodes != self.nodes_before else ""
        size = f", {before}{counted(self.nodes, 'node')}" if self.nodes and self.nodes_before else ""
        return f"{self.identifier}: {self.phase}{size}"


class TriageQueue:
    """`submit` identifiers of pending findings, `collect` answers, `close` at the end.

    Findings that are not done when it is closed stay pending.
    """

    def __init__(self, settings: TriageSettings, workers: int = 1) -> None:
        self._todo: queue.PriorityQueue[tuple[int, int, str]] = queue.PriorityQueue()
        self._submitted = 0
        self._answers: queue.SimpleQueue[TriageAnswer] = queue.SimpleQueue()
        self._steps: queue.SimpleQueue[TriageStep] = queue.SimpleQueue()
        self._open = 0
        self._closing = threading.Event()
        self._doing: dict[str, TriageStep] = {}
        self._workers = [_Worker(settings, self._stepped) for _ in range(workers)]
        self._threads = [
            threading.Thread(target=self._serve, args=(worker,), name="triage", daemon=True) for worker in self._workers
        ]
        for thread in self._threads:
            thread.start()

    @property
    def open(self) -> int:
        """Number of findings that were submitted and not collected."""
        return self._open

    @property
    def doing(self) -> str:
        """What the workers do now, such as `wrong-0a: 12 -> 5 nodes`; an empty text when nobody knows."""
        return ", ".join(str(step) for step in list(self._doing.values()))

    def steps(self) -> list["TriageStep"]:
        """Return the phases that began since the last call; does not wait."""
        found = []
        while True:
            try:
                found.append(self._steps.get_nowait())
            except queue.Empty:
                return found

    @property
    def alive(self) -> bool:
        """Tell whether any thread is running."""
        return any(thread.is_alive() for thread in self._threads)

    def submit(self, identifier: str) -> None:
        """Queue a finding whose folder is on disk, behind those of its rank (`_LATER`)."""
        self._open += 1
        self._submitted += 1
        rank = next((rank for beginning, rank in _LATER.items() if identifier.startswith(beginning)), 0)
        self._todo.put((rank, self._submitted, identifier))

    def collect(self) -> list[TriageAnswer]:
        """Return the answers so far; does not wait."""
        found = []
        while True:
            try:
                found.append(self._answers.get_nowait())
            except queue.Empty:
                self._open -= len(found)
                return found

    def close(self) -> None:
        """End workers and threads; findings that are not done stay pending."""
        self._closing.set()
        for worker in self._workers:
            worker.kill()
        for _ in self._threads:
            self._todo.put((-1, 0, ""))
        for thread in self._threads:
            thread.join(timeout=10)

    def _stepped(self, step: "TriageStep") -> None:
        before = self._doing.get(step.identifier)
        self._doing[step.identifier] = step
        if before is None or before.phase != step.phase:
            self._steps.put(step)

    def _serve(self, worker: "_Worker") -> None:
        try:
            while (identifier := self._todo.get()[-1]) and not self._closing.is_set():
                answer = self._examine(worker, identifier)
                self._doing.pop(identifier, None)
                if not self._closing.is_set():
                    self._answers.put(answer)
        finally:
            worker.dismiss()

    def _examine(self, worker: "_Worker", identifier: str) -> TriageAnswer:
        tries = 1
        try:
            said = worker.ask(identifier)
            while "died" in said and tries < MOST_TRIES and not self._closing.is_set():
                tries += 1
                said = worker.ask(identifier, careful=True)
        except Exception as error:  # noqa: BLE001 - a thread that ends would leave every later finding unexamined
            said = {"problem": f"triage of {identifier} failed: {type(error).__name__}: {error}"}
        if "died" in said:
            status = said["died"]
            if status in FROM_OUTSIDE:
                problem = f"triage of {identifier} was killed {tries} times; it stays pending for --resume"
                return TriageAnswer(identifier, problem=problem)
            problem = f"triage of {identifier} died {tries} times (status {status}); it is kept as it was found"
            return TriageAnswer(identifier, problem=problem, died=status)
        return TriageAnswer(
            identifier,
            tuple(said.get("slippages", ())),
            said.get("problem", ""),
            duplicate=said.get("duplicate", False),
            cpu_us=said.get("cpu_us", 0),
        )


class _Worker:
    """A worker process; started at its first finding, and again after it has died."""

    def __init__(self, settings: TriageSettings, on_step: Callable[[TriageStep], None]) -> None:
        self._settings, self._on_step = settings, on_step
        self._child: Conversation | None = None
        self._served = 0

    def ask(self, identifier: str, *, careful: bool = False) -> dict[str, Any]:
        """Send a finding to the worker; return its answer, or `died` with the exit status.

        A `careful` worker survives a model of which onnx's checker or inference dies.
        """
        child = self._child or self._start()
        child.write(f"{identifier} {CAREFUL}\n".encode() if careful else f"{identifier}\n".encode())
        until = time.monotonic() + PATIENCE
        said: dict[str, Any] = {"phase": ""}
        while "phase" in said:
            line = child.read_line(max(0.0, until - time.monotonic()))
            if line is None:
                child.kill()
                return {"died": self.dismiss()}
            said = json.loads(line)
            if "phase" in said:
                self._on_step(TriageStep(identifier, **said))
        self._served += 1
        if self._served >= LIFETIME:
            self.dismiss()
        return said

    def kill(self) -> None:
        """End the process now."""
        if self._child is not None:
            self._child.kill()

    def dismiss(self) -> int:
        """Close the process's input, wait for its end, and return its exit status; 0 when none was started."""
        child, self._child = self._child, None
        return 0 if child is None else child.end(5.0)

    def _start(self) -> Conversation:
        with (self._settings.out / "triage.log").open("ab") as log:
            child = Conversation([sys.executable, "-m", "miscompile.triage.worker"], errors=log)
        child.write(self._settings.as_json().encode() + b"\n")
        self._child, self._served = child, 0
        return child
