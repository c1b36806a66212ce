import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from virtual_compiler import (
    FLOAT,
    PASSES,
    VirtualCompiler,
    case_of,
    crash_if,
    on,
    pair,
    wrong_if_fused,
)

from miscompile.core.case import Case
from miscompile.core.examination import MOST_ROUNDS, examine
from miscompile.core.outcome import Outcome, Raised, Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import tensor
from miscompile.core.verdict import Holds, Inconclusive, Needs, Verdict, Violated
from miscompile.execution.runners import CachingRunner
from miscompile.graph.model import Graph, Model, Node, ValueInfo
from miscompile.oracles.pair import BuildPair
from miscompile.triage.bisect import Twins, culprits, expand, minimise, only, shortest
from miscompile.triage.signature import blamed

NODES = (Node("MatMul", ("x", "w"), ("m",)), Node("Add", ("m", "b"), ("a",)))


def fusion() -> Case:
    constants = {"w": tensor(np.ones((4, 4), np.float32)), "b": tensor(np.ones((3, 4), np.float32))}
    graph = Graph("g", (ValueInfo("x", FLOAT),), (ValueInfo("a", FLOAT),), NODES, constants)
    return case_of(Model(graph, {"": 18}), {"x": np.ones((3, 4), np.float32)})


def find(
    compiler: VirtualCompiler, passes: Sequence[str] = PASSES, twins: Twins = (), held: BuildPair | None = None
) -> tuple[str, ...]:
    return culprits(fusion(), held or pair(), compiler, passes, twins, random.Random(0))


@pytest.mark.parametrize("guilty", PASSES[::13])
def test_one_pass_of_eighty_costs_few_runs(guilty: str) -> None:
    compiler = VirtualCompiler([wrong_if_fused("MatMul", "Add", guilty)])
    assert find(compiler) == (guilty,)
    assert len(compiler.runs) <= 20


def test_the_passes_that_fired_are_tried_first() -> None:
    compiler = VirtualCompiler([wrong_if_fused("MatMul", "Add", "Pass55")], fired=("Pass03", "Pass55"))
    assert find(compiler) == ("Pass55",)
    assert len(compiler.runs) <= 7
    misled = VirtualCompiler([wrong_if_fused("MatMul", "Add", "Pass55")], fired=("Pass03",))
    assert find(misled) == ("Pass55",)


@pytest.mark.parametrize("guilty", [("Pass00", "Pass79"), ("Pass10", "Pass11"), ("Pass20", "Pass41", "Pass62")])
def test_passes_that_must_be_on_together(guilty: tuple[str, ...]) -> None:
    compiler = VirtualCompiler([wrong_if_fused("MatMul", "Add", *guilty)])
    assert find(compiler) == guilty
    assert len(compiler.runs) <= 40 * len(guilty)


def test_twins_are_switched_together_and_called_by_the_first() -> None:
    def either(model: Model, build: Build) -> Raised | None:
        return Raised("compile", "Fail", "bad") if on(build, "Pass30") or on(build, "Pass60") else None

    twins = (("Pass30", "Pass60"),)
    compiler = VirtualCompiler([either])
    assert find(compiler, twins=twins) == ("Pass30",)
    assert expand(("Pass30",), twins) == {"Pass30", "Pass60"}
    held = only(pair(), ("Pass30",), PASSES, twins)
    assert held.faulty.disabled == set(PASSES) - {"Pass30", "Pass60"}


def test_no_culprit_when_both_builds_are_bad_or_the_bug_needs_no_pass() -> None:
    both = VirtualCompiler([lambda model, build: Raised("run", "Fail", "bad")])
    assert find(both) == ()
    always = VirtualCompiler([lambda model, build: Raised("run", "Fail", "bad") if build.level == "full" else None])
    assert find(always) == ()
    assert len(always.runs) == 3
    assert find(VirtualCompiler([])) == ()
    assert find(always, passes=()) == ()


def test_another_violation_does_not_count() -> None:
    """With few passes on the compiler crashes instead; the search keeps to the wrong result."""

    def crash_without(model: Model, build: Build) -> Raised | None:
        return Raised("compile", "Fail", "needs it") if build.level == "full" and "Pass05" in build.disabled else None

    compiler = VirtualCompiler([crash_without, wrong_if_fused("MatMul", "Add", "Pass40")])
    assert find(compiler) == ("Pass05", "Pass40")


def test_passes_that_are_off_anyway_stay_off() -> None:
    compiler = VirtualCompiler([wrong_if_fused("MatMul", "Add", "Pass12")])
    assert find(compiler, held=pair(frozenset({"Pass70", "Pass71"}))) == ("Pass12",)
    full = [run.build for run in compiler.runs if run.build.level == "full"]
    assert all({"Pass70", "Pass71"} <= build.disabled for build in full)


def test_deaths_are_bisected_by_signal() -> None:
    compiler = VirtualCompiler([crash_if("MatMul", 11, "", "Pass33")])
    assert find(compiler) == ("Pass33",)


