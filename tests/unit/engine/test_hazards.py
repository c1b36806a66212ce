"""Dangerous classes of cases get a small share of the tests, and the others all of theirs."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miscompile.base.specs import parse_spec
from miscompile.core.case import Case, Program
from miscompile.core.outcome import Crashed, Outcome, Rejected, TimedOut
from miscompile.core.run import Build, Run
from miscompile.engine.hazards import (
    DEATH_COST,
    HANG_COST,
    KNOWN_COST,
    LEAST_PART,
    LEAST_SHARE,
    CaseClass,
    Hazards,
    class_of,
)

CALM, WILD = ("strict", "", ()), ("strict", "", ("resist",))
FINE, DEAD, HUNG = Rejected("compile", "no"), Crashed("run", 11), TimedOut("run", 30.0)


def played(rate: float, outcome: Outcome, tests: int = 3000, seed: int = 1) -> tuple[int, int, float]:
    """Draw the two classes in turns, the wild one dying at `rate`; return the tests of both and the cost."""
    hazards, rng = Hazards[CaseClass](), random.Random(seed)
    for number in range(2 * tests):
        kind = WILD if number % 2 else CALM
        if rng.random() < hazards.share(kind):
            hazards.count(kind, [FINE, outcome if kind == WILD and rng.random() < rate else FINE])
    return hazards.tests[CALM], hazards.tests[WILD], hazards.costs.get(WILD, 0.0)


def test_a_class_that_dies_often_gets_a_small_share_and_a_calm_one_all() -> None:
    calm, wild, _ = played(0.9, DEAD)
    assert calm == 3000
    assert 3000 * LEAST_SHARE < wild < 600


def test_a_class_that_hangs_is_tested_now_and_then() -> None:
    calm, wild, cost = played(0.1, HUNG)
    assert calm == 3000
    assert 10 < wild < 300
    assert cost < 0.1 * (3000 * 0.1 * HANG_COST), "a tenth of the cost without a budget"


def test_a_rare_death_changes_nothing() -> None:
    assert played(0.01, DEAD)[:2] == (3000, 3000)


def test_a_target_that_fails_often_takes_part_now_and_then() -> None:
    risks = Hazards[str](LEAST_PART)
    for _ in range(1000):
        risks.count("poor", [FINE])
        risks.count("good", [FINE])
        risks.charge("poor", KNOWN_COST)
    assert risks.share("good") == 1.0
    assert risks.share("poor") == LEAST_PART


@given(st.lists(st.sampled_from([FINE, DEAD, HUNG]), max_size=200))
def test_the_share_is_never_zero_and_falls_with_the_cost(outcomes: list[Outcome]) -> None:
    hazards = Hazards[CaseClass]()
    for outcome in outcomes:
        before = hazards.share(WILD)
        hazards.count(WILD, [outcome])
        assert LEAST_SHARE <= hazards.share(WILD) <= 1.0
        assert (hazards.share(WILD) <= before) or outcome is FINE or before == 1.0 or outcome is DEAD
    assert hazards.costs.get(WILD, 0.0) == outcomes.count(DEAD) * DEATH_COST + outcomes.count(HUNG) * HANG_COST


@pytest.mark.parametrize(
    ("recipe", "forms", "kind"),
    [
        ({"producer": "strict{nodes=5}"}, [""], ("strict", "", ())),
        ({"producer": "sweep", "oracle": "dynamic"}, ["resist{seed=3}", "exact", "resist"],
         ("sweep", "dynamic", ("exact", "resist"))),
        ({}, [], ("", "", ())),
    ],
)  # fmt: skip
def test_the_class_names_producer_oracle_and_transforms(
    recipe: dict[str, str], forms: list[str], kind: tuple[str, str, tuple[str, ...]]
) -> None:
    case = Case(Program("onnx", b"", (), ()), ((),), recipe)
    runs = [Run(case, "toy", Build(transform=parse_spec(form) if form else None)) for form in forms]
    assert class_of(case, runs) == kind
