"""The triage desk: a thread of the lead that turns pending findings into reduced, attributed, confirmed ones.

It has a worker of its own and touches neither the store nor the display: findings go in and come out through queues,
so that everything that is written is written by one thread.
"""

import queue
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from miscompile.base.rng import stream
from miscompile.campaign.plan import Plan
from miscompile.campaign.suspicion import model_of, node_count, stored_pair, to_stored
from miscompile.campaign.wiring import make_pool, reprogram
from miscompile.core.case import Case
from miscompile.core.finding import Finding, Property
from miscompile.core.run import Build
from miscompile.core.verdict import Evidence, Violated
from miscompile.execution.pool import LocalPool
from miscompile.findings.encode import evidence_facts
from miscompile.findings.folder import Status, Stored
from miscompile.graph.read import read
from miscompile.oracles.pair import BuildPair
from miscompile.targets.about import About
from miscompile.targets.known import known
from miscompile.targets.registry import parse_target
from miscompile.triage.bisect import culprits, expand, only
from miscompile.triage.confirm import confirm, confirmed
from miscompile.triage.examine import examine_fully
from miscompile.triage.reduce.engine import Budget, Reduced, Slip, reduce_case
from miscompile.triage.referee import accepts
from miscompile.triage.script import write_script
from miscompile.triage.signature import signature_of

REDUCTION_SECONDS = 20.0
"""What the reduction of one finding may take, unless the user asks for more."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a finding at the desk.

    `slips` are other violations met while it was reduced, findings of their own; `problem` says what went wrong.
    """

    stored: Stored
    slips: tuple[Stored, ...] = ()
    problem: str = ""