@given(st.sets(st.integers(0, 30), max_size=5), st.integers(31, 40))
def test_delta_debugging_is_exact_for_monotone_predicates(needed: set[int], count: int) -> None:
    names = [str(number) for number in range(count)]
    wanted = {str(number) for number in needed}
    found = minimise(names, lambda chosen: wanted <= set(chosen))
    assert set(found) == wanted if wanted else len(found) == 1


@given(st.lists(st.sets(st.sampled_from("abcdefgh"), min_size=1), min_size=1, max_size=4))
def test_delta_debugging_is_one_minimal_for_any_predicate(causes: list[set[str]]) -> None:
    def shows(chosen: Sequence[str]) -> bool:
        return any(set(chosen) >= cause for cause in causes) and len(chosen) != 3

    names = list("abcdefgh")
    found = minimise(names, shows)
    assert shows(found)
    assert len(found) == 1 or not any(shows([n for n in found if n != name]) for name in found)


class Asking:
    """An oracle that asks `rounds` times before it is content."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds

    def plan(self, case: Case, rng: random.Random) -> tuple[Run, ...]:
        return (Run(case, "toy", Build("off")),)

    def judge(self, runs: Sequence[Run], outcomes: Sequence[Outcome]) -> Verdict:
        assert len(runs) == len(outcomes)
        return Holds() if len(runs) > self.rounds else Needs((Run(runs[0].case, "toy", Build("full")),))


def test_rounds_are_honoured_and_bounded() -> None:
    compiler = VirtualCompiler([])
    seen = examine(fusion(), Asking(MOST_ROUNDS), compiler, random.Random(0))
    assert (seen.verdict, seen.rounds) == (Holds(), MOST_ROUNDS)
    assert len(compiler.runs) == 1 + MOST_ROUNDS
    assert isinstance(examine(fusion(), Asking(MOST_ROUNDS + 1), compiler, random.Random(0)).verdict, Inconclusive)


def test_an_examination_finds_the_outcomes_of_its_evidence() -> None:
    compiler = VirtualCompiler([wrong_if_fused("MatMul", "Add")])
    seen = examine(fusion(), pair(), compiler, random.Random(0))
    assert isinstance(seen.verdict, Violated)
    assert isinstance(seen.faulty, Values)
    assert isinstance(seen.reference, Values)
    assert seen.faulty is not seen.reference
    assert seen.outcome_of(None) is None


def test_a_caching_runner_runs_nothing_twice() -> None:
    compiler = VirtualCompiler([])
    runner = CachingRunner(compiler)
    first, second = pair().plan(fusion(), random.Random(0))
    outcomes = runner.run([first, second, first])
    assert outcomes[0] is outcomes[2]
    assert runner.run([second])[0] is outcomes[1]
    assert len(compiler.runs) == 2


def after(*order: str) -> Callable[[Model, Build], Raised | None]:
    """A bug that strikes when these passes run in this order, with others between them or not."""

    def bug(model: Model, build: Build) -> Raised | None:
        rest = iter(build.sequence)
        return Raised("compile", "Fail", "bad") if all(name in rest for name in order) else None

    return bug


def ordered(*sequence: str) -> BuildPair:
    return replace(pair(), faulty=Build("full", sequence=sequence))


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_the_shortest_sequence_is_exact(order: list[str], rng: random.Random) -> None:
    """Passes that come twice are told apart by their places."""
    noise = [rng.choice("abcxyz") for _ in range(8)]
    places = sorted(rng.sample(range(len(noise) + 1), 1) * len(order))
    whole = [*noise[: places[0]], *order, *noise[places[0] :]]
    found = shortest(fusion(), ordered(*whole), VirtualCompiler([after(*order)]), random.Random(0))
    assert found.faulty.sequence == tuple(order)


def test_a_sequence_that_is_not_to_blame_goes() -> None:
    compiler = VirtualCompiler([wrong_if_fused("MatMul", "Add", "Pass12")])
    assert shortest(fusion(), ordered("a", "b"), compiler, random.Random(0)).faulty == Build("full")


def test_a_pair_without_sequence_or_violation_costs_little() -> None:
    compiler = VirtualCompiler([])
    assert shortest(fusion(), pair(), compiler, random.Random(0)) == pair()
    assert compiler.runs == []
    assert shortest(fusion(), ordered("a", "b"), compiler, random.Random(0)) == ordered("a", "b")
    assert len(compiler.runs) == 2


def test_the_healed_build_keeps_the_sequence_of_the_faulty_one() -> None:
    held = ordered("a", "b").healed_without(frozenset({"Pass01"})).with_faulty(Build("full", sequence=("b",)))
    assert held.healed == Build("full", frozenset({"Pass01"}), sequence=("b",))
    assert pair().with_faulty(Build("full", sequence=("b",))).healed is None


def test_the_order_of_passes_is_to_blame_beside_the_passes() -> None:
    assert blamed(("B", "A"), Build("full")) == ("A", "B")
    assert blamed(("B",), Build("full", sequence=("C", "B"))) == ("B", "C > B")
    assert blamed((), Build("full", sequence=("C",))) == ("C",)
    assert blamed(("C",), Build("full", sequence=("C",))) == ("C",)
