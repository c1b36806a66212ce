"""The library oracle: the front end of a compiler must agree with its library (OPERA, section III-C).

A case is a program of one operator. The library runs it first, several times (see `library_reference`). Its results
decide the right values, the allowed difference of each element, and whether the program can be judged at all. Then the
front end runs it.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from miscompile.core.case import Case
from miscompile.core.outcome import Outcome
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Tensor
from miscompile.core.verdict import Evidence, Holds, Inconclusive, Needs, Verdict, Violated
from miscompile.instances.code import decoded
from miscompile.instances.instance import Instance
from miscompile.instances.program import from_case
from miscompile.instances.values import Drawn, Held, leaves, tensor_of
from miscompile.oracles.fed_constants import fixed, of_constants
from miscompile.oracles.instrumentation import NOT_NARROWED
from miscompile.oracles.judge import CompareRule
from miscompile.oracles.kinds import OracleContext, OracleKind
from miscompile.oracles.library_judge import Judgement, judge
from miscompile.oracles.library_reference import Dropped, LibraryReference, assess, reference_case, with_outputs
from miscompile.oracles.narrow import exceed
from miscompile.targets.reasons import refusal_reason

ORACLE = "library"
"""The name of this oracle in recipes."""

RULE = "library"
"""The rule that evidence of this oracle names."""

INSTANCE = "instance"
"""The key under which the recipe of an ONNX program keeps its operator instance, as JSON."""


@dataclass(frozen=True, slots=True)
class LibraryOptions:
    """Parameters of the oracle in a finding: the target spec of the library, the comparison (None: the campaign's), and
    whether all tensors but the first are part of the program."""

    library: str = ""
    compare: CompareRule | None = None
    constants: bool = False


@dataclass(frozen=True, slots=True)
class LibraryOracle:
    """Compares build `faulty` of the front end `target` (a spec) with `library`, the spec of the library as a target.

    `compare` is `strict`, or `fixed` for the paper's threshold; `narrowed` maps the types that the compiler computes in
    a narrower type by design. The verdict's details hold the Chebyshev `distance`, where there are numbers.

    A refusal is no violation but for the reason `refused`, as `reason_of` returns it: it is one of class `refused-form`
    then, and the details hold the `reason`.
    """

    library: str
    target: str
    faulty: Build = field(default_factory=Build)
    compare: CompareRule = "strict"
    narrowed: Mapping[str, str] = field(default_factory=lambda: NOT_NARROWED)
    refused: str = ""

    def plan(self, case: Case, rng: random.Random) -> tuple[Run, ...]:
        """Return the library's run: the feed twice, and then with noise."""
        del rng
        return (Run(reference_case(instance_of(case), case), self.library, Build("off"), "judge"),)

    def judge(self, runs: Sequence[Run], outcomes: Sequence[Outcome]) -> Verdict:
        """Ask for the front end's run when the library's answer is usable as a reference, then judge that run."""
        answer = answer_of(runs[0], outcomes[0])
        if isinstance(answer, Dropped):
            return Inconclusive(answer.reason, answer.detail)
        if len(runs) == 1:
            return Needs((Run(with_outputs(_tested(runs[0].case), answer), self.target, self.faulty),))
        found = judge(answer, outcomes[1], self.compare, self.narrowed)
        if found.status == "unsupported" and self.refused and self.refused == refusal_reason(self.target, outcomes[1]):
            found = replace(found, kind="refused-form")
        if found.status == "pass":
            return Holds(details=_distance(found))
        if found.kind is None:
            return Inconclusive(found.status, found.message)
        if found.kind == "wrong" and exceed(_tensors(runs[0].case), self.narrowed):
            return Inconclusive("beyond a type that is narrower by design", found.message)
        return Violated(self._evidence(runs[1], found))

    def with_faulty(self, build: Build) -> "LibraryOracle":
        """Return the same oracle for another build of the front end."""
        return replace(self, faulty=build)

    def _evidence(self, run: Run, found: Judgement) -> Evidence:
        assert found.kind is not None
        details = {
            "output": found.output, "feed": 0, "allowed": found.allowed, "place": found.place, **_distance(found),
            **({"reason": self.refused} if found.kind == "refused-form" else {}),
        }  # fmt: skip
        against = Run(run.case, self.library, Build("off"))
        output, message = run.case.program.outputs[found.output].name, " ".join(found.message.split())
        return Evidence(found.kind, RULE, message, run, against, output, details)


def _tested(case: Case) -> Case:
    """Return the front end's case, where `case` is the library's."""
    one = replace(case, feeds=case.feeds[:1])
    return fixed(one) if of_constants(instance_of(one)) else one


def answer_of(run: Run, outcome: Outcome) -> LibraryReference | Dropped:
    """Return the reference that the library's run gives, or the reason why there is none."""
    case = replace(run.case, feeds=run.case.feeds[:1])
    return assess(instance_of(case), case, outcome)


def instance_of(case: Case) -> Instance:
    """Return the operator instance that a case was made of."""
    told = case.recipe.get(INSTANCE)
    return decoded(str(told)) if told is not None else from_case(case)


def _tensors(case: Case) -> list[Tensor]:
    """Return the operands of a case, fed or constant."""
    values = [leaf for one in instance_of(case).parameters().values() for leaf in leaves(one)]
    return [tensor_of(one) for one in values if isinstance(one, Held | Drawn)] + list(case.feeds[0])


def _distance(found: Judgement) -> dict[str, float | str]:
    """Return the Chebyshev distance as a JSON value; an empty dict without numeric outputs."""
    if found.distance is None:
        return {}
    return {"distance": found.distance if found.distance < float("inf") else str(found.distance)}


def _hold(
    options: LibraryOptions, evidence: Evidence, context: OracleContext, facts: Mapping[str, Any]
) -> LibraryOracle:
    """Return the oracle for the faulty build of a violation."""
    told = evidence.reference.target if evidence.reference is not None else ""
    library = options.library or str(facts.get("against") or told)
    target = evidence.faulty.target
    compare = options.compare or context.rule
    refused = str(evidence.details.get("reason", ""))
    return LibraryOracle(library, target, evidence.faulty.build, compare, context.narrowed(target), refused)


KIND = OracleKind(ORACLE, "a front end against the library whose operators it takes", _hold, options=LibraryOptions)
