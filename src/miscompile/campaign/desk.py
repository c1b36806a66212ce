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
from miscompile.campaign.suspicion import node_count, pair_of
from miscompile.campaign.wiring import make_pool, reprogram
from miscompile.core.case import Case
from miscompile.core.finding import Finding, Property
from miscompile.core.run import Build, Run
from miscompile.core.verdict import Evidence, Violated
from miscompile.execution.pool import LocalPool
from miscompile.findings.encode import builds_of, evidence_facts
from miscompile.findings.folder import Status, Stored
from miscompile.graph.read import read
from miscompile.oracles.pair import BuildPair
from miscompile.targets.about import About
from miscompile.targets.known import known
from miscompile.targets.registry import parse_target
from miscompile.triage.bisect import culprits, only
from miscompile.triage.confirm import confirm, confirmed
from miscompile.triage.examine import Examination, examine_fully
from miscompile.triage.reduce.engine import Budget, Reduced, reduce_case
from miscompile.triage.script import write_script
from miscompile.triage.signature import signature_of, similar, symptom_of

REDUCTION_SECONDS = 20.0
"""What the reduction of one finding may take, unless the user asks for more."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a finding at the desk; `problem` says what went wrong, if anything did."""

    stored: Stored
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
        self._thread.join(timeout=30)

    def _serve(self) -> None:
        with make_pool(self._plan) as pool:
            while (stored := self._todo.get()) is not None and not self._closing.is_set():
                self._answers.put(self._examine(stored, pool))

    def _examine(self, stored: Stored, pool: LocalPool) -> Answer:
        try:
            deadline = time.monotonic() + REDUCTION_SECONDS
            expired = lambda: self._closing.is_set() or time.monotonic() > deadline  # noqa: E731
            return Answer(triage(stored, self._plan, pool, Budget(expired=expired)))
        except Exception as error:  # noqa: BLE001 - one finding that defeats triage must not end the others
            problem = f"triage of {stored.finding.identifier} failed: {type(error).__name__}: {error}"
            return Answer(replace(stored, status="unconfirmed"), problem)


def triage(stored: Stored, plan: Plan, pool: LocalPool, budget: Budget) -> Stored:
    """Reduce, attribute and confirm a finding; its new status says whether a fresh process showed it again."""
    return _Triage(stored, plan, pool).conclude(budget)


class _Triage:
    """One finding on the desk."""

    def __init__(self, stored: Stored, plan: Plan, pool: LocalPool) -> None:
        self.stored, self.plan, self.pool = stored, plan, pool
        self.about: About = parse_target(plan.target).about
        self.seed = plan.seed

    def conclude(self, budget: Budget) -> Stored:
        case = self.stored.original or self.stored.finding.case
        pair = self._pair()
        guilty = self._culprits(case, pair)
        held = only(pair, guilty, self.about.passes, self.about.twins) if guilty else pair
        reduced = reduce_case(case, held, self.pool, stream(self.seed, "reduce"), reprogram=reprogram, budget=budget)
        if reduced is None:
            return replace(self.stored, status="unconfirmed")
        return self._report(case, pair, reduced)

    def _report(self, original: Case, pair: BuildPair, reduced: Reduced) -> Stored:
        guilty = self._culprits(reduced.case, pair)
        final = self._simplest(reduced.case, pair, guilty, reduced)
        if final is None or not isinstance(final.verdict, Violated):
            return replace(self.stored, status="unconfirmed")
        evidence = final.verdict.evidence
        signature = signature_of(evidence, final.faulty, guilty, read(reduced.case.program.payload))
        script = write_script(
            reduced.case, evidence, final.faulty, culprits=guilty, versions=dict(self.stored.versions)
        )
        shows = self._script_shows(script)
        nodes, before = node_count(reduced.case), node_count(original)
        facts = {
            **{key: value for key, value in self.stored.finding.facts.items() if key in ("test", "seed")},
            **evidence_facts(evidence),
            "nodes": nodes,
            "original_nodes": before,
            "reproduced": shows,
            "reduction": {"tries": reduced.tries, "complete": reduced.complete, "steps": list(reduced.steps)},
        }
        bug = known(self.about.name).bug(str(signature))
        if bug is not None:
            facts["known"] = {"link": bug.link, "note": bug.note}
        status: Status = "unconfirmed" if not shows or not reduced.defined else "known" if bug else "confirmed"
        finding = Finding(
            self.stored.finding.identifier,
            Property("optimisation", self.plan.target, signature),
            reduced.case,
            evidence.message,
            facts,
        )
        return Stored(finding, status, original, self.stored.versions, script)

    def _pair(self) -> BuildPair:
        faulty, reference = builds_of(self.stored.finding.facts)
        target = self.plan.target
        case = self.stored.finding.case
        kind = self.stored.finding.property.signature.kind
        evidence = Evidence(
            kind, "", "", Run(case, target, faulty), None if reference is None else Run(case, target, reference)
        )
        return pair_of(evidence, self.plan.compare)

    def _culprits(self, case: Case, pair: BuildPair) -> tuple[str, ...]:
        rng = stream(self.seed, "bisect", case.program.digest)
        return culprits(case, pair, self.pool, self.about.passes, self.about.twins, rng)

    def _simplest(self, case: Case, pair: BuildPair, guilty: Sequence[str], reduced: Reduced) -> Examination | None:
        """Examine under the plainest pair of builds that shows the same: all passes on, as found, culprits only."""
        wanted = symptom_of(reduced.evidence, reduced.outcome)
        plain = replace(pair, reference=Build("off"), faulty=Build("full"))
        alone = only(pair, guilty, self.about.passes, self.about.twins)
        self.pool.fresh()
        for candidate in (plain, pair, alone):
            seen = examine_fully(case, candidate, self.pool, stream(self.seed, "final"))
            if isinstance(seen.verdict, Violated) and similar(symptom_of(seen.verdict.evidence, seen.faulty), wanted):
                return seen
        return None

    def _script_shows(self, script: str) -> bool:
        with TemporaryDirectory(prefix="miscompile-") as place:
            path = Path(place) / "repro.py"
            path.write_text(script, "utf-8")
            return confirmed(confirm(path, seconds=max(60.0, 4 * self.plan.limit_seconds)))
