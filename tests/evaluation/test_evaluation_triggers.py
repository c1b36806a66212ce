"""Trigger rates: what counts as triggered, and what is sampled."""

import random

from hypothesis import given
from hypothesis import strategies as st
from played_pools import PlayedPool, with_passes

from evaluation.measures import unwatched
from evaluation.oatest.triggers import sample_of, tallied, triggers
from miscompile.base.rng import stream
from miscompile.core.case import Case, Program
from miscompile.core.outcome import Crashed, Outcome
from miscompile.core.run import Run
from miscompile.ops.support import Support
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.strict import Strict

NAMES = st.frozensets(st.sampled_from("ABC"))


def test_one_of_the_intended_passes_is_enough_and_what_is_not_built_is_left_out() -> None:
    found = tallied([frozenset("AB"), frozenset("A"), frozenset("B")], [frozenset("BC"), frozenset("C"), None])
    assert (found.watched, found.built, found.triggered, found.nothing) == (3, 2, 1, 0)
    assert found.rate == 0.5
    assert found.passes == {"A": (2, 0), "B": (1, 1)}
    assert found.mean_of_passes == 0.5
    assert found.as_json()["passes"]["B"] == {"tried": 1, "woken": 1}


def test_chance_holds_each_program_to_the_passes_of_another() -> None:
    found = tallied([frozenset("A"), frozenset("B")], [frozenset("A"), frozenset("AB")])
    assert (found.triggered, found.chance) == (2, 1)
    assert (found.rate, found.by_chance) == (1.0, 0.5)


@given(st.lists(st.tuples(NAMES.filter(bool), st.none() | NAMES), min_size=1))
def test_rates_are_shares(pairs: list[tuple[frozenset[str], frozenset[str] | None]]) -> None:
    found = tallied([wanted for wanted, _ in pairs], [names for _, names in pairs])
    assert found.triggered + found.nothing <= found.built <= found.watched == len(pairs)
    assert 0 <= found.rate <= 1
    assert 0 <= found.by_chance <= 1
    assert 0 <= found.mean_of_passes <= 1


def case(number: int) -> Case:
    return Case(Program("onnx", b"", (), ()), (), {"number": number})


@given(st.integers(1, 20), st.integers(0, 60))
def test_a_sample_holds_different_cases_and_all_while_there_is_room(size: int, count: int) -> None:
    sample = sample_of(size, random.Random(3))
    for number in range(count):
        sample.offer(case(number))
    numbers = [one.recipe["number"] for one in sample.cases]
    assert len(set(numbers)) == len(numbers) == min(size, count)


def test_late_cases_are_as_likely_as_early_ones() -> None:
    late = 0
    for seed in range(400):
        sample = sample_of(5, random.Random(seed))
        for number in range(20):
            sample.offer(case(number))
        late += sum(one.recipe["number"] >= 10 for one in sample.cases)
    assert 0.45 < late / 2000 < 0.55


def test_only_cases_with_known_passes_are_built_and_deaths_are_not_counted() -> None:
    strict = Strict(GeneratorOptions(nodes=3, opsets=(17,)), Support(open=True))
    cases = [strict.propose(stream(5, number)) for number in range(6)]
    named: tuple[list[str], ...] = (["OperandOrdering"], [], ["OperandOrdering", "DeadCode"], ["DeadCode"])
    known = [Case(one.program, one.feeds, {"wakes": names}) for one, names in zip(cases, named, strict=False)]
    seen: list[Run] = []
    fires = with_passes(lambda _: ["DeadCode"])

    def play(run: Run) -> Outcome:
        seen.append(run)
        return Crashed("compile", 11) if run.case is known[3] else fires(run)

    found = triggers(known, "toy", PlayedPool(play), "passes", unwatched)
    assert found is not None
    assert [run.case for run in seen] == [known[0], known[2], known[3]]
    assert (found.watched, found.built, found.triggered) == (3, 2, 1)
    assert triggers(known[1:2], "toy", PlayedPool(play), "passes", unwatched) is None
