"""Judging builds that compute derivatives: which builds are compared, what their outputs are called, and noise."""

import random

import pytest
from oracle_cases import case, full, values

from miscompile.base.specs import parse_spec
from miscompile.core.case import Case
from miscompile.core.outcome import Raised, Unsupported, Values
from miscompile.core.run import Build, Run
from miscompile.core.verdict import Evidence, Holds, Inconclusive, Needs, Verdict, Violated
from miscompile.engine.checks import families
from miscompile.oracles.judge import is_noise, judge_pair
from miscompile.oracles.montecarlo import ROUNDS
from miscompile.oracles.optimisation import Optimisation
from miscompile.oracles.pair import pair_of
from miscompile.targets.derivatives import REWRITINGS, of_the_program, rewritten_by
from miscompile.targets.registry import parse_target

SPEC = parse_spec("derivative{mode=reverse, seed=3}")


def runs(item: Case | None = None) -> list[Run]:
    known = item or case()
    return [Run(known, "xla", Build(level, transform=SPEC)) for level in ("off", "full")]


def test_all_builds_of_a_test_compute_the_same_derivative() -> None:
    oracle = Optimisation("xla", lesser_chance=1.0, families=families(("gradients",), parse_target("xla").about))
    for seed in range(20):
        planned = oracle.plan(case(), random.Random(seed))
        assert [run.build.level for run in planned][:2] == ["off", "full"]
        (transform,) = {run.build.transform for run in planned[:2]}
        assert transform is not None
        assert transform.name == "derivative"
        assert rewritten_by(transform) is None
        for further in planned[2:]:
            assert further.build.level == "full"
            assert rewritten_by(further.build.transform) is not None
            assert of_the_program(further.build.transform) == transform


def test_half_of_the_tests_have_an_equivalent_program_as_well() -> None:
    oracle = Optimisation("xla", lesser_chance=1.0, families=families(("gradients",), parse_target("xla").about))
    planned = [oracle.plan(case(), random.Random(seed)) for seed in range(400)]
    assert 140 < sum(len(runs) == 3 for runs in planned) < 260
    named = {str(rewritten_by(runs[2].build.transform)).partition("{")[0] for runs in planned if len(runs) == 3}
    assert named == set(REWRITINGS)


def test_the_noise_of_an_equivalent_program_is_that_of_the_program() -> None:
    plain, _ = runs()
    other = Run(plain.case, "xla", Build("full", transform=SPEC.with_options(rewriting="order")))
    asked = judge_pair([plain, other], [values([1, 1, 1], [1, 2, 3]), values([1, 1, 1], [1, 2, 4])], "strict")
    assert isinstance(asked, Needs)
    (noise,) = asked.runs
    assert noise.build == Build("off", transform=SPEC.with_options(noise="yes"))


def test_other_shapes_of_a_gradient_are_a_violation_that_names_it() -> None:
    verdict = judge_pair(runs(), [values([1, 1, 1], [1, 2, 3]), values([1, 1, 1], [1, 2])], "strict")
    assert isinstance(verdict, Violated)
    assert verdict.evidence.output == "gradient of x"
    assert verdict.evidence.details["output"] == 1


def test_a_gradient_of_another_type_than_its_input_is_a_violation() -> None:
    wide = full([1, 2, 3], "float64")
    verdict = judge_pair(runs(), [values([1, 1, 1], wide), values([1, 1, 1], wide)], "strict")
    assert isinstance(verdict, Violated)
    assert "gradient of x" in verdict.evidence.message


def test_the_adapter_computes_the_derivative_with_noise() -> None:
    asked = judge_pair(runs(), [values([1, 1, 1], [1, 2, 3]), values([1, 1, 1], [1, 2, 4])], "strict")
    assert isinstance(asked, Needs)
    (noise,) = asked.runs
    assert is_noise(noise)
    assert noise.build == Build("off", transform=SPEC.with_options(noise="yes"))
    assert [port.name for port in noise.case.program.inputs] == ["x", "miscompile_noise"]
    assert noise.case.program.payload == case().program.payload


@pytest.mark.parametrize(("moved", "holds"), [(1.0, True), (1e-7, False)])
def test_a_difference_counts_where_noise_explains_less(moved: float, holds: bool) -> None:
    pair = runs()
    outcomes = [values([1, 1, 1], [1, 2, 3]), values([1, 1, 1], [1, 2, 4])]
    asked = judge_pair(pair, outcomes, "strict")
    assert isinstance(asked, Needs)
    rows = [values([1, 1, 1], [1, 2, 3]).results[0]]
    rows += [values([1, 1, 1], [1, 2, 3 + moved * (-1) ** turn]).results[0] for turn in range(ROUNDS)]
    verdict = judge_pair([*pair, *asked.runs], [*outcomes, Values(tuple(rows))], "strict")
    assert isinstance(verdict, Holds if holds else Violated)


@pytest.mark.parametrize(("of", "kind"), [("wrap", Inconclusive), ("", Violated)])
def test_what_an_equivalent_program_needs_may_be_refused(of: str, kind: type[Verdict]) -> None:
    plain, faulty = runs()
    other = Run(plain.case, "xla", Build("full", transform=SPEC.with_options(rewriting=of))) if of else faulty
    refused = Unsupported("compile", "operator NonZero has no lowering")
    assert isinstance(judge_pair([plain, other], [values([1, 1, 1], [1, 2, 3]), refused], "strict"), kind)


def test_an_error_of_both_builds_is_held_against_the_same_derivative() -> None:
    evidence = Evidence("exception", "status", "", runs()[1], None)
    pair = pair_of(evidence, "strict")
    assert (pair.reference, pair.faulty) == (Build("off", transform=SPEC), Build("full", transform=SPEC))
    plain = pair_of(Evidence("exception", "status", "", runs()[0], None), "strict")
    assert plain.faulty == Build("full", transform=SPEC)


def test_an_error_without_optimisation_is_judged() -> None:
    verdict = judge_pair(runs(), [Raised("compile", "TypeError", "no"), values([1, 1, 1], [1, 2, 3])], "strict")
    assert isinstance(verdict, Violated)