class Desk:
    """The thread. `submit` findings, `collect` answers, `close` at the end; findings not done stay pending."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._todo: queue.SimpleQueue[Stored | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
        self._open = 0
        self._closing = threading.Event()
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
        """Let the finding in hand be finished soon, leave the others, and end the thread."""
        self._closing.set()
        self._todo.put(None)
        self._thread.join(timeout=10)

    def _serve(self) -> None:
        with make_pool(self._plan) as pool:
            while (stored := self._todo.get()) is not None and not self._closing.is_set():
                self._answers.put(self._examine(stored, pool))

    def _examine(self, stored: Stored, pool: LocalPool) -> Answer:
        try:
            deadline = time.monotonic() + REDUCTION_SECONDS
            expired = lambda: self._closing.is_set() or time.monotonic() > deadline  # noqa: E731
            answer = triage(stored, self._plan, pool, Budget(expired=expired))
            if self._closing.is_set() and answer.stored.status == "unconfirmed":
                return Answer(stored)  # it was cut short, so it stays pending
            return answer
        except Exception as error:  # noqa: BLE001 - one finding that defeats triage must not end the others
            problem = f"triage of {stored.finding.identifier} failed: {type(error).__name__}: {error}"
            return Answer(stored, problem=problem)  # it stays pending, for `reduce` or a resumed campaign


def triage(stored: Stored, plan: Plan, pool: LocalPool, budget: Budget) -> Answer:
    """Reduce, attribute and confirm a finding; its new status says whether a fresh process showed it again."""
    work = _Triage(stored, plan, pool)
    return Answer(work.conclude(budget), work.slips)


def _asks_referee(evidence: Evidence) -> bool:
    """An error or a type that no build of the target is better at may be the fault of the model."""
    return evidence.reference is None and evidence.kind in ("exception", "shape", "dtype")


class _Triage:
    """One finding on the desk."""

    def __init__(self, stored: Stored, plan: Plan, pool: LocalPool) -> None:
        self.stored, self.plan, self.pool = stored, plan, pool
        self.about: About = parse_target(plan.target).about
        self.seed = plan.seed
        self.slips: tuple[Stored, ...] = ()

    def conclude(self, budget: Budget) -> Stored:
        case = self.stored.original or self.stored.finding.case
        found = stored_pair(self.stored, self.plan.compare)
        guilty = self._culprits(case, found)
        for pair in self._pairs(found, guilty):
            reduced = reduce_case(
                case, pair, self.pool, stream(self.seed, "reduce"), reprogram=reprogram, budget=budget
            )
            if reduced is not None:
                self.slips = self._findings_of(reduced.slips)
                return self._report(case, replace(pair, healed=None), reduced)
        return replace(self.stored, status="unconfirmed")

    def _pairs(self, found: BuildPair, guilty: Sequence[str]) -> list[BuildPair]:
        """The plainest pair of builds first: as shipped, as found, with nothing on but the culprits."""
        plain = replace(found, reference=Build("off"), faulty=Build("full"))
        if not guilty:
            return [plain, found]
        off = expand(guilty, self.about.twins)
        pairs = [pair.healed_without(off) for pair in (plain, found)]
        return [*pairs, only(found, guilty, self.about.passes, self.about.twins)]

    def _report(self, original: Case, pair: BuildPair, reduced: Reduced) -> Stored:
        guilty = self._culprits(reduced.case, pair)
        self.pool.fresh()
        final = examine_fully(reduced.case, pair, self.pool, stream(self.seed, "final"))
        if not isinstance(final.verdict, Violated):
            return replace(self.stored, status="unconfirmed")
        evidence = final.verdict.evidence
        signature = signature_of(evidence, final.faulty, guilty, read(reduced.case.program.payload))
        script = write_script(
            reduced.case, evidence, final.faulty, culprits=guilty, versions=dict(self.stored.versions)
        )
        shows = self._script_shows(script)
        nodes, before = node_count(reduced.case), node_count(original)
        facts = {
            **{key: value for key, value in self.stored.finding.facts.items() if key in ("test", "slip_of")},
            **evidence_facts(evidence),
            "nodes": nodes,
            "original_nodes": before,
            "reproduced": shows,
            "reduction": {"tries": reduced.tries, "complete": reduced.complete, "steps": list(reduced.steps)},
        }
        vote = accepts(reduced.case) if _asks_referee(evidence) else None
        if vote is not None:
            facts["referee"] = {"vote": vote.vote, "message": vote.message}
        bug = known(self.about.name).bug(str(signature))
        if bug is not None:
            facts["known"] = {"link": bug.link, "note": bug.note}
        sound = shows and reduced.defined and (vote is None or vote.vote == "accepted")
        status: Status = "unconfirmed" if not sound else "known" if bug else "confirmed"
        finding = Finding(
            self.stored.finding.identifier,
            Property("optimisation", self.plan.target, signature),
            reduced.case,
            evidence.message,
            facts,
        )
        return Stored(finding, status, original, self.stored.versions, script)

    def _findings_of(self, slips: Sequence[Slip]) -> tuple[Stored, ...]:
        """Make findings of the slips; a slip's own slips are let go, so that one finding cannot breed for ever."""
        origin = self.stored.finding
        if "slip_of" in origin.facts:
            return ()
        return tuple(
            to_stored(
                slip.verdict.evidence,
                signature_of(slip.verdict.evidence, slip.outcome, (), model_of(slip.case)),
                slip.case,
                self.stored.versions,
                test=int(origin.facts.get("test", -1)),
                slip_of=origin.identifier,
            )
            for slip in slips
        )

    def _culprits(self, case: Case, pair: BuildPair) -> tuple[str, ...]:
        rng = stream(self.seed, "bisect", case.program.digest)
        return culprits(case, pair, self.pool, self.about.passes, self.about.twins, rng)

    def _script_shows(self, script: str) -> bool:
        with TemporaryDirectory(prefix="miscompile-") as place:
            path = Path(place) / "repro.py"
            path.write_text(script, "utf-8")
            return confirmed(confirm(path, seconds=max(60.0, 4 * self.plan.limit_seconds)))
