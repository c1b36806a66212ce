"""Attribution of a new violation: whether it repeats, whether it is known, and which passes are to blame.

All of this runs synchronously in the lane, so that the lane's next case depends on its seed alone and never on timing.
The triage queue reduces the finding later.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from miscompile.base.errors import ModelError
from miscompile.base.rng import stream
from miscompile.base.specs import spec_text
from miscompile.core.case import Case
from miscompile.core.examination import Examination, examine
from miscompile.core.finding import Finding, Property, Signature
from miscompile.core.outcome import Outcome, is_death
from miscompile.core.pool import Pool
from miscompile.core.ports import PropertyOracle
from miscompile.core.run import Build, Run
from miscompile.core.verdict import Evidence, FindingKind, Violated
from miscompile.findings.encode import against_of, builds_of, evidence_facts
from miscompile.findings.folder import Stored, identify
from miscompile.graph.model import Model
from miscompile.graph.read import read
from miscompile.oracles import library
from miscompile.oracles.kinds import OracleContext
from miscompile.oracles.optimisation import THREADS
from miscompile.oracles.registry import hold, property_spec
from miscompile.targets.registry import parse_target
from miscompile.triage.bisect import culprits, shortest
from miscompile.triage.signature import Symptom, setting_of, signature_of, symptom_of, telling

MOST_SIGHTINGS = 3
"""Findings of one signature that a lane reports."""

AGAIN = 16
"""One in so many violations with a familiar message is searched for its culprits nevertheless."""

LEAST_PATIENCE = 3.0
PATIENCE = 20.0
"""The short timeout of a search over builds that may hang: at least `LEAST_PATIENCE` seconds, and `PATIENCE` times the
duration of the sound build."""

MOST_GUESSES = 3
"""Sets of culprits of similar violations that are tried before a search; each may cost an examination in vain."""

MOST_UNATTRIBUTED = 4
"""Findings of one kind and stage without culprit or message that a lane reports; further ones are only counted."""

MOST_UNLIKE = 64
"""The same, of violations that resemble no known bug."""

ATTRIBUTED = "attributed"
"""The fact of a pending finding that its culprits were searched for, so that triage need not search again."""

SYMPTOM_TEXT = "symptom text"
"""The fact of a pending finding with the text of its symptom, which its signature has only in parts."""


@dataclass(frozen=True, slots=True)
class ConfirmedViolation:
    """A violation that repeats, and its preliminary signature, which names the passes that suffice for it.

    `unseen` when it was neither repeated nor searched, because its message names a known bug.
    """

    evidence: Evidence
    signature: Signature
    unseen: bool = False


@dataclass(slots=True)
class Confirmer:
    """Confirms violations and finds their culprits, in a worker of its own."""

    pool: Pool
    context: OracleContext
    seed: int
    known: Counter[Signature] = field(default_factory=Counter)
    unattributed: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    traced: dict[tuple[str, str, Symptom], list[Signature]] = field(default_factory=dict)
    """Signatures of the violations whose culprits were searched for, by target, difference of builds, and symptom."""

    def investigate(self, case: Case, evidence: Evidence, outcome: Outcome | None = None) -> ConfirmedViolation | None:
        """Return the violation with its signature, None when it does not repeat in fresh processes.

        Most violations with a message that has come with one signature every time are taken for that bug unseen.
        """
        digest = case.program.digest
        if outcome is not None and (usual := self._usual(case, evidence, outcome)):
            return ConfirmedViolation(evidence, usual, unseen=True)
        held = hold(oracle_of(case, evidence), evidence, self.context)
        held = shortest(case, held, self.pool, stream(self.seed, "sequence", digest))
        first = self._again(case, held)
        if not isinstance(first.verdict, Violated):
            return None
        found = first.verdict.evidence
        outcome = first.faulty
        if outcome is not None and is_death(outcome):
            with short_timeout(self.pool, found.kind, lambda: first):  # the full time limit has passed twice already
                repeated = self.pool.confirm(found.faulty, 2)
            if not all(type(one) is type(outcome) for one in repeated):
                return None
        earlier = self.traced.setdefault(_sight(found, outcome), [])
        about = parse_target(held.target).about
        before = Counter(one.culprits for one in earlier if one.culprits)
        suspects = {name for one in before for name in one}
        guesses = [one for one, _ in before.most_common(MOST_GUESSES)]
        with short_timeout(self.pool, found.kind, lambda: first):
            rng = stream(self.seed, "bisect", digest)
            guilty = culprits(case, held, self.pool, about.passes, about.twins, rng, suspects, guesses)
        signature = signature_of(found, outcome, guilty, model_of(case))
        earlier.append(signature)
        # The property of a cost measures little, and the evidence of the campaign has the whole series.
        return ConfirmedViolation(evidence if found.kind == "cost" else found, signature)

    def is_new(self, signature: Signature, most: int = MOST_UNATTRIBUTED) -> bool:
        """Tell whether this lane should report another finding of this signature, and count it.

        A lane reports several, because triage may not confirm the first ones; the coordinator removes duplicates.
        `most` limits the findings of one kind and stage without culprit or message.
        """
        self.known[signature] += 1
        if self.known[signature] > MOST_SIGHTINGS:
            return False
        if signature.culprits or signature.kind in ("exception", "shape", "dtype", "accepted"):
            return True
        place = (signature.kind, signature.stage, most)
        self.unattributed[place] += 1
        return self.unattributed[place] <= most

    def _usual(self, case: Case, evidence: Evidence, outcome: Outcome) -> Signature | None:
        """Return the only signature that this message has had so far, None when a search is needed.

        One in `AGAIN` programs is searched nevertheless, because another bug may have the same message.
        """
        sight = _sight(evidence, outcome)
        usual = self.traced.get(sight, [])
        if not telling(sight[2]) or len(usual) < MOST_SIGHTINGS or len(set(usual)) > 1:
            return None
        again = stream(self.seed, "again", case.program.digest).random() < 1 / AGAIN
        return None if again else usual[0]

    def _again(self, case: Case, held: PropertyOracle) -> Examination:
        self.pool.fresh()
        return examine(case, held, self.pool, stream(self.seed, "confirm"))


def _sight(evidence: Evidence, outcome: Outcome | None) -> tuple[str, str, Symptom]:
    return evidence.faulty.target, setting_of(evidence), symptom_of(evidence, outcome)


@contextmanager
def short_timeout(pool: Pool, kind: FindingKind, look: Callable[[], Examination]) -> Iterator[None]:
    """Use a short timeout within this block if the violation is a hang.

    `look` measures the duration of the sound build. A verdict from within the block must be confirmed under the full
    time limit afterwards.
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


