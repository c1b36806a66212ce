"""A lane: one producer process with its worker, pipelined. Run as `python -m miscompile.engine.lane`.

The coordinator writes one JSON line (the orders) to a lane's standard input and closes it to stop the lane. The lane
writes JSON lines to its standard output: counters, findings (their folders are on disk by then), quarantined passes.
A lane is deterministic in its orders: the number of submitted cases that are not judged is fixed, and every violation
is attributed before the next case is drawn.
"""

import gc
import json
import os
import select
import signal
import sys
import time
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, TextIO

from miscompile.base.errors import MiscompileError, ModelError, RejectedDraft, UsageError
from miscompile.base.rng import stream
from miscompile.core.activity import PassActivity
from miscompile.core.case import Case
from miscompile.core.examination import conclude
from miscompile.core.outcome import Outcome
from miscompile.core.pool import Pool
from miscompile.core.run import Run
from miscompile.core.verdict import Holds, Inconclusive, Needs, Verdict, Violated
from miscompile.engine.plan import Plan, plan_from
from miscompile.engine.wiring import make_oracle, make_pool, make_producer, oracle_context
from miscompile.environments.resolve import versions_of
from miscompile.findings import folder
from miscompile.findings.store import record_of
from miscompile.ops.support import TABLES, Support, support_from
from miscompile.oracles.disruptive import is_invalid
from miscompile.targets.registry import frames_of, names_of, parse_target
from miscompile.triage.attribution import ATTRIBUTED, ConfirmedViolation, Confirmer, to_quarantine, to_stored

AHEAD = 3
"""Cases that are submitted and not judged yet: enough to keep the worker busy, and constant for determinism."""

CORPUS = "corpus"
"""The subfolder of a campaign with seeds for later sessions and for restarted lanes."""

RARELY = (20_000, 20, 50)
"""Thresholds of the garbage collector: rare, because reference counts free nearly all values of a lane."""

_REPORT_EVERY = 0.25
_ASK_EVERY = 0.02
_COUNTED = {"unsupported": "unsupported", "rejected": "invalid"}


@dataclass(frozen=True, slots=True)
class Orders:
    """The orders of a lane: the plan, the support tables of its targets, its number, and its range of cases.

    `disabled` are the passes that are off from the start, by target; `quota` is the index after the last case (None: no
    limit), `first` the index of the first one.
    """

    plan: Plan
    supports: tuple[Support, ...]
    lane: int
    session: int
    first: int
    quota: int | None
    disabled: Mapping[str, tuple[str, ...]]

    def as_json(self) -> str:
        """Print the orders in one line."""
        tables = [
            {**{name: sorted(getattr(support, name)) for name in TABLES}, "open": support.open}
            for support in self.supports
        ]
        rest = {name: getattr(self, name) for name in ("lane", "session", "first", "quota", "disabled")}
        return json.dumps({"plan": self.plan.as_json(), "supports": tables, **rest})


def orders_from(text: str) -> Orders:
    """Read back what `Orders.as_json` printed."""
    data: dict[str, Any] = json.loads(text)
    supports = tuple(replace(support_from(table), open=table["open"]) for table in data["supports"])
    disabled = {target: tuple(names) for target, names in data["disabled"].items()}
    return Orders(
        plan_from(data["plan"]), supports, data["lane"], data["session"], data["first"], data["quota"], disabled
    )


@dataclass(slots=True)
class _Ahead:
    """A case that was submitted to the worker."""

    index: int
    case: Case
    runs: tuple[Run, ...]
    ticket: int


