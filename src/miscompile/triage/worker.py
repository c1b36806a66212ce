"""The clerk: a child process of the lead that turns a pending finding into a reduced, attributed, confirmed one.

Run as `python -m miscompile.triage.worker`. Reduction puts thousands of odd programs through onnx's checker and
inference, which are C++ and may abort, so it must not happen in the lead. The first line on standard input is the
plan, every further one the identifier of a finding in OUT/desk; for each, one JSON line comes back, and the
finding's new state lies in OUT/desk.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from miscompile.base.parents import die_with_parent
from miscompile.base.rng import stream
from miscompile.core.case import Case
from miscompile.core.examination import Examination, examine
from miscompile.core.finding import Finding, Property
from miscompile.core.outcome import Values
from miscompile.core.ports import Runner
from miscompile.core.run import Build
from miscompile.core.tensor import Tensor
from miscompile.core.verdict import FindingKind, Violated
from miscompile.engine.plan import Plan, plan_from
from miscompile.engine.wiring import differential, make_pool, reprogram
from miscompile.environments.resolve import python_of
from miscompile.execution.lazy import LazyRunner
from miscompile.execution.multi_target import Pool
from miscompile.execution.pool import LocalPool
from miscompile.findings import folder
from miscompile.findings.encode import evidence_facts
from miscompile.findings.folder import Status, Stored
from miscompile.graph.read import read
from miscompile.oracles.pair import BuildPair
from miscompile.targets.about import About
from miscompile.targets.known import known
from miscompile.targets.registry import parse_target
from miscompile.triage.attribution import model_of, node_count, short_timeout, stored_pair, to_stored
from miscompile.triage.bisect import culprits, expand, fewest, only, shortest
from miscompile.triage.confirm import confirm, confirmed
from miscompile.triage.materialise import materialised
from miscompile.triage.phase import phase_of
from miscompile.triage.queue import Answer, desk_folder
from miscompile.triage.reduce.engine import Budget, Reduced, Slippage, any_case, reduce_case
from miscompile.triage.resistance import resisted
from miscompile.triage.script import write_script
from miscompile.triage.signature import signature_of
from miscompile.triage.validity import VOTER, accepts, takes

REDUCTION_SECONDS = 20.0
"""What the reduction of one finding may take, unless the user asks for more."""

SLOW_REDUCTION_SECONDS = 60.0
"""The same for a compiler that needs more than `SLOW_SECONDS` for the two builds of a finding."""
SLOW_SECONDS = 0.15


_ORIGIN = frozenset({"test", "slip_of", "found_as"})
"""Facts that say where a finding comes from; reduction does not change them."""


def triage(stored: Stored, plan: Plan, pool: Pool, budget: Budget) -> Answer:
    """Reduce, attribute and confirm a finding; its new status says whether a fresh process showed it again."""
    work = _Triage(stored, plan, pool)
    return Answer(work.conclude(budget), work.slippages)


def _asks_referee(kind: FindingKind, reference: object) -> bool:
    """An error or a type that no build of the target is better at may be the fault of the model."""
    return reference is None and kind in ("exception", "shape", "dtype")


class _Triage:
    """One finding on the desk."""

    def __init__(self, stored: Stored, plan: Plan, pool: Pool) -> None:
        self.stored, self.plan, self.pool = stored, plan, pool
        self.target = stored.finding.property.target
        self.about: About = parse_target(self.target).about
        self.seed = plan.seed
        self.slippages: tuple[Stored, ...] = ()

    def conclude(self, budget: Budget) -> Stored:
        case, found = self._plainest(self.stored.original or self.stored.finding.case)
        rng = stream(self.seed, "patience")
        with short_timeout(self.pool, self._kind, lambda: examine(case, found, self.pool, rng)):
            pair, reduced = self._reduce(case, found, budget)
            pair = replace(pair, healed=None)
            guilty: tuple[str, ...] = ()
            if reduced is not None:
                pair = shortest(reduced.case, pair, self.pool, stream(self.seed, "sequence"))
                pair = fewest(reduced.case, pair, self.pool, stream(self.seed, "places"))
                guilty = self._culprits(reduced.case, pair)
        if reduced is None:
            return replace(self.stored, status="unconfirmed")
        self.slippages = self._findings_of(reduced.slippages)
        return self._report(case, pair, reduced, guilty)

    def _plainest(self, case: Case) -> tuple[Case, BuildPair]:
        """Return the finding's case and pair, as plain as they get before anything is reduced.

        Where the transformed program goes wrong by itself, it becomes the case; else the transform is
        restricted to the places that matter.
        """
        found = stored_pair(self.stored, self.plan.compare)
        if found.faulty.transform is None:
            return case, found
        plain = replace(found, reference=Build("off"), faulty=replace(found.faulty, transform=None))
        for candidate in materialised(case, found.faulty.transform, reprogram):
            seen = examine(candidate, plain, self.pool, stream(self.seed, "plain"))
            if isinstance(seen.verdict, Violated) and seen.verdict.evidence.kind == self._kind:
                return candidate, plain
        return case, fewest(case, found, self.pool, stream(self.seed, "places"))

    @property
    def _kind(self) -> FindingKind:
        return self.stored.finding.property.signature.kind

    def _reduce(self, case: Case, found: BuildPair, budget: Budget) -> tuple[BuildPair, Reduced | None]:
        """Return the smallest case, and the plainest pair of builds that it violates; None when it violates none."""
        guilty = self._culprits(case, found)
        with ExitStack() as stack:
            voter = LazyRunner(lambda: stack.enter_context(LocalPool(VOTER, 1, self.plan.limits)))
            admits = self._demand(case, voter)
            for pair in self._pairs(found, guilty):
                rng = stream(self.seed, "reduce")
                reduced = reduce_case(
                    case, pair, self.pool, rng, reprogram=reprogram, budget=budget, admits=admits, voter=voter
                )
                if reduced is not None:
                    return pair, reduced
        return found, None

    def _demand(self, case: Case, voter: Runner) -> Callable[[Case], bool]:
        """Return what a reduction must keep: a model that the reference implementation takes, if it takes it now.

        Asked for only where the model itself may be to blame.
        """
        facts = self.stored.finding.facts
        if not _asks_referee(self._kind, facts.get("reference")):
            return any_case
        return (lambda smaller: takes(smaller, voter)) if takes(case, voter) else any_case

    def _pairs(self, found: BuildPair, guilty: Sequence[str]) -> list[BuildPair]:
        """The plainest pairs first: as shipped, as found but with all passes, as found, the culprits alone."""
        kept = replace(
            found,
            reference=replace(found.reference, level="off", disabled=frozenset()),
            faulty=replace(found.faulty, level="full", disabled=frozenset()),
        )
        plain = replace(found, reference=Build("off"), faulty=Build("full"))
        shipped = _distinct(plain, kept)
        off = expand(guilty, self.about.twins)
        if self.about.forced:
            return [pair.healed_without(off) if guilty else pair for pair in shipped]
        if not guilty:
            return _distinct(*shipped, found)
        pairs = [pair.healed_without(off) for pair in _distinct(*shipped, found)]
        return [*pairs, only(found, guilty, self.about.passes, self.about.twins)]

    def _report(self, original: Case, pair: BuildPair, reduced: Reduced, guilty: Sequence[str]) -> Stored:
        self.pool.fresh()
        final = examine(reduced.case, pair, self.pool, stream(self.seed, "final"))
        if not isinstance(final.verdict, Violated):
            return replace(self.stored, status="unconfirmed")
        evidence = final.verdict.evidence
        signature = signature_of(evidence, final.faulty, guilty, read(reduced.case.program.payload))
        script = write_script(
            reduced.case, evidence, final.faulty, culprits=guilty, versions=dict(self.stored.versions),
            expected=_expected(final),
        )  # fmt: skip
        shows = self._script_shows(script)
        nodes, before = node_count(reduced.case), node_count(original)
        facts = {
            **{
                key: value for key, value in self.stored.finding.facts.items() if key in ("test", "slip_of", "found_as")
            },
            **evidence_facts(evidence),
            "nodes": nodes,
            "original_nodes": before,
            "reproduced": shows,
            "reduction": {"tries": reduced.tries, "complete": reduced.complete, "steps": list(reduced.steps)},
        }
        vote = accepts(reduced.case) if _asks_referee(evidence.kind, evidence.reference) else None
        if vote is not None:
            facts["referee"] = {"vote": vote.vote, "message": vote.message}
        healing = resisted(reduced.case, pair, evidence.kind, self.pool, stream(self.seed, "resist"))
        if healing:
            facts["resisted"] = healing
        bug = known(self.about.name).bug(str(signature))
        if self.about.trace and python_of(self.target) is None:
            facts["phase"] = phase_of(self.about.trace, reduced.case, evidence)
        if bug is not None:
            facts["known"] = {"link": bug.link, "note": bug.note}
        alone = self._stands_alone(reduced.case, pair) if pair.against else True
        sound = shows and alone and reduced.defined and (vote is None or vote.vote == "accepted")
        status: Status = "unconfirmed" if not sound else "known" if bug else "confirmed"
        finding = Finding(
            self.stored.finding.identifier,
            Property(self.stored.finding.property.oracle, self.target, signature),
            reduced.case,
            evidence.message,
            facts,
        )
        return Stored(finding, status, original, self.stored.versions, script)

    def _stands_alone(self, case: Case, pair: BuildPair) -> bool:
        """Ask every compiler once more: a reduced case must still have a majority against the faulty one."""
        oracle = differential(self.plan, {})
        seen = examine(case, replace(oracle, targets=self._electorate(pair)), self.pool, stream(self.seed, "vote"))
        return isinstance(seen.verdict, Violated) and seen.verdict.evidence.faulty.target == pair.target

    def _electorate(self, pair: BuildPair) -> tuple[str, ...]:
        return tuple(dict.fromkeys((pair.target, pair.against, *self.plan.targets)))

    def _findings_of(self, slippages: Sequence[Slippage]) -> tuple[Stored, ...]:
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
            for slip in slippages
        )

    def _culprits(self, case: Case, pair: BuildPair) -> tuple[str, ...]:
        rng, suspects = (
            stream(self.seed, "bisect", case.program.digest),
            self.stored.finding.property.signature.culprits,
        )
        return culprits(case, pair, self.pool, self.about.passes, self.about.twins, rng, suspects)

    def _script_shows(self, script: str) -> bool:
        with TemporaryDirectory(prefix="miscompile-") as place:
            path = Path(place) / "repro.py"
            path.write_text(script, "utf-8")
            python = python_of(self.target)
            return confirmed(confirm(path, python, seconds=max(60.0, 4 * self.plan.limit_seconds)))


def _distinct(*pairs: BuildPair) -> list[BuildPair]:
    """Return the pairs in order, each once; they hold tables, so that they cannot stand in a set."""
    found: list[BuildPair] = []
    for pair in pairs:
        if pair not in found:
            found.append(pair)
    return found


def _patience(stored: Stored, plan: Plan, pool: Pool) -> float:
    """Return how long the reduction of a finding may take: a slow compiler gets longer."""
    pair, case = stored_pair(stored, plan.compare), stored.finding.case
    begin = time.monotonic()
    pool.run(pair.plan(case, stream(plan.seed, "patience")))
    return SLOW_REDUCTION_SECONDS if time.monotonic() - begin > SLOW_SECONDS else REDUCTION_SECONDS


def _expected(seen: Examination) -> Tensor | None:
    """Return the right value of the bad output, where another target's run gave it."""
    assert isinstance(seen.verdict, Violated)
    evidence, outcome = seen.verdict.evidence, seen.reference
    if evidence.reference is None or evidence.reference.target == evidence.faulty.target:
        return None
    if not isinstance(outcome, Values) or "output" not in evidence.details:
        return None
    return outcome.results[int(evidence.details.get("feed", 0))][int(evidence.details["output"])]


def _serve(plan: Plan, pool: Pool, identifier: str) -> dict[str, Any]:
    place = desk_folder(plan.out)
    try:
        stored = folder.load(place, identifier)
        deadline = time.monotonic() + _patience(stored, plan, pool)
        answer = triage(stored, plan, pool, Budget(expired=lambda: time.monotonic() > deadline))
        for stored in (answer.stored, *answer.slippages):
            folder.save(place, stored)
    except Exception as error:  # noqa: BLE001 - one finding that defeats triage must not end the others
        return {"problem": f"triage of {identifier} failed: {type(error).__name__}: {error}"}
    return {"slips": [slip.finding.identifier for slip in answer.slippages]}


def main() -> int:
    """Serve one lead, whose process number is our argument, until it closes our standard input."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent(int(sys.argv[1]))  # it may be gone already
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever else prints must not break the answers
    plan = plan_from(sys.stdin.readline())
    with make_pool(plan) as pool:
        for line in sys.stdin:
            out.write(json.dumps(_serve(plan, pool, line.strip())) + "\n")
            out.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
