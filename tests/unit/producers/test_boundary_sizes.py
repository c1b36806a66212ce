"""Sizes around vector widths and tiles, large tensors, and the share of graphs that have them."""

import math
import random

import pytest

from miscompile.base.errors import SpecError
from miscompile.graph.read import read
from miscompile.ops.shapes import draw_count, draw_shape
from miscompile.ops.spec import OperatorLimits
from miscompile.ops.support import Support
from miscompile.oracles.optimisation import Optimisation
from miscompile.producers.options import BOUNDARIES, LARGE, GeneratorOptions
from miscompile.producers.strict import Strict

PLAIN = OperatorLimits(6, 8, 1024)


def test_boundaries_are_powers_of_two_and_their_neighbours() -> None:
    assert {15, 16, 17, 31, 33, 63, 65, 127, 129, 1} <= set(BOUNDARIES)


@pytest.mark.parametrize("blocks", [(), (24,)])
def test_a_share_of_the_graphs_has_sizes_at_boundaries(blocks: tuple[int, ...]) -> None:
    options, rng = GeneratorOptions(boundary=0.25, large=0.05, blocks=blocks), random.Random(0)
    drawn = [options.draw_limits(rng, PLAIN) for _ in range(4000)]
    assert 0.22 < sum(bool(one.boundaries) and not one.least_elements for one in drawn) / 4000 < 0.28
    assert 0.035 < sum(one.least_elements == LARGE for one in drawn) / 4000 < 0.065
    own = sum(one.boundaries == (23, 24, 25, 47, 48, 49) and not one.least_elements for one in drawn)
    assert (400 < own < 600) if blocks else own == 0
    sizes = [size for one in drawn if one.boundaries for size in draw_shape(rng, one, (2, 4))]
    assert len({size for size in sizes if size > 8}) > 5


def test_shapes_keep_to_the_limits_and_large_ones_reach_theirs() -> None:
    rng, edge = random.Random(1), OperatorLimits(6, 8, 4096, boundaries=BOUNDARIES)
    assert all(math.prod(draw_shape(rng, edge)) <= 4096 for _ in range(500))
    assert {len(draw_shape(rng, edge)) for _ in range(500)} == set(range(7))
    large = OperatorLimits(5, 8, LARGE + LARGE // 2, least_elements=LARGE)
    shapes = [draw_shape(rng, large, (1, 4)) for _ in range(200)]
    assert 80 < sum(math.prod(shape) > 0.9 * LARGE for shape in shapes) < 160
    assert all(draw_count(rng, edge, 3) >= 1 for _ in range(100))
    assert {draw_count(rng, PLAIN, 3) for _ in range(100)} == {1, 2, 3}


def test_graphs_with_large_tensors_say_so_and_have_them() -> None:
    producer = Strict(GeneratorOptions(boundary=0.0, large=1.0), Support(open=True))
    cases = [producer.propose(random.Random(seed)) for seed in range(30)]
    assert all(case.recipe["large"] for case in cases)
    fed = [value.array.size for case in cases for feed in case.feeds for value in feed]
    held = [value.array.size for case in cases for value in read(case.program.payload).graph.initializers.values()]
    assert sum(size > 0.9 * LARGE for size in (*fed, *held)) >= 10


def test_programs_with_large_tensors_mostly_run_in_several_threads() -> None:
    producer = Strict(GeneratorOptions(boundary=0.0, large=1.0), Support(open=True))
    usual = Strict(GeneratorOptions(large=0.0), Support(open=True))
    oracle = Optimisation("toy")

    def threaded(source: Strict, count: int) -> float:
        cases = [source.propose(random.Random(seed)) for seed in range(count)]
        return sum(oracle.plan(case, random.Random(0))[1].build.threads > 1 for case in cases) / count

    assert threaded(producer, 60) > 0.4
    assert 0 < threaded(usual, 300) < 0.1


def test_shares_are_probabilities() -> None:
    with pytest.raises(SpecError, match="from 0 to 1"):
        GeneratorOptions(boundary=1.5)
