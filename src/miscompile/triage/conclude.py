"""Triage of one finding: reduced, attributed, confirmed by its standalone script.

The steps are the same for every oracle. The finding names its oracle, and every smaller case and every other build is
checked for the property that it violates.
"""

import platform
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import onnx

from miscompile.base.errors import MiscompileError
from miscompile.base.rng import stream
from miscompile.core.case import Case
from miscompile.core.examination import Examination, examine
from miscompile.core.finding import Finding, Property, Signature
from miscompile.core.outcome import Values
from miscompile.core.pool import Pool
from miscompile.core.ports import PropertyOracle
from miscompile.core.run import Build
from miscompile.core.verdict import Evidence, FindingKind, Violated
from miscompile.environments.resolve import python_of
from miscompile.findings.encode import evidence_facts
from miscompile.findings.folder import FindingStatus, Stored
from miscompile.findings.switches import switches_of
from miscompile.instances.code import encoded, parent_from
from miscompile.instances.instance import Instance, Parent
from miscompile.ops.analysis import reprogram
from miscompile.oracles import library
from miscompile.oracles.cost import CostSeries
from miscompile.oracles.disruptive import is_invalid
from miscompile.oracles.library import LibraryOracle
from miscompile.oracles.pair import BuildPair
from miscompile.producers.disruptive.checker import ChildChecker
from miscompile.targets.about import About, ScriptLines
from miscompile.targets.derivatives import of_the_program, rewritten_by
from miscompile.targets.known import KnownBug, ProgramPattern, known
from miscompile.targets.registry import load_attribute, parse_target
from miscompile.targets.upstream import UpstreamStory
from miscompile.triage.attribution import (
    ATTRIBUTED,
    SYMPTOM_TEXT,
    model_of,
    node_count,
    short_timeout,
    stored_property,
    to_stored,
)
from miscompile.triage.bisect import culprits, expand, fewest, only, shortest, still_guilty
from miscompile.triage.boundary import boundary_from, boundary_of
from miscompile.triage.claims import claims
from miscompile.triage.confirm import ScriptForks, ScriptResult, confirm, confirmed, needed_settings, shows_once
from miscompile.triage.converters import front_end_signature
from miscompile.triage.first_access import first_bad_access, wanted
from miscompile.triage.instance_boundary import ProbedInstance, instance_probes
from miscompile.triage.library import LibraryFinding
from miscompile.triage.materialise import materialised
from miscompile.triage.parents import MOST_UNDONE, nearest
from miscompile.triage.phase import phase_of
from miscompile.triage.predicate import described, has_pattern, inner_operators, widened
from miscompile.triage.recognition import with_pattern
from miscompile.triage.reduce.draft import Draft, put_together, take_apart
from miscompile.triage.reduce.engine import Budget, Reduced, Slippage, any_case, reduce_case
from miscompile.triage.reduce.graphs import GraphDrafts
from miscompile.triage.reduce.inputs import thawed
from miscompile.triage.reduce.instances import InstanceDrafts
from miscompile.triage.reduce.invalid import InvalidDrafts
from miscompile.triage.reduce.reduction import DraftKind
from miscompile.triage.reference_vote import reference_vote
from miscompile.triage.relaxation import DraftExaminer, predicate_of
from miscompile.triage.resistance import resisted
from miscompile.triage.rewriting import rewriting_of
from miscompile.triage.script import expected_of, first_script, test_name, write_script
from miscompile.triage.settings import TriageSettings
from miscompile.triage.signature import signature_of, symptom_of
from miscompile.triage.skeleton import TEMPLATE, TEST_TEMPLATE
from miscompile.triage.triaged import TriagedFindings
from miscompile.triage.upstream import upstream_files
from miscompile.triage.validity import accepts, takes

RELAXATION_SECONDS = 10.0
MOST_RELAXATIONS = 80
"""Limits of the search for the conditions of one bug, and of that for its boundary: seconds, and examinations."""

COST_PATIENCE = 10.0
"""Factor by which a script about cost may take longer than another one."""