class Lane:
    """The main loop of a lane. `out` gets the messages."""

    def __init__(self, orders: Orders, pool: Pool, confirmer: Confirmer, out: TextIO) -> None:
        self.orders, self.pool, self.confirmer, self.out = orders, pool, confirmer, out
        self.plan = orders.plan
        self.versions = {target: versions_of(target) for target in self.plan.targets}
        self.producer = make_producer(
            self.plan, *orders.supports, corpus=self.plan.out / CORPUS, name=f"lane-{orders.lane}"
        )
        self.disabled = {target: frozenset(names) for target, names in orders.disabled.items()}
        self.oracle = make_oracle(self.plan, self.disabled)
        self.counters: Counter[str] = Counter()
        self.firings = PassActivity(frames_of(self.plan.targets), names_of(self.plan.targets))
        self._next = orders.first
        self._done: dict[int, list[Outcome]] = {}
        self._ahead: deque[_Ahead] = deque()
        self._reported = time.monotonic()
        self._asked = 0.0
        self._deaths = (0, 0)
        self._compiler_cpu = 0.0

    def run(self) -> None:
        """Test cases until the quota is reached or the coordinator closes the standard input."""
        quota = self.orders.quota
        while not self._stopped() and (quota is None or self._next < quota or self._ahead):
            while len(self._ahead) < AHEAD and (quota is None or self._next < quota):
                self._submit()
            self._settle_next()
            if time.monotonic() - self._reported > _REPORT_EVERY:
                self._report()
        while self._ahead:
            self._settle_next()
        self._report()

    def _stopped(self) -> bool:
        """Tell whether the coordinator has stopped the lane; checked at intervals, because it takes a system call."""
        now = time.monotonic()
        if now - self._asked < _ASK_EVERY:
            return False
        self._asked = now
        return _told_to_stop()

    def _settle_next(self) -> None:
        """Judge the oldest submitted case. A case on which the tool itself fails is counted and skipped."""
        if not self._ahead:
            return
        ahead = self._ahead.popleft()
        try:
            self._settle(ahead)
        except (ModelError, RejectedDraft) as error:
            self.counters["failed cases"] += 1
            print(f"case {ahead.index} cannot be handled: {error}", file=sys.stderr)

    def _submit(self) -> None:
        orders, index = self.orders, self._next
        start = time.thread_time_ns()
        rng = stream(self.plan.seed, "lane", orders.lane, orders.session, index)
        case = self.producer.propose(rng)
        recipe = {"seed": self.plan.seed, "lane": orders.lane, "session": orders.session, "index": index, **case.recipe}
        case = replace(case, recipe=recipe)
        runs = self.oracle.plan(case, rng)
        generated = time.thread_time_ns()
        self.counters["generate_us"] += (generated - start) // 1000
        self._ahead.append(_Ahead(index, case, runs, self.pool.submit(runs)))
        self.counters["transfer_us"] += (time.thread_time_ns() - generated) // 1000
        self._next += 1

    def _settle(self, ahead: _Ahead) -> None:
        begin = time.thread_time_ns()
        while ahead.ticket not in self._done:
            self._done.update(self.pool.poll(self.plan.limit_seconds))
        outcomes = self._done.pop(ahead.ticket)
        start = time.thread_time_ns()
        self.counters["transfer_us"] += (start - begin) // 1000
        seen = conclude(ahead.runs, outcomes, self.oracle, self.confirmer.pool)
        self.counters["judge_us"] += (time.thread_time_ns() - start) // 1000
        self.counters["second_rounds"] += seen.rounds
        self.counters["tests"] += 1
        for outcome in outcomes:
            spent = outcome.observations
            self.counters["compiler_us"] += int(1e6 * (spent.compile_seconds + spent.run_seconds))
        if ahead.case.recipe.get("observe"):
            for run, outcome in zip(ahead.runs, outcomes, strict=True):
                self.firings.note(ahead.case.recipe, run, outcome)
        self.producer.learn(ahead.case, outcomes, seen.verdict)
        self._take(ahead, seen.verdict)

    def _take(self, ahead: _Ahead, verdict: Verdict) -> None:
        match verdict:
            case Holds(note):
                if note:
                    self.counters["mismatches_judged_benign"] += 1
            case Inconclusive(reason):
                self.counters[_COUNTED.get(reason, f"undecided: {reason}")] += 1
            case Violated():
                self._pursue(ahead, verdict)
            case Needs():
                raise AssertionError("an examination never ends with Needs")

    def _pursue(self, ahead: _Ahead, violated: Violated) -> None:
        self.counters["violations"] += 1
        confirmed = self.confirmer.investigate(ahead.case, violated.evidence)
        if confirmed is None:
            self.counters["unstable"] += 1
            return
        if not self.confirmer.is_new(confirmed.signature):
            self.counters["duplicates"] += 1
            self._send({"duplicate": asdict(confirmed.signature)})
            return
        stored = to_stored(
            confirmed.evidence,
            confirmed.signature,
            ahead.case,
            self._versions(confirmed),
            self.confirmer.context,
            test=ahead.index,
            **{ATTRIBUTED: True},
        )
        if not folder.place(self.plan.out, stored.finding.identifier).exists():  # a triaged finding is not overwritten
            folder.save(self.plan.out, stored)
        self._send({"finding": asdict(record_of(stored)), "signature": asdict(confirmed.signature)})
        if self.plan.quarantine and not is_invalid(ahead.case):  # invalid programs must be refused before any pass
            target = confirmed.evidence.faulty.target
            self._quarantine(target, to_quarantine(confirmed.signature, parse_target(target).about))

    def _versions(self, confirmed: ConfirmedViolation) -> dict[str, str]:
        """Return the versions of the compilers in a violation, those of the faulty one first."""
        reference, faulty = confirmed.evidence.reference, confirmed.evidence.faulty.target
        own = self.versions[faulty]
        other = {} if reference is None else self.versions.get(reference.target, {})
        return {**own, **{name: version for name, version in other.items() if name not in own}}

    def _quarantine(self, target: str, passes: frozenset[str]) -> None:
        known = self.disabled.get(target, frozenset())
        fresh = passes - known
        if fresh:
            self.disabled[target] = known | fresh
            self.oracle = make_oracle(self.plan, self.disabled)
            self._send({"quarantine": sorted(fresh), "target": target})

    def _report(self) -> None:
        deaths, timeouts = self.pool.counters.deaths, self.pool.counters.timeouts
        self.counters["deaths"] += deaths - self._deaths[0]
        self.counters["timeouts"] += timeouts - self._deaths[1]
        self._deaths = (deaths, timeouts)
        cpu = self.pool.compiler_cpu_seconds + self.confirmer.pool.compiler_cpu_seconds
        self.counters["compiler_cpu_us"] += round(1e6 * (cpu - self._compiler_cpu))
        self._compiler_cpu = cpu
        settled = self._next - len(self._ahead)
        self._send({"counters": dict(self.counters), "next": settled})
        self.counters.clear()
        if self.firings.counts:
            self._send({"firings": self.firings.take()})
        self._reported = time.monotonic()

    def _send(self, message: dict[str, Any]) -> None:
        self.out.write(json.dumps(message) + "\n")
        self.out.flush()


def _told_to_stop() -> bool:
    """Tell whether the coordinator has closed the standard input, or has died."""
    readable, _, _ = select.select([sys.stdin], [], [], 0)
    return bool(readable)


def main() -> int:
    """Run the lane under the orders on standard input; return the exit status."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # other output must not mix with the messages
    try:
        orders = orders_from(sys.stdin.readline())
        with make_pool(orders.plan, AHEAD) as pool, make_pool(orders.plan) as second:
            confirmer = Confirmer(second, oracle_context(orders.plan), orders.plan.seed)
            lane = Lane(orders, pool, confirmer, out)
            gc.freeze()  # modules and tables live as long as the lane, so that no collection need visit them
            gc.set_threshold(*RARELY)
            lane.run()
    except UsageError as error:
        out.write(json.dumps({"usage": str(error)}) + "\n")
        out.flush()
        return 2
    except MiscompileError as error:
        out.write(json.dumps({"failure": str(error)}) + "\n")
        out.flush()
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
