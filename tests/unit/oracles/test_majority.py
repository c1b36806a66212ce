"""The majority vote: how many implementations suffice, and what an operator may lose."""

import pytest
from oracle_cases import case, values

from miscompile.core.outcome import Values
from miscompile.core.run import Build, Run
from miscompile.oracles.majority import REFERENCE, Ballot, count_votes

GOOD, BAD = [1.0, 2.0, 3.0], [1.0, 2.0, 9.0]
QUIET = Values((values(GOOD).results[0],) * 9)


def ballot(target: str, numbers: list[float]) -> Ballot:
    return Ballot(Run(case(), target, Build()), values(numbers))


@pytest.mark.parametrize(
    ("right", "decides"),
    [(("a",), False), (("a", "b"), False), (("a", REFERENCE), True), (("a", "b", "c"), True), ((REFERENCE,), False)],
)
def test_two_suffice_with_the_reference_and_three_without(right: tuple[str, ...], decides: bool) -> None:
    ballots = [ballot("wrong", BAD), *(ballot(name, GOOD) for name in right)]
    assert (count_votes(ballots, QUIET, exact=True).right is not None) == decides


def test_a_tie_decides_nothing() -> None:
    ballots = [ballot("a", GOOD), ballot(REFERENCE, GOOD), ballot("b", BAD), ballot("c", BAD)]
    assert count_votes(ballots, QUIET, exact=True).right is None


@pytest.mark.parametrize(("number", "agrees"), [(3.002, True), (3.01, False)])
def test_an_operator_may_lose_digits_inside(number: float, agrees: bool) -> None:
    vote = count_votes([ballot("a", GOOD), ballot("b", [1.0, 2.0, number])], QUIET, exact=True)
    assert (len(vote.all) == 1) == agrees
