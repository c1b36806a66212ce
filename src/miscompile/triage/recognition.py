"""Recognition of known bugs: the predicate of each finding with its signature, held against a violation or a draft."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from miscompile.base.errors import ModelError
from miscompile.core.case import Case, Program
from miscompile.core.finding import Signature
from miscompile.core.outcome import Outcome
from miscompile.core.verdict import Evidence
from miscompile.findings.encode import signature_from
from miscompile.findings.folder import REPEATED, Stored
from miscompile.graph.read import read
from miscompile.triage.outline import outlined
from miscompile.triage.predicate import BugPredicate, Described, described, predicate_from
from miscompile.triage.signature import Symptom, similar

VARIANTS = "variants"
"""The fact of a finding with the predicates of other programs that show the same bug."""

MOST_VARIANTS = 16
"""Predicates that a finding takes over from others at most."""


@dataclass(frozen=True, slots=True)
class SignedPredicate:
    """A known bug: the predicate with the signature of its finding."""

    predicate: BugPredicate
    signature: Signature
    _operators: Mapping[bytes, int] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_operators", self.predicate.operators)

    def has_operators(self, program: "OperatorCounts") -> bool:
        """Tell whether a program has as many of each operator as the pattern; takes microseconds."""
        return all(program[one] >= number for one, number in self._operators.items())

    def as_json(self) -> dict[str, Any]:
        """Return both as JSON values, for a lane."""
        return {"predicate": self.predicate.as_json(), "signature": asdict(self.signature)}


def signed_predicate_from(data: Mapping[str, Any]) -> SignedPredicate:
    """Read back what `SignedPredicate.as_json` returned. Raises StoreError for a damaged predicate."""
    return SignedPredicate(predicate_from(data["predicate"]), signature_from(data["signature"]))


def signed_predicates_of(stored: Stored) -> tuple[SignedPredicate, ...]:
    """Return the bug of a triaged finding once for each of its predicates; nothing for a finding without any.

    Raises StoreError for a damaged predicate.
    """
    if stored.status not in REPEATED:
        return ()
    facts, signature = stored.finding.facts, stored.finding.property.signature
    found = [facts["predicate"]] if isinstance(facts.get("predicate"), Mapping) else []
    return tuple(SignedPredicate(predicate_from(one), signature) for one in [*found, *facts.get(VARIANTS, ())])


def with_variant(owner: Stored, merged: Stored) -> Stored:
    """Return a finding with the predicate of another one that has its signature: both programs show the bug.

    The finding comes back unchanged when it has `MOST_VARIANTS` already, or nothing new is to be learnt.
    """
    facts, fresh = owner.finding.facts, merged.finding.facts.get("predicate")
    known = [facts.get("predicate"), *facts.get(VARIANTS, ())]
    if merged.status == "unconfirmed" or fresh is None or fresh in known or len(known) > MOST_VARIANTS:
        return owner
    facts = {**facts, VARIANTS: [*facts.get(VARIANTS, ()), fresh]}
    return replace(owner, finding=replace(owner.finding, facts=facts))


def with_pattern(predicate: Mapping[str, Any], pattern: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fact that a bug with the fact `predicate` shows in every program with `pattern`, of a known bug.

    Empty without a predicate, which has the symptom and the build.
    """
    held = predicate.get("predicate")
    return {} if held is None else {VARIANTS: [{**held, "nodes": [], "values": {}, **pattern}]}


def recognised(
    known: Iterable[SignedPredicate], case: Case, evidence: Evidence, outcome: Outcome | None
) -> SignedPredicate | None:
    """Return the first of the known bugs that a violation is, None for a new one.

    `outcome` is that of the faulty run.
    """
    program = ProgramContents(case)
    for bug in known:
        if bug.predicate.explains(evidence, outcome) and program.include(bug):
            return bug
    return None


def resembles(known: Iterable[SignedPredicate], target: str, symptom: Symptom, operators: "OperatorCounts") -> bool:
    """Tell whether a violation of `target` may well be a known bug: it has its symptom, the program all its operators.

    The builds and the pattern do not count, because a predicate may be too narrow. Of 81 triaged findings of an hour of
    OpenVINO and one of TVM, 3 resembled an earlier one, and 8 of 25 in twenty minutes of OpenVINO.
    """
    return any(
        bug.predicate.target == target and similar(bug.predicate.symptom, symptom) and bug.has_operators(operators)
        for bug in known
    )


class OperatorCounts(dict[bytes, int]):
    """The numbers of operators in a program, by their encoded names, each counted when it is looked up first.

    The rare other bytes of a program that look like the name of an operator count as well.
    """

    def __init__(self, program: Program) -> None:
        super().__init__()
        self._payload = program.payload if program.kind == "onnx" else b""

    def __missing__(self, name: bytes) -> int:
        number = self[name] = self._payload.count(name)
        return number


@dataclass(slots=True)
class ProgramContents:
    """A case's program, held against predicates in steps, each dearer than the one before.

    A pattern's operators are counted in the serialised program, which takes microseconds. Then all conditions are
    checked but those on types that the program does not declare. Only where these decide, the types are inferred: first
    those of the main graph, which onnx does at once, and those in bodies only where they decide.
    """

    case: Case
    _operators: "OperatorCounts" = field(init=False)
    _forms: list[Described] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._operators = OperatorCounts(self.case.program)

    def include(self, bug: SignedPredicate) -> bool:
        """Tell whether the program contains the pattern of `bug`."""
        if not bug.has_operators(self._operators):
            return False
        predicate = bug.predicate
        try:
            for step in range(len(_STEPS)):
                form = self._form(step)
                if not predicate.matches(form):
                    return False
                if predicate.matches(form, surely=True):
                    return True
        except ModelError:
            return False
        return True

    def _form(self, step: int) -> Described:
        while len(self._forms) <= step:
            self._forms.append(_STEPS[len(self._forms)](self.case.program.payload))
        return self._forms[step]


_STEPS: tuple[Callable[[bytes], Described], ...] = (
    outlined,
    lambda payload: outlined(payload, infer=True),
    lambda payload: described(read(payload)),
)
