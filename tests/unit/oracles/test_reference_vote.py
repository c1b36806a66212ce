"""Triage asks with which of two differing builds onnx's reference implementation agrees."""

from collections.abc import Sequence

import pytest
from oracle_cases import case, values

from miscompile.core.case import Case
from miscompile.core.examination import Examination
from miscompile.core.outcome import Outcome, Raised, Values
from miscompile.core.run import Build, Run
from miscompile.core.verdict import Evidence, Holds, Violated
from miscompile.oracles.montecarlo import ROUNDS
from miscompile.triage.reference_vote import reference_vote

PLAIN, OPTIMISED, OTHER = values([1.0, 2.0, 3.0]), values([1.0, 2.0, 9.0]), values([5.0, 2.0, 3.0])
STILL = Values((PLAIN.results[0],) * (1 + ROUNDS))


class Answers:
    """A runner that answers for the reference implementation, and for the program with noise."""

    def __init__(self, answer: Outcome) -> None:
        self.answer, self.asked = answer, list[Run]()

    def run(self, runs: Sequence[Run]) -> list[Outcome]:
        self.asked += runs
        return [self.answer if run.target == "reference" else STILL for run in runs]


def examination(kind: str = "wrong", item: Case | None = None) -> Examination:
    runs = tuple(Run(item or case(), "toy", Build(level)) for level in ("off", "full"))
    evidence = Evidence(kind, "exact", "differs", runs[1], runs[0])  # type: ignore[arg-type]
    return Examination(Violated(evidence), runs, (PLAIN, OPTIMISED))


@pytest.mark.parametrize(
    ("answer", "vote"),
    [(PLAIN, "reference"), (OPTIMISED, "faulty"), (OTHER, "neither"), (Raised("run", "Error", "no"), "")],
)
def test_the_vote_names_the_build_with_the_same_values(answer: Outcome, vote: str) -> None:
    assert reference_vote(examination(), Answers(answer), {}) == vote


@pytest.mark.parametrize("kind", ["special", "shape", "death"])
def test_only_wrong_values_are_put_to_the_vote(kind: str) -> None:
    runner = Answers(PLAIN)
    assert reference_vote(examination(kind), runner, {}) == ""
    assert not runner.asked


def test_a_property_that_holds_is_not_put_to_the_vote() -> None:
    runs = (Run(case(), "toy", Build("off")), Run(case(), "toy", Build("full")))
    assert reference_vote(Examination(Holds(), runs, (PLAIN, PLAIN)), Answers(PLAIN), {}) == ""