_ORIGIN = frozenset({"test", "slip_of", "found_as", "front", "constants", "parent", "differences"})
"""Facts about the origin of a finding, which reduction does not change."""


PhaseListener = Callable[[str, int, int], None]
"""Receives the phase of a triage, and the nodes that the program has now and had at first; 0: not known."""


def silent(phase: str, nodes: int, nodes_before: int) -> None:
    """Discard the phases of a triage."""
    del phase, nodes, nodes_before


@dataclass(frozen=True, slots=True)
class Concluded:
    """A finding's new state; `slippages` are other violations that its reduction met, as findings of their own."""

    stored: Stored
    slippages: tuple[Stored, ...] = ()


def triage(
    stored: Stored,
    settings: TriageSettings,
    pool: Pool,
    budget: Budget,
    triaged: TriagedFindings | None = None,
    forks: ScriptForks | None = None,
    on_phase: PhaseListener = silent,
) -> Concluded:
    """Reduce, attribute and confirm a finding; its new status says whether a fresh process showed it again.

    With `forks` most runs of scripts are forks of interpreters, which is cheaper.

    A finding that duplicates one of the `triaged` ones comes back with the signature of that one, without a script and
    still pending: the store merges the two. It is not reduced if a known predicate explains it, else it comes back
    reduced and with its own predicate. Raises SpecError when the finding names
    an oracle or a transform that is not installed.
    """
    return _Triage(stored, settings, pool, triaged, forks, on_phase).conclude(budget)


