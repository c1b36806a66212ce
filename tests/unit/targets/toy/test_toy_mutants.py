"""Mutants are many, small, named, and no part of the sound optimiser."""

import random

import pytest
from toy_bench import case, compute, node
from toy_random import random_case

from miscompile.base.errors import SpecError
from miscompile.core.run import Build
from miscompile.targets.registry import parse_target
from miscompile.targets.toy.adapter import ToyAdapter
from miscompile.targets.toy.mutants import MUTATED, load, mutants


def test_there_are_hundreds_of_mutants_with_names_of_their_own() -> None:
    names = [one.name for one in mutants()]
    assert len(names) == len(set(names)) >= 300
    assert {one.module for one in mutants()} == set(MUTATED)
    assert len({one.operator for one in mutants()}) >= 10
    assert all(parse_target(f"toy{{optimiser={name}}}").options["optimiser"] == name for name in names[::50])


def test_a_mutant_differs_from_the_source_in_the_place_that_it_names() -> None:
    assert all(one.before != one.after and one.line > 0 for one in mutants())


def test_an_operator_that_a_table_names_twice_is_no_mutant() -> None:
    changes = {(one.function, one.operator, one.after) for one in mutants()}
    assert ("COMMUTATIVE", "other-name", "'Sub'") in changes
    assert ("COMMUTATIVE", "other-name", "'Add'") not in changes  # a Mul that is no longer ordered
    assert ("_ALLOCATING", "other-name", "'Min'") in changes  # there Max and Min are an exception


def test_a_mutant_miscompiles_and_the_sound_optimiser_stays_sound() -> None:
    dropped = next(one for one in mutants() if one.function == "negate_comparison" and "kind_of" in one.before
                   and "kind_of" not in one.after and one.operator == "drop-guard")  # fmt: skip
    item = case([node("Less", "x y", "a"), node("Not", "a", "b")], {"x": [float("nan")], "y": [1.0]}, "b")
    for name, wanted in (("reference", True), (dropped.name, False), ("reference", True)):
        (found,) = ToyAdapter(optimiser=name).build(item.program, Build("full")).run(item.feeds[0])
        assert found is not None
        assert bool(found.array[0]) is wanted
        (unoptimised,) = ToyAdapter(optimiser=name).build(item.program, Build("off")).run(item.feeds[0])
        assert unoptimised is not None
        assert bool(unoptimised.array[0]) is True


def test_the_modules_that_a_mutant_is_loaded_from_are_sound_apart_from_it() -> None:
    harmless = next(one for one in mutants() if one.module == "kernels.tiled")
    optimiser = load(harmless.name)
    assert optimiser.rewrite.__module__ == "miscompile.targets.toy.passes.pipeline"
    for seed in range(20):
        item = random_case(random.Random(seed))
        adapter = ToyAdapter(optimiser=harmless.name)
        found = adapter.build(item.program, Build("basic")).run(item.feeds[0])  # tiles are of the level full alone
        wanted = compute(item, Build("basic"))
        assert all(
            one is not None and two is not None and one.same(two) for one, two in zip(found, wanted, strict=True)
        )


def test_an_unknown_mutant() -> None:
    with pytest.raises(SpecError, match="no optimiser 'nonsense'"):
        ToyAdapter(optimiser="nonsense")
