"""What a lane does with a violation: is it stable, is it known, and which passes are to blame?

Everything here runs synchronously in the lane, so that what a lane does next depends on its seed alone and never on
timing. Reduction is left to the lead's triage desk.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from miscompile.base.errors import ModelError
from miscompile.base.rng import stream
from miscompile.base.specs import spec_text
from miscompile.core.case import Case
from miscompile.core.examination import Examination, examine
from miscompile.core.finding import Finding, Property, Signature
from miscompile.core.outcome import is_death
from miscompile.core.run import Build, Run
from miscompile.core.verdict import Evidence, FindingKind, Violated
from miscompile.engine.plan import narrowing
from miscompile.execution.multi_target import Pool
from miscompile.findings.encode import against_of, builds_of, evidence_facts
from miscompile.findings.folder import Stored, identify
from miscompile.graph.model import Model
from miscompile.graph.read import read
from miscompile.oracles.judge import Rule
from miscompile.oracles.optimisation import THREADS
from miscompile.oracles.pair import BuildPair
from miscompile.targets.about import About
from miscompile.targets.registry import parse_target
from miscompile.triage.bisect import culprits, expand, shortest
from miscompile.triage.signature import Symptom, signature_of, symptom_of

MOST_SIGHTINGS = 3
"""Findings of one signature that a lane hands over."""

LEAST_PATIENCE = 3.0
PATIENCE = 20.0
"""A search over builds that may hang waits at least so many seconds, and so many times what the sound build takes."""

MOST_UNATTRIBUTED = 4
"""Findings of one kind and stage without culprit or message that a lane hands over; further ones are counted."""


@dataclass(frozen=True, slots=True)
class ConfirmedViolation:
    """A violation that repeats, and its signature so far: the passes that suffice for it are named there."""

    evidence: Evidence
    signature: Signature


@dataclass(slots=True)
class Confirmer:
    """Confirms violations and finds their culprits, in a worker of its own."""

    pool: Pool
    rule: Rule
    seed: int
    known: Counter[Signature] = field(default_factory=Counter)
    unattributed: dict[tuple[str, str], int] = field(default_factory=dict)
    traced: dict[tuple[str, Symptom], list[Signature]] = field(default_factory=dict)
    """Signatures of the violations whose culprits were looked for, by target and symptom."""

    def investigate(self, case: Case, evidence: Evidence) -> ConfirmedViolation | None:
        """Return the charge, None when the violation does not repeat in fresh processes."""
        digest = case.program.digest
        pair = shortest(case, pair_of(evidence, self.rule), self.pool, stream(self.seed, "sequence", digest))
        first = self._again(case, pair)
        if not isinstance(first.verdict, Violated):
            return None
        found = first.verdict.evidence
        outcome = first.faulty
        if outcome is not None and is_death(outcome):
            with short_timeout(self.pool, found.kind, lambda: first):  # it has been waited for in full twice
                repeated = self.pool.confirm(found.faulty, 2)
            if not all(type(one) is type(outcome) for one in repeated):
                return None
        symptom = symptom_of(found, outcome)
        usual = self.traced.setdefault((pair.target, symptom), [])
        if symptom.text and len(usual) >= MOST_SIGHTINGS and len(set(usual)) == 1:
            return ConfirmedViolation(found, usual[0])  # the same message has had the same culprits each time
        about = parse_target(pair.target).about
        before = {name for one in usual for name in one.culprits}
        with short_timeout(self.pool, found.kind, lambda: first):
            guilty = culprits(
                case, pair, self.pool, about.passes, about.twins, stream(self.seed, "bisect", digest), suspects=before
            )
        signature = signature_of(found, outcome, guilty, model_of(case))
        usual.append(signature)
        return ConfirmedViolation(found, signature)

    def is_new(self, signature: Signature) -> bool:
        """Tell whether this lane has not handed over such a finding often enough yet, and remember it.

        The first sightings may come to nothing when they are triaged; the lead knows which of them are duplicates.
        """
        self.known[signature] += 1
        if self.known[signature] > MOST_SIGHTINGS:
            return False
        if signature.culprits or signature.kind in ("exception", "shape", "dtype", "accepted"):
            return True
        place = (signature.kind, signature.stage)
        self.unattributed[place] = self.unattributed.get(place, 0) + 1
        return self.unattributed[place] <= MOST_UNATTRIBUTED

    def _again(self, case: Case, pair: BuildPair) -> Examination:
        self.pool.fresh()
        return examine(case, pair, self.pool, stream(self.seed, "confirm"))


@contextmanager
def short_timeout(pool: Pool, kind: FindingKind, look: Callable[[], Examination]) -> Iterator[None]:
    """Within this block a hang is believed early: `look` examines how long the build that ends takes.

    Whatever is found out so must be held against the full patience afterwards.
    """
    if kind != "hang":
        yield
        return
    sound = look().reference
    took = 0.0 if sound is None else sound.observations.compile_seconds + sound.observations.run_seconds
    pool.allow(max(LEAST_PATIENCE, PATIENCE * took))
    try:
        yield
    finally:
        pool.allow(None)


def pair_of(evidence: Evidence, rule: Rule) -> BuildPair:
    """Return the pair of builds that `evidence` speaks of; without a reference, the unoptimised build stands in."""
    target, reference = evidence.faulty.target, evidence.reference
    against = "" if reference is None or reference.target == target else reference.target
    held, faulty = reference.build if reference else Build("off"), evidence.faulty.build
    if faulty == held and not against:
        faulty = Build("full")
    narrowed = narrowing([target, against] if against else [target])
    return BuildPair(target, held, faulty, rule, "confirm", against=against, narrowed=narrowed)


def stored_pair(stored: Stored, rule: Rule) -> BuildPair:
    """Return the pair of builds under which a stored finding was seen."""
    faulty, reference = builds_of(stored.finding.facts)
    held, case = stored.finding.property, stored.finding.case
    other = None if reference is None else Run(case, against_of(stored.finding.facts) or held.target, reference)
    return pair_of(Evidence(held.signature.kind, "", "", Run(case, held.target, faulty), other), rule)


def to_stored(
    evidence: Evidence, signature: Signature, case: Case, versions: Mapping[str, str], **facts: int | str
) -> Stored:
    """Return the pending finding that a violation makes, ready to be saved; `facts` are kept with it."""
    crossed = evidence.reference is not None and evidence.reference.target != evidence.faulty.target
    usual = "differential" if crossed else "optimisation"
    held = Property(str(case.recipe.get("oracle", usual)), evidence.faulty.target, signature)
    known = {**evidence_facts(evidence), **facts, **_found_as(evidence.faulty.build), "nodes": node_count(case)}
    finding = Finding(identify(evidence.kind, signature.target, case), held, case, evidence.message, known)
    return Stored(finding, "pending", None, versions)


def _found_as(build: Build) -> dict[str, str]:
    """Say under which transform of the program the violation came up, which a reduction may do without."""
    transform = spec_text(build.transform) or (f"{THREADS}={build.threads}" if build.threads > 1 else "")
    return {"found_as": transform} if transform else {}


def to_quarantine(signature: Signature, about: About) -> frozenset[str]:
    """Return the passes to switch off after a finding: the last of the culprits in pipeline order, with its twins.

    Earlier culprits of a set often only prepare the ground (constant folding), and many other classes need them.
    """
    order = {name: place for place, name in enumerate(about.passes)}
    guilty = [name for name in signature.culprits if name in order]  # an order of passes cannot be switched off
    return expand((max(guilty, key=order.__getitem__),), about.twins) if guilty else frozenset()


def node_count(case: Case) -> int:
    """Return the number of nodes of a case's main graph, 0 when it cannot be read."""
    model = model_of(case)
    return 0 if model is None else len(model.graph.nodes)


def model_of(case: Case) -> Model | None:
    """Return the case's model, None when it is no readable ONNX model."""
    try:
        return read(case.program.payload)
    except ModelError:
        return None
