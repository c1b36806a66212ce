"""The optimisation oracle, the crash oracle and the build pair: what they plan, and what they make of many runs."""

import itertools
import random

import pytest
from oracle_cases import FULL, OFF, case, values

from miscompile.base.specs import Spec, parse_spec
from miscompile.core.outcome import Crashed, Outcome, Raised, Unsupported, Values
from miscompile.core.run import Build, Run
from miscompile.core.verdict import Holds, Inconclusive, Needs, Verdict, Violated
from miscompile.oracles.judge import is_noise
from miscompile.oracles.montecarlo import ROUNDS
from miscompile.oracles.optimisation import LEVEL_SHARE, LONGEST, Optimisation
from miscompile.oracles.pair import BuildPair

PASSES = ("A", "B", "C", "D")
GOOD, BAD, NEAR = values([1.0, 2.0, 3.0]), values([1.0, 2.0, 9.0]), values([1.0, 2.0, 3.5])
WIDE = Values(((GOOD.results[0]), *([NEAR.results[0], GOOD.results[0]] * (ROUNDS // 2))))
"""A noise run whose spread covers the difference between GOOD and NEAR, and nothing more."""


def test_off_is_held_against_full() -> None:
    runs = Optimisation("toy", PASSES, lesser_chance=0.0).plan(case(), random.Random(0))
    assert [run.build for run in runs] == [OFF, FULL]
    assert {run.target for run in runs} == {"toy"}
    assert all(run.purpose == "fuzz" for run in runs)


def test_subset_runs_come_as_often_as_asked_and_switch_off_about_half() -> None:
    oracle = Optimisation("toy", PASSES, lesser_chance=0.25)
    rng = random.Random(0)
    plans = [oracle.plan(case(), rng) for _ in range(2000)]
    subsets = [plan[2].build for plan in plans if len(plan) == 3]
    assert 400 < len(subsets) < 600
    assert {build.level for build in subsets} == {"full"}
    switched = sum(len(build.disabled) for build in subsets) / len(subsets)
    assert 1.8 < switched < 2.2
    assert all(build.disabled <= set(PASSES) for build in subsets)


def test_without_passes_there_are_no_subsets() -> None:
    oracle = Optimisation("toy", (), lesser_chance=1.0)
    assert len(oracle.plan(case(), random.Random(0))) == 2


def test_quarantined_passes_stay_off_in_every_optimised_build() -> None:
    oracle = Optimisation("toy", PASSES, lesser_chance=1.0, disabled=frozenset("A"))
    for seed in range(20):
        off, full, subset = oracle.plan(case(), random.Random(seed))
        assert off.build == OFF
        assert full.build.disabled == {"A"}
        assert "A" in subset.build.disabled


def test_a_plan_depends_on_the_stream_alone() -> None:
    oracle = Optimisation("toy", PASSES, lesser_chance=0.5)
    item = case()
    for seed in range(20):
        assert oracle.plan(item, random.Random(seed)) == oracle.plan(item, random.Random(seed))


@pytest.mark.parametrize(
    ("outcomes", "level", "disabled"),
    [
        ((GOOD, Crashed("run", 11), GOOD), "full", frozenset()),
        ((GOOD, GOOD, Crashed("run", 11)), "full", frozenset("B")),
        ((Raised("run", "E", "m"), GOOD, GOOD), "off", frozenset()),
    ],
)
def test_the_first_violation_decides(outcomes: tuple[Outcome, ...], level: str, disabled: frozenset[str]) -> None:
    runs = three_runs()
    verdict = Optimisation("toy", PASSES).judge(runs, outcomes)
    assert isinstance(verdict, Violated)
    assert (verdict.evidence.faulty.build.level, verdict.evidence.faulty.build.disabled) == (level, disabled)


def three_runs() -> tuple[Run, ...]:
    return tuple(Run(case(), "toy", build) for build in (OFF, FULL, Build("full", frozenset("B"))))


def test_all_builds_share_one_noise_round() -> None:
    oracle, runs = Optimisation("toy", PASSES), three_runs()
    first = oracle.judge(runs, (GOOD, NEAR, NEAR))
    assert isinstance(first, Needs)
    assert len(first.runs) == 1
    assert is_noise(first.runs[0])
    more = (*runs, *first.runs)
    assert oracle.judge(more, (GOOD, NEAR, NEAR, WIDE)) == Holds("within rounding")
    verdict = oracle.judge(more, (GOOD, NEAR, BAD, WIDE))
    assert isinstance(verdict, Violated)
    assert verdict.evidence.faulty.build.disabled == {"B"}
    assert verdict.evidence.rule == "monte-carlo"


def test_a_later_build_may_be_the_first_to_need_noise() -> None:
    oracle, runs = Optimisation("toy", PASSES), three_runs()
    verdict = oracle.judge(runs, (GOOD, GOOD, BAD))
    assert isinstance(verdict, Needs)
    assert isinstance(oracle.judge((*runs, *verdict.runs), (GOOD, GOOD, BAD, WIDE)), Violated)


def test_a_note_of_one_build_is_kept_when_the_next_one_agrees() -> None:
    oracle, runs = Optimisation("toy", PASSES), three_runs()
    needs = oracle.judge(runs, (GOOD, NEAR, GOOD))
    assert isinstance(needs, Needs)
    assert oracle.judge((*runs, *needs.runs), (GOOD, NEAR, GOOD, WIDE)) == Holds("within rounding")


def test_what_the_reference_refuses_says_nothing() -> None:
    refused = Unsupported("compile", "no kernel")
    assert Optimisation("toy").judge(three_runs(), (refused, GOOD, GOOD)) == Inconclusive("unsupported")


def word(verdict: Verdict) -> str:
    return verdict.evidence.kind if isinstance(verdict, Violated) else type(verdict).__name__


def test_a_pair_plans_both_builds_and_keeps_its_purpose() -> None:
    pair = BuildPair("toy", OFF, FULL, purpose="reduce")
    runs = pair.plan(case(), random.Random(0))
    assert [(run.build, run.purpose) for run in runs] == [(OFF, "reduce"), (FULL, "reduce")]
    assert pair.with_faulty(Build("full", frozenset("A"))).faulty.disabled == {"A"}
    healed = pair.healed_without(frozenset("B")).with_faulty(Build("full", frozenset("A"))).healed
    assert healed == Build("full", frozenset("AB"))


def test_a_pair_with_a_healed_build_blames_only_the_passes_that_are_off_there() -> None:
    pair = BuildPair("toy", OFF, FULL).healed_without(frozenset("A"))
    runs = pair.plan(case(), random.Random(0))
    assert [run.build.disabled for run in runs] == [frozenset(), frozenset(), {"A"}]
    crash = Crashed("run", 11)
    assert isinstance(pair.judge(runs, (GOOD, crash, GOOD)), Violated)
    assert isinstance(pair.judge(runs, (GOOD, crash, crash)), Holds)
    assert isinstance(pair.judge(runs, (GOOD, crash, BAD)), Needs)
    assert isinstance(pair.judge(runs, (GOOD, GOOD, crash)), Holds)


def test_the_healed_build_shares_the_noise_round() -> None:
    pair = BuildPair("toy", OFF, FULL).healed_without(frozenset("A"))
    runs = pair.plan(case(), random.Random(0))
    needs = pair.judge(runs, (GOOD, BAD, NEAR))
    assert isinstance(needs, Needs)
    more = (*runs, *needs.runs)
    assert isinstance(pair.judge(more, (GOOD, BAD, NEAR, WIDE)), Violated)
    assert isinstance(pair.judge(more, (GOOD, BAD, BAD, WIDE)), Holds)


NAMES = ("C", "D", "E")


def further(oracle: Optimisation, tries: int = 600) -> list[Build]:
    rng = random.Random(0)
    return [oracle.plan(case(), rng)[2].build for _ in range(tries)]


def test_sequences_are_random_in_order_and_length_and_repeat_passes() -> None:
    oracle = Optimisation("toy", PASSES, ("mid",), lesser_chance=1.0, sequences=NAMES, sequence_share=0.5)
    drawn = [build for build in further(oracle) if build.sequence]
    assert 250 < len(drawn) < 350
    assert {len(build.sequence) for build in drawn} == set(range(1, LONGEST + 1))
    assert {build.sequence[0] for build in drawn} == set(NAMES)
    assert any(len(set(build.sequence)) < len(build.sequence) for build in drawn)
    pairs = {pair for build in drawn for pair in itertools.pairwise(build.sequence)}
    assert pairs == set(itertools.product(NAMES, NAMES))
    assert {build.level for build in drawn} == {"full", "mid"}
    assert all(not build.transform for build in drawn)


RELAX = ((Spec("relax"),),)


def test_transforms_get_a_seed_and_keep_their_options() -> None:
    family = ((Spec("relax"),), (parse_spec("functions{depth=3, seed=1}"),))
    oracle = Optimisation(
        "toy", PASSES, lesser_chance=1.0, families=(family,), transform_share=0.5, disabled=frozenset("A")
    )
    drawn = [build for build in further(oracle) if build.transform]
    assert 250 < len(drawn) < 350
    specs = [build.transform for build in drawn if build.transform]
    assert {spec.name for spec in specs} == {"relax", "functions"}
    assert all(spec.get("depth") == "3" for spec in specs if spec.name == "functions")
    assert len({spec.get("seed") for spec in specs}) > 0.9 * len(specs)
    assert {(build.level, build.disabled) for build in drawn} == {("full", frozenset("A")), ("off", frozenset())}


def test_transforms_and_sequences_alone_suffice() -> None:
    assert all(build.sequence for build in further(Optimisation("toy", lesser_chance=1.0, sequences=NAMES), 50))
    assert all(build.transform for build in further(Optimisation("toy", lesser_chance=1.0, families=(RELAX,)), 50))
    both = further(Optimisation("toy", lesser_chance=1.0, families=(RELAX,), sequences=NAMES))
    assert {bool(build.transform) for build in both} == {True, False}
    assert all(bool(build.transform) != bool(build.sequence) for build in both)


def test_every_build_but_the_reference_is_for_the_device() -> None:
    oracle = Optimisation("toy", PASSES, ("mid",), lesser_chance=1.0, sequences=NAMES, families=(RELAX,), device="cuda")
    for seed in range(40):
        off, *others = oracle.plan(case(), random.Random(seed))
        assert off.build == OFF
        assert {run.build.device for run in others} == {"cuda"}


def test_without_forms_and_sequences_the_stream_gives_what_it_gave() -> None:
    """Findings of earlier campaigns can be drawn again from their seeds."""
    oracle = Optimisation("toy", PASSES, ("mid", "low"), lesser_chance=0.8)
    for seed in range(50):
        ours, old = random.Random(seed), random.Random(seed)
        plan = oracle.plan(case(), ours)
        assert (len(plan) == 3) == (old.random() < 0.8)
        if len(plan) == 3 and old.random() < LEVEL_SHARE:
            assert plan[2].build == Build(old.choice(("mid", "low")))
        elif len(plan) == 3:
            assert plan[2].build == Build("full", frozenset(name for name in PASSES if old.random() < 0.5))
        assert ours.getstate() == old.getstate()
