"""The differential oracle: equality first, then groups; nobody is blamed without a majority of implementations."""

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from oracle_cases import case, values

from miscompile.core.case import Case
from miscompile.core.outcome import Crashed, Outcome, Raised, Unsupported, Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Tensor
from miscompile.core.verdict import Holds, Inconclusive, Needs, Verdict, Violated
from miscompile.graph.emit import to_program
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.oracles.differential import Differential
from miscompile.oracles.judge import is_noise
from miscompile.oracles.montecarlo import ROUNDS

A, B, C = "toy{bugs=none}", "toy", "reference"
GOOD, BAD, NEAR = values([1.0, 2.0, 3.0]), values([1.0, 2.0, 9.0]), values([1.0, 2.0, 3.5])
WIDE = Values((GOOD.results[0], *([NEAR.results[0], GOOD.results[0]] * (ROUNDS // 2))))
TIGHT = Values((GOOD.results[0],) * (1 + ROUNDS))


def judge(full: Sequence[Outcome], off: Sequence[Outcome] = (), noise: Outcome | None = TIGHT) -> Verdict:
    """Judge A and B, with C as a voter; `off` are the unoptimised outcomes of A, B and C in a second round."""
    oracle = Differential((A, B), (C,))
    item = case()
    runs = list(oracle.plan(item, random.Random(0)))
    first = oracle.judge(runs, list(full))
    if not off:
        return first
    assert isinstance(first, Needs)
    rest = [noise if is_noise(run) else off[[A, B, C].index(run.target)] for run in first.runs]
    return oracle.judge([*runs, *first.runs], [*full, *[one for one in rest if one is not None]])


def blamed(verdict: Verdict) -> tuple[str, str, str, str]:
    assert isinstance(verdict, Violated), verdict
    faulty, reference = verdict.evidence.faulty, verdict.evidence.reference
    assert reference is not None
    return faulty.target, faulty.build.level, reference.target, reference.build.level


def test_every_target_builds_once_and_agreement_ends_it() -> None:
    runs = Differential((A, B)).plan(case(), random.Random(0))
    assert [(run.target, run.build) for run in runs] == [(A, Build()), (B, Build())]
    assert judge([GOOD, GOOD]) == Holds()


def test_a_recipe_names_the_targets_of_a_case() -> None:
    item = replace(case(), recipe={"targets": [B]})
    assert [run.target for run in Differential((A, B)).plan(item, random.Random(0))] == [B]


def test_a_recipe_names_the_targets_that_leave_out_a_test() -> None:
    item = replace(case(), recipe={"targets": [A, B], "absent": [A]})
    assert [run.target for run in Differential((A, B)).plan(item, random.Random(0))] == [B]


def test_quarantined_passes_stay_off_where_they_belong() -> None:
    runs = Differential((A, B), disabled={B: frozenset("X")}).plan(case(), random.Random(0))
    assert [run.build.disabled for run in runs] == [frozenset(), frozenset("X")]


def test_a_disagreement_asks_for_everybodys_plain_build_the_voters_and_noise() -> None:
    verdict = judge([GOOD, BAD])
    assert isinstance(verdict, Needs)
    assert [(run.target, run.build.level) for run in verdict.runs] == [(A, "off"), (B, "off"), (C, "off"), (A, "off")]
    assert [is_noise(run) for run in verdict.runs] == [False, False, False, True]


def test_the_one_that_stands_alone_is_named() -> None:
    assert blamed(judge([GOOD, BAD], [GOOD, BAD, GOOD])) == (B, "full", A, "full")
    assert blamed(judge([BAD, GOOD], [BAD, GOOD, GOOD])) == (A, "full", B, "full")


def test_a_build_that_its_own_plain_build_contradicts_is_held_against_that() -> None:
    assert blamed(judge([GOOD, BAD], [GOOD, GOOD, GOOD])) == (B, "full", B, "off")


def test_levels_of_one_compiler_are_one_voice() -> None:
    assert judge([GOOD, BAD], [GOOD, BAD, Unsupported("run", "no")]) == Inconclusive("no majority")


def test_three_opinions_prove_nothing() -> None:
    assert judge([GOOD, BAD], [GOOD, BAD, values([7.0, 7.0, 7.0])]) == Inconclusive("no majority")


def test_voters_are_not_on_trial() -> None:
    assert judge([GOOD, BAD], [GOOD, GOOD, BAD]) != Holds()
    oracle = Differential((A, B), (C,))
    item = case()
    runs = [
        Run(item, target, build, "judge" if build.level == "off" else "fuzz")
        for build in (Build(), Build("off"))
        for target in (A, B)
    ]
    odd = [*runs, Run(item, C, Build("off")), Run(item, A, Build("off"))]
    assert oracle.judge(odd, [GOOD, GOOD, GOOD, GOOD, BAD, GOOD]) == Holds("only voters disagree")


def test_what_rounding_explains_is_no_disagreement() -> None:
    assert isinstance(judge([GOOD, NEAR], [GOOD, NEAR, GOOD], WIDE), Holds | Inconclusive)
    assert blamed(judge([GOOD, NEAR], [GOOD, NEAR, GOOD], TIGHT)) == (B, "full", A, "full")


def test_without_noise_only_exact_outputs_count() -> None:
    broken = Raised("run", "Error", "no")
    assert isinstance(judge([GOOD, BAD], [GOOD, BAD, GOOD], broken), Holds | Inconclusive)


@pytest.mark.parametrize("outcome", [Crashed("run", 11), Raised("compile", "Error", "bad")])
def test_an_error_is_held_against_whoever_accepts_the_program(outcome: Outcome) -> None:
    assert blamed(judge([GOOD, outcome])) == (B, "full", A, "full")


def test_an_error_that_everybody_makes_has_no_reference() -> None:
    verdict = judge([Raised("compile", "Error", "bad"), Raised("compile", "Error", "bad")])
    assert isinstance(verdict, Violated)
    assert verdict.evidence.reference is None


def test_one_opinion_is_none() -> None:
    assert judge([GOOD, Unsupported("compile", "no")]) == Inconclusive("unsupported")


def test_what_is_not_finite_proves_nothing() -> None:
    infinite = values([1.0, 2.0, np.inf])
    assert judge([infinite, BAD], [infinite, BAD, infinite]) == Inconclusive("reference not finite")


def wide_case(value: int) -> Case:
    kind = TensorType("int64", (1,))
    graph = Graph("g", (ValueInfo("x", kind),), (ValueInfo("y", kind),), (Node("Neg", ("x",), ("y",)),))
    program = to_program(Model(graph, {"": 18}), ["y"])
    return Case(program, ((Tensor("int64", np.array([value], np.int64)),),))


@pytest.mark.parametrize(("value", "says"), [(7, Violated), (2**40, Inconclusive)])
def test_a_type_that_is_narrower_by_design_excuses_what_does_not_fit(value: int, says: type) -> None:
    oracle = Differential((A, B), (C,), narrowed={"int64": "int32"})
    item = wide_case(value)
    right, wrong = (Values(((Tensor("int64", np.array([n], np.int64)),),)) for n in (-value, 0))
    runs = [
        Run(item, target, build, "judge" if build.level == "off" else "fuzz")
        for build in (Build(), Build("off"))
        for target in (A, B)
    ] + [Run(item, C, Build("off"))]
    assert isinstance(oracle.judge(runs, [right, wrong, right, wrong, right]), says)