def oracle_of(case: Case, evidence: Evidence) -> str:
    """Return the name of the oracle that found `evidence`: the case's own, or the one that its builds imply."""
    if evidence.rule == library.RULE:
        return library.ORACLE
    crossed = evidence.reference is not None and evidence.reference.target != evidence.faulty.target
    return str(case.recipe.get("oracle", "differential" if crossed else "optimisation"))


def stored_evidence(stored: Stored) -> Evidence:
    """Return the evidence that a stored finding's facts describe."""
    facts, finding = stored.finding.facts, stored.finding
    faulty, reference = builds_of(facts)
    held, case = finding.property, finding.case
    other = None if reference is None else Run(case, against_of(facts) or held.target, reference)
    run = Run(case, held.target, faulty)
    rule, output = str(facts.get("rule", "")), str(facts.get("output", ""))
    return Evidence(held.signature.kind, rule, finding.message, run, other, output, facts.get("details", {}))


def stored_property(stored: Stored, context: OracleContext) -> PropertyOracle:
    """Return the oracle of the property that a stored finding violates. Raises SpecError for an unknown oracle."""
    return hold(stored.finding.property.oracle, stored_evidence(stored), context, stored.finding.facts)


def to_stored(
    evidence: Evidence,
    signature: Signature,
    case: Case,
    versions: Mapping[str, str],
    context: OracleContext,
    **facts: Any,  # noqa: ANN401 - JSON values
) -> Stored:
    """Return a pending finding for a violation, ready to be saved; `facts` are added to it."""
    spec = property_spec(oracle_of(case, evidence), context)
    held = Property(spec, evidence.faulty.target, signature)
    known = {**evidence_facts(evidence), **facts, **_found_as(evidence.faulty.build), "nodes": node_count(case)}
    finding = Finding(identify(evidence.kind, signature.target, case), held, case, evidence.message, known)
    return Stored(finding, "pending", None, versions)


def _found_as(build: Build) -> dict[str, str]:
    """Return the transform under which the violation was found, as a fact; a reduction may remove the transform."""
    transform = spec_text(build.transform) or (f"{THREADS}={build.threads}" if build.threads > 1 else "")
    return {"found_as": transform} if transform else {}


def node_count(case: Case) -> int:
    """Return the number of nodes of a case's main graph, 1 for an operator instance, 0 when it cannot be read."""
    if case.program.kind != "onnx":
        return 1
    model = model_of(case)
    return 0 if model is None else len(model.graph.nodes)


def model_of(case: Case) -> Model | None:
    """Return the case's model, None when it is no readable ONNX model."""
    if case.program.kind != "onnx":
        return None
    try:
        return read(case.program.payload)
    except ModelError:
        return None