class _Triage:
    """The triage of one finding, from pending to its report."""

    def __init__(
        self,
        stored: Stored,
        settings: TriageSettings,
        pool: Pool,
        triaged: TriagedFindings | None,
        forks: ScriptForks | None,
        on_phase: PhaseListener,
    ) -> None:
        self.stored, self.settings, self.pool = stored, settings, pool
        self.triaged, self.forks = triaged, forks
        self.target = stored.finding.property.target
        self.about: About = parse_target(self.target).about
        self.seed = settings.seed
        self.on_phase, self.told = on_phase, ("", 0)
        self.nodes_before = node_count(stored.original or stored.finding.case)
        self.kind: FindingKind = stored.finding.property.signature.kind
        self.differences: dict[str, Any] = {}

    def conclude(self, budget: Budget) -> Concluded:
        """Return the finding's new state, and the other violations that its reduction met."""
        self._tell("repeating")
        case, found, first = self._begin()
        known = self._recognised(case, first)
        if known is not None:
            return Concluded(_merging(self.stored, known))
        with short_timeout(self.pool, self.kind, lambda: first):
            self._tell("bisecting", case)
            guilty = self._suspected(case, found)
            self._tell("reducing", case)
            near = self._nearest(case, found, first, budget)
            held, reduced = self._reduce(near, found, guilty, budget)
            if reduced is None and near is not case:  # a violation that does not always show
                self.differences = {}
                held, reduced = self._reduce(case, found, guilty, budget)
            if reduced is None:
                shown = " in the build as shipped" if self.about.forced else ""
                return Concluded(_unconfirmed(self.stored, f"the violation does not show again{shown}"))
            if isinstance(held, BuildPair):
                held = replace(held, healed=None)
            held = shortest(reduced.case, held, self.pool, stream(self.seed, "sequence"))
            held = fewest(reduced.case, held, self.pool, stream(self.seed, "places"))
            self._tell("bisecting", reduced.case)
            guilty = self._guilty(reduced.case, held, guilty)
        self._tell("confirming", reduced.case)
        original = self.stored.original or case
        return Concluded(self._report(original, held, reduced, guilty), self._findings_of(reduced.slippages))

    def _tell(self, phase: str, case: Case | None = None) -> None:
        """Tell the phase that begins, with the size of the program where it is known."""
        step = (phase, 0 if case is None else node_count(case))
        if step != self.told:
            self.told = step
            self.on_phase(*step, self.nodes_before if case else 0)

    def _recognised(self, case: Case, first: Examination) -> Signature | None:
        """Return the signature of a known bug that the unreduced finding shows."""
        if self.triaged is None or not isinstance(first.verdict, Violated):
            return None
        own = self.stored.finding.identifier
        return self.triaged.recognise(case, first.verdict.evidence, first.faulty, own)

    def _begin(self) -> tuple[Case, PropertyOracle, Examination]:
        """Return the case and the property that the reduction begins with, examined.

        The case is the unreduced one, unless that does not violate the property. A reduction may end at plainer builds
        than it began with, and a finding has the builds of its end only: then the reduced case is reduced further.
        """
        case, found = self._plainest(self.stored.original or self.stored.finding.case)
        first = examine(case, found, self.pool, stream(self.seed, "patience"))
        if self.stored.original is not None and not isinstance(first.verdict, Violated):
            case, found = self._plainest(self.stored.finding.case)
            first = examine(case, found, self.pool, stream(self.seed, "patience"))
        return case, found, first

    def _plainest(self, case: Case) -> tuple[Case, PropertyOracle]:
        """Return the finding's case and property, simplified before the reduction.

        If the transformed program violates the property without the transform, it becomes the case; else the transform
        is restricted to the places that the violation needs.
        """
        found = stored_property(self.stored, self.settings.context)
        transform = found.faulty.transform
        if transform is None or not isinstance(found, BuildPair):
            return case, found
        first = rewritten_by(transform)
        left = of_the_program(transform) if first else None
        faulty = replace(found.faulty, transform=left)
        plain = replace(found, reference=Build("off", transform=left), faulty=faulty)
        for candidate in materialised(case, first or transform, reprogram):
            seen = examine(candidate, plain, self.pool, stream(self.seed, "plain"))
            if isinstance(seen.verdict, Violated) and seen.verdict.evidence.kind == self.kind:
                return candidate, plain
        return case, fewest(case, found, self.pool, stream(self.seed, "places"))

    def _nearest(self, case: Case, found: PropertyOracle, first: Examination, budget: Budget) -> Case:
        """Return the case nearest to the library's test that shows the violation of a neighbour; others unchanged.

        The differences of the original case are recorded, so those of a reduced one are not looked for.
        """
        parent, original = self._parent, self.stored.original or case
        if parent is None or case is not original or not isinstance(first.verdict, Violated):
            return case
        assert isinstance(found, LibraryOracle)
        examiner = self._examiner(case, found, first)
        limits = Budget(MOST_UNDONE, budget.expired)
        near = nearest(library.instance_of(case), parent, examiner.shows, limits)
        if near is None:
            return case
        self.differences = {"differences": near.as_json()}
        return examiner.kind.put_together(examiner.kind.tidy(near.instance), case.recipe) if near.undone else case

    @property
    def _parent(self) -> Parent | None:
        """The instance of the library's test from which a neighbour was made."""
        told = self.stored.finding.facts.get("parent")
        return parent_from(told) if told else None

    def _examiner(self, case: Case, held: PropertyOracle, seen: Examination) -> DraftExaminer[Instance]:
        """Return what tells whether an instance shows the violation that was `seen` on `case`."""
        assert isinstance(seen.verdict, Violated)
        evidence, drafts = seen.verdict.evidence, InstanceDrafts(bool(self.stored.finding.facts.get("constants")))
        symptom = symptom_of(evidence, seen.faulty)
        return DraftExaminer(case, held, symptom, evidence, drafts, self.pool, self.seed)

    def _suspected(self, case: Case, found: PropertyOracle) -> tuple[str, ...]:
        """Return the culprits that the lane has found; those of a finding that no lane has seen are searched for."""
        if isinstance(found, LibraryOracle):
            return ()  # the reduced case decides whether the optimiser is at fault at all
        if self.stored.finding.facts.get(ATTRIBUTED):
            return tuple(one for one in self._signature.culprits if one in self.about.passes)
        return self._culprits(case, found, self._signature.culprits)

    def _guilty(self, case: Case, held: PropertyOracle, suspected: Sequence[str]) -> tuple[str, ...]:
        """Return the culprits of the reduced case: those of the original if they check, else those of a new search."""
        if isinstance(held, LibraryOracle) and not self._optimiser_is_at_fault(case, held):
            return ()
        rng = stream(self.seed, "check", case.program.digest)
        if still_guilty(case, held, self.pool, suspected, self.about.passes, self.about.twins, rng):
            return tuple(sorted(suspected))
        return self._culprits(case, held, suspected)

    def _optimiser_is_at_fault(self, case: Case, held: PropertyOracle) -> bool:
        plain = held.with_faulty(replace(held.faulty, level="off", disabled=frozenset()))
        seen = examine(case, plain, self.pool, stream(self.seed, "unoptimised"))
        return bool(self.about.passes) and not isinstance(seen.verdict, Violated)

    def _culprits(self, case: Case, held: PropertyOracle, suspects: Sequence[str]) -> tuple[str, ...]:
        rng = stream(self.seed, "bisect", case.program.digest)
        return culprits(case, held, self.pool, self.about.passes, self.about.twins, rng, suspects)

    @property
    def _signature(self) -> Signature:
        return self.stored.finding.property.signature

    def _reduce(
        self, case: Case, found: PropertyOracle, guilty: Sequence[str], budget: Budget
    ) -> tuple[PropertyOracle, Reduced | None]:
        """Return the smallest case, and the plainest property that it violates; None when it violates none."""
        admits = self._demand(case)
        for held in self._properties(found, guilty):
            rng = stream(self.seed, "reduce")
            if isinstance(held, LibraryOracle):
                constants = bool(self.stored.finding.facts.get("constants"))
                reduced = reduce_case(case, held, self.pool, rng, InstanceDrafts(constants), budget=budget)
            else:
                reduced = self._reduce_graph(case, found, held, rng, budget, admits)
            if reduced is not None:
                return held, reduced
        return found, None

    def _reduce_graph(
        self,
        case: Case,
        found: PropertyOracle,
        held: PropertyOracle,
        rng: random.Random,
        budget: Budget,
        admits: Callable[[Case], bool],
    ) -> Reduced | None:
        """Reduce a graph. Where `held` switches on passes that were off, its constants may have to be inputs."""
        with self._graph_drafts(case) as graphs:
            shrink = partial(
                reduce_case, oracle=held, runner=self.pool, rng=rng, kind=graphs, budget=budget, admits=admits,
                on_smaller=partial(self._tell, "reducing"),
            )  # fmt: skip
            reduced = shrink(case)
            if reduced is None and held.faulty.disabled < found.faulty.disabled and not is_invalid(case):
                try:
                    melted = put_together(thawed(take_apart(case)), reprogram, case.recipe)
                except MiscompileError:
                    return None
                reduced = shrink(melted)
        return reduced

    @contextmanager
    def _graph_drafts(self, case: Case) -> Iterator[DraftKind[Draft]]:
        """Yield the draft kind of an ONNX model; onnx's checker runs beside it if the model is invalid on purpose."""
        if not is_invalid(case):
            yield GraphDrafts(self.pool, reprogram, self.pool)
            return
        with closing(ChildChecker()) as checker:
            yield InvalidDrafts(self.pool, checker, checker.types, self.pool)

    def _demand(self, case: Case) -> Callable[[Case], bool]:
        """Return the demand on reduced cases: the reference implementation must accept them, if it accepts this one.

        Only where the model itself may be to blame; otherwise every case meets the demand.
        """
        if not _may_be_invalid(self.kind, self.stored.finding.facts.get("reference")):
            return any_case
        return (lambda smaller: takes(smaller, self.pool)) if takes(case, self.pool) else any_case

    def _properties(self, found: PropertyOracle, guilty: Sequence[str]) -> list[PropertyOracle]:
        """Return the properties to try, the simplest builds first: the default build, the found build with all passes
        on, the found build, the culprits alone."""
        if not isinstance(found, BuildPair):
            shipped = replace(found.faulty, level="full", disabled=frozenset())
            return _distinct(found.with_faulty(shipped), found) if not isinstance(found, LibraryOracle) else [found]
        kept = replace(
            found,
            reference=replace(found.reference, level="off", disabled=frozenset()),
            faulty=replace(found.faulty, level="full", disabled=frozenset()),
        )
        plain = replace(found, reference=Build("off"), faulty=Build("full"))
        off = expand(guilty, self.about.twins)
        if self.about.forced:
            return [pair.healed_without(off) if guilty else pair for pair in _distinct(plain, kept)]
        if not guilty:
            return _distinct(plain, kept, found)
        pairs = [pair.healed_without(off) for pair in _distinct(plain, kept, found)]
        return [*pairs, only(found, guilty, self.about.passes, self.about.twins)]

    def _report(self, original: Case, held: PropertyOracle, reduced: Reduced, guilty: Sequence[str]) -> Stored:
        self.pool.fresh()
        timed = isinstance(held, CostSeries)  # whose examinations take too long to look for conditions of the bug
        shown_by = held.strict() if isinstance(held, CostSeries) else held
        final = examine(reduced.case, shown_by, self.pool, stream(self.seed, "final"))
        if not isinstance(final.verdict, Violated):
            return _unconfirmed(self.stored, "the reduced case does not show it in fresh processes")
        if isinstance(held, LibraryOracle):
            return self._report_library(original, held, reduced, guilty, final)
        evidence = final.verdict.evidence
        signature = signature_of(evidence, final.faulty, guilty, model_of(reduced.case))
        vote = accepts(reduced.case) if _may_be_invalid(evidence.kind, evidence.reference) else None
        valid = reduced.defined and (vote is None or vote.vote == "accepted")
        predicate = self._predicate(original, reduced.case, held, final, guilty) if valid and not timed else {}
        if valid:
            told = self._stored(original, reduced.case, evidence, signature, predicate, "", sound=True)
            known = self.triaged.duplicated(told) if self.triaged else None
            if known is not None:
                return _merging(told, known)
        # Nobody will file a listed bug, so that the dearer facts are left out.
        bug = self._listed(signature, evidence.message, reduced.case)
        listed = bug is not None
        script, plain, shown = self._scripted(reduced.case, final, guilty, 1 if listed else 3)
        facts = self._facts(original, evidence, reduced, shown)
        if vote is not None:
            facts["referee"] = {"vote": vote.vote, "message": vote.message}
        if self.about.trace and python_of(self.target) is None and not timed:
            facts["phase"] = phase_of(self.about.trace, reduced.case, evidence)
        sound = valid and confirmed(shown)
        if sound:
            facts |= predicate | (with_pattern(predicate, bug.pattern) if bug and bug.pattern else {})
        if not listed:
            facts |= self._causes(reduced.case, held, final, guilty)
            if not timed:
                facts["upstream_test"] = self._script(reduced.case, final, guilty, plain=plain, template=TEST_TEMPLATE)
                facts |= self._upstream(reduced.case, final, signature)
        if sound and not listed:
            facts |= self._accessed(script, final)
            self._tell("finding the boundary", reduced.case)
            facts |= self._needed(script) | ({} if timed else self._boundary(reduced.case, held, final))
        return self._stored(original, reduced.case, evidence, signature, facts, script, sound=sound)

    def _scripted(
        self, case: Case, final: Examination, guilty: Sequence[str], times: int
    ) -> tuple[str, bool, tuple[ScriptResult, ...]]:
        """Return the finding's script, whether it uses the compiler as its users do, and the results of its runs."""
        plain = self._script(case, final, guilty, plain=True)
        if plain:
            shown = self._run_script(plain, times)
            if confirmed(shown):
                return plain, True, shown
        script = self._script(case, final, guilty)
        return script, False, self._run_script(script, times)

    def _script(
        self,
        case: Case,
        final: Examination,
        guilty: Sequence[str],
        *,
        plain: bool = False,
        template: str = TEMPLATE,
    ) -> str:
        assert isinstance(final.verdict, Violated)
        return write_script(
            case, final.verdict.evidence, final.faulty, culprits=guilty, versions=dict(self.stored.versions),
            expected=expected_of(final), template=template, plain=plain,
        )  # fmt: skip

    def _causes(self, case: Case, held: PropertyOracle, final: Examination, guilty: Sequence[str]) -> dict[str, Any]:
        """Return the facts that point at the cause: barriers that heal, switched culprits, the program after them."""
        assert isinstance(final.verdict, Violated)
        facts: dict[str, Any] = {}
        if isinstance(held, BuildPair):
            healing = resisted(case, held, final.verdict.evidence.kind, self.pool, stream(self.seed, "resist"))
            facts |= {"resisted": healing} if healing else {}
            vote = reference_vote(final, self.pool, self.settings.context.narrowed(self.target))
            facts |= {"reference_vote": vote} if vote else {}
        if guilty:
            rng = stream(self.seed, "claims", case.program.digest)
            switched = claims(case, held, guilty, self.about.passes, self.about.twins, self.pool, rng)
            facts |= {"switching": switched.as_json()} | self._rewriting(case, held, guilty)
        return facts

    def _predicate(
        self, original: Case, case: Case, held: PropertyOracle, final: Examination, guilty: Sequence[str]
    ) -> dict[str, Any]:
        """Return the fact `predicate`: the conditions of the bug, by which campaigns recognise it again."""
        assert isinstance(final.verdict, Violated)
        graphs, evidence = GraphDrafts(self.pool, reprogram, self.pool), final.verdict.evidence
        until = time.monotonic() + RELAXATION_SECONDS
        budget = Budget(MOST_RELAXATIONS, lambda: time.monotonic() > until)
        bug = predicate_of(case, held, evidence, final.faulty, tuple(guilty), graphs, self.pool, self.seed, budget)
        if bug is None:
            return {}
        whole = model_of(original)
        return {"predicate": (widened(bug, described(whole)) if whole else bug).as_json()}

    def _boundary(self, case: Case, held: PropertyOracle, final: Examination) -> dict[str, Any]:
        """Return the fact `boundary`: which types, ranks, sizes and opsets show the bug, and which do not."""
        assert isinstance(final.verdict, Violated)
        graphs = GraphDrafts(self.pool, reprogram, self.pool)
        until = time.monotonic() + RELAXATION_SECONDS
        budget = Budget(MOST_RELAXATIONS, lambda: time.monotonic() > until)
        found = boundary_of(case, held, final.verdict.evidence, final.faulty, graphs, self.pool, self.seed, budget)
        return {"boundary": found} if found else {}

    def _instance_boundary(self, case: Case, held: LibraryOracle, final: Examination) -> dict[str, Any]:
        """Return the fact `boundary` of an operator instance: which variants of it show the bug, and which do not."""
        examiner = self._examiner(case, held, final)
        probed = ProbedInstance(library.instance_of(case), self._parent)
        until = time.monotonic() + RELAXATION_SECONDS
        budget = Budget(MOST_RELAXATIONS, lambda: time.monotonic() > until)
        constants = bool(self.stored.finding.facts.get("constants"))
        found = boundary_from(instance_probes(probed, InstanceDrafts(constants)), examiner.asked, budget)
        return {"boundary": found} if found else {}

    def _rewriting(self, case: Case, held: PropertyOracle, guilty: Sequence[str]) -> dict[str, Any]:
        """Return the fact `rewriting`: the program that the culprits leave, where the compiler can write it."""
        spec = parse_target(self.target)
        if not self.about.optimised or spec.options or python_of(self.target) is not None or is_invalid(case):
            return {}
        alone = only(held, guilty, self.about.passes, self.about.twins).faulty
        found = rewriting_of(self.about.optimised, case, alone.level, alone.disabled)
        return {"rewriting": found.as_json()} if found else {}

    def _upstream(self, case: Case, final: Examination, signature: Signature) -> dict[str, Any]:
        """Return the fact `upstream_files`: tests in the form of the target's repository, where that is no pytest."""
        assert isinstance(final.verdict, Violated)
        if not self.about.upstream or parse_target(self.target).options or python_of(self.target) is not None:
            return {}
        if is_invalid(case):
            return {}
        rows = final.reference.results if isinstance(final.reference, Values) else ()
        right = tuple(value for value in rows[0] if value is not None) if rows else ()
        build = final.verdict.evidence.faulty.build
        story = UpstreamStory(
            case.program.payload, case.feeds[0] if case.feeds else (),
            right if rows and len(right) == len(rows[0]) else None, build.level, tuple(sorted(build.disabled)),
            signature.kind, signature.stage, f"test_{test_name(final.verdict.evidence, signature.culprits)}",
        )  # fmt: skip
        (files,) = upstream_files(self.about.upstream, [story])
        return {"upstream_files": files} if files else {}

    def _report_library(
        self, original: Case, held: LibraryOracle, reduced: Reduced, guilty: Sequence[str], final: Examination
    ) -> Stored:
        """Report a front end that disagrees with the library; its signature stays that of the conversion function."""
        assert isinstance(final.verdict, Violated)
        told = LibraryFinding(held, final, self.pool)
        script = told.script(dict(self.stored.versions), constants=bool(self.stored.finding.facts.get("constants")))
        shown = self._run_script(script)
        facts = self._facts(original, final.verdict.evidence, reduced, shown) | told.facts(guilty) | self.differences
        agreeing = told.second_opinion()
        facts |= {"witness": agreeing} if agreeing else {}
        if agreeing is None:
            facts["unconfirmed"] = "no other compiler agrees with onnx's reference evaluator"
        sound = confirmed(shown) and agreeing is not None
        if sound and self._listed(self._signature, final.verdict.evidence.message, reduced.case) is None:
            self._tell("finding the boundary", reduced.case)
            facts |= self._instance_boundary(reduced.case, held, final)
        return self._stored(original, reduced.case, final.verdict.evidence, self._signature, facts, script, sound=sound)

    def _facts(
        self, original: Case, evidence: Evidence, reduced: Reduced, shown: tuple[ScriptResult, ...]
    ) -> dict[str, Any]:
        facts: dict[str, Any] = {
            **{key: value for key, value in self.stored.finding.facts.items() if key in _ORIGIN},
            **evidence_facts(evidence),
            "nodes": node_count(reduced.case),
            "original_nodes": node_count(original),
            "reproduced": confirmed(shown),
            "environment": self._environment(),
            "reduction": {"tries": reduced.tries, "complete": reduced.complete, "steps": list(reduced.steps)},
        }
        if not confirmed(shown):
            last = shown[-1]
            said = (last.stdout + last.stderr)[-600:]
            facts["unconfirmed"] = f"the script is {last.status} (exit status {last.code}): {said}"
        return facts

    def _environment(self) -> dict[str, str]:
        """Return what versions do not say: operating system, architecture, and Python where it is this one."""
        told = {"OS": platform.platform(terse=True), "architecture": platform.machine()}
        if python_of(self.target) is None:
            told |= {"Python": platform.python_version(), "onnx": onnx.__version__}
        return told

    def _stored(
        self,
        original: Case,
        case: Case,
        evidence: Evidence,
        signature: Signature,
        facts: Mapping[str, Any],
        script: str,
        *,
        sound: bool,
    ) -> Stored:
        bug = self._listed(signature, evidence.message, case)
        told = {**facts, **({"known": {"link": bug.link, "note": bug.note}} if bug is not None else {})}
        status: FindingStatus = "unconfirmed" if not sound else "known" if bug else "confirmed"
        if status == "confirmed" and switches_of(told):
            status, signature = "non-default", signature.switched()
        held = Property(self.stored.finding.property.oracle, self.target, signature)
        finding = Finding(self.stored.finding.identifier, held, case, evidence.message, told)
        return Stored(finding, status, original, self.stored.versions, script)

    def _listed(self, signature: Signature, message: str, case: Case) -> KnownBug | None:
        """Return the bug in the target's `known.toml` that a reduced finding is, None for any other one."""
        model = model_of(case)
        nodes = model.graph.nodes if model else ()
        operators = {op for node in nodes for op in (node.op, *inner_operators(node))}

        def contains(pattern: ProgramPattern) -> bool:
            return model is not None and has_pattern(pattern, model)

        return known(self.about.name, parse_target(self.target).via).bug(str(signature), message, operators, contains)

    def _findings_of(self, slippages: Sequence[Slippage]) -> tuple[Stored, ...]:
        """Make findings of the slippages, but none of the slippages of a slippage, so that they cannot multiply."""
        origin = self.stored.finding
        if "slip_of" in origin.facts:
            return ()
        return tuple(self._pending(one) for one in slippages)

    def _pending(self, one: Slippage) -> Stored:
        """Make a pending finding of a slippage; one of a front end is signed by its conversion function as well."""
        origin, evidence = self.stored.finding, one.verdict.evidence
        facts = {"test": int(origin.facts.get("test", -1)), "slip_of": origin.identifier}
        facts[SYMPTOM_TEXT] = symptom_of(evidence, one.outcome).text
        signature = signature_of(evidence, one.outcome, (), model_of(one.case))
        if evidence.rule == library.RULE and one.outcome is not None:
            instance = library.instance_of(one.case)
            reason = str(evidence.details.get("reason", ""))
            signature = front_end_signature(self.target, evidence.kind, instance, one.outcome, reason=reason)
            facts |= {key: value for key, value in origin.facts.items() if key in ("front", "constants")}
            facts |= {"instance": encoded(instance).decode(), "operator": f"{instance.library}:{instance.api}"}
        found = to_stored(evidence, signature, one.case, self.stored.versions, self.settings.context, **facts)
        return replace(found, script=first_script(one.case, evidence, one.outcome, (), self.stored.versions))

    def _accessed(self, script: str, final: Examination) -> dict[str, Any]:
        """Return the fact `first_access`: the access that a death by the memory began with, where a checker sees it."""
        if not wanted(final.faulty):
            return {}
        self._tell("naming the first bad access")
        with self._written(script) as path:
            found = first_bad_access(path, final.faulty, python_of(self.target))
        return {"first_access": found.as_json()} if found else {}

    def _needed(self, script: str) -> dict[str, Any]:
        """Return the fact `needs`: the options of the compiler, besides its defaults, without which nothing shows."""
        lines: ScriptLines = load_attribute(self.about.script)
        names = needed_settings(script, lines.settings, self._shows_once)
        return {"needs": list(names)} if names else {}

    def _run_script(self, script: str, times: int = 3) -> tuple[ScriptResult, ...]:
        """Run the script up to `times` times, until one run does not show the bug; return the results."""
        if not script:
            return (ScriptResult("broken", None, "", "no script can be written for this target", 0.0),)
        with self._written(script) as path:
            return confirm(path, python_of(self.target), self._script_seconds, times, self.forks)

    def _shows_once(self, script: str) -> bool:
        with self._written(script) as path:
            return shows_once(path, python_of(self.target), self._script_seconds, self.forks)

    @property
    def _script_seconds(self) -> float:
        """The time limit of a script; one about cost measures every build of a series three times."""
        return self.settings.script_seconds * (COST_PATIENCE if self.kind == "cost" else 1.0)

    @contextmanager
    def _written(self, script: str) -> Iterator[Path]:
        with TemporaryDirectory(prefix="miscompile-") as place:
            path = Path(place) / "repro.py"
            path.write_text(script, "utf-8")
            yield path


def _may_be_invalid(kind: FindingKind, reference: object) -> bool:
    """Tell whether the model may be at fault, because every build of the target fails on it."""
    return reference is None and kind in ("exception", "shape", "dtype")


def _merging(stored: Stored, known: Signature) -> Stored:
    """Return a finding under the signature of a known bug, for the store to merge."""
    held = replace(stored.finding.property, signature=known)
    return replace(stored, finding=replace(stored.finding, property=held), status="pending")


def _unconfirmed(stored: Stored, reason: str) -> Stored:
    facts = {**stored.finding.facts, "reproduced": False, "unconfirmed": reason}
    return replace(stored, finding=replace(stored.finding, facts=facts), status="unconfirmed")


def _distinct(*held: Any) -> list[Any]:  # noqa: ANN401 - properties of one kind
    """Return the properties in order, each once; they are not hashable."""
    found: list[Any] = []
    for one in held:
        if one not in found:
            found.append(one)
    return found
