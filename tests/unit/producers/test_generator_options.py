"""The options draw opsets and sizes of graphs as they say."""

import random
from collections import Counter

import pytest

from miscompile.base.errors import SpecError
from miscompile.base.specs import parse_options, print_spec
from miscompile.producers.options import OPSETS, GeneratorOptions


def test_every_opset_is_drawn_and_those_in_use_more_often() -> None:
    rng = random.Random(0)
    drawn = Counter(GeneratorOptions().draw_opset(rng) for _ in range(6000))
    assert set(drawn) == set(OPSETS) == set(range(13, 29))
    usual = sum(drawn[opset] for opset in range(17, 22)) / 5
    rare = sum(count for opset, count in drawn.items() if not 17 <= opset <= 21) / 11
    assert 2.5 < usual / rare < 3.5


def test_only_the_opsets_asked_for_are_drawn() -> None:
    rng = random.Random(0)
    assert {GeneratorOptions(opsets=(13, 20)).draw_opset(rng) for _ in range(50)} == {13, 20}
    assert {GeneratorOptions().draw_opset(rng, (14, 23)) for _ in range(50)} == {14, 23}


def test_most_graphs_have_the_size_asked_for_some_are_tiny_and_some_large() -> None:
    rng, options = random.Random(0), GeneratorOptions(nodes=10, spread=0.4)
    drawn = [options.draw_nodes(rng) for _ in range(2000)]
    assert 0.5 < drawn.count(10) / 2000 < 0.75
    tiny, large = [n for n in drawn if n < 10], [n for n in drawn if n > 10]
    assert set(tiny) == {1, 2, 3}
    assert max(drawn) <= 200 < 2 * max(drawn)
    assert len(large) > 200
    assert sum(n < 50 for n in large) > len(large) / 3


def test_without_a_spread_every_graph_has_the_size_asked_for() -> None:
    rng = random.Random(0)
    assert {GeneratorOptions(nodes=7, spread=0.0).draw_nodes(rng) for _ in range(20)} == {7}
    assert max(GeneratorOptions(nodes=500, spread=1.0).draw_nodes(rng) for _ in range(50)) == 500


@pytest.mark.parametrize("wrong", [{"spread": 1.5}, {"quantised": -0.1}, {"containers": 2.0}])
def test_shares_lie_between_zero_and_one(wrong: dict[str, float]) -> None:
    with pytest.raises(SpecError, match="from 0 to 1"):
        GeneratorOptions(**wrong)  # type: ignore[arg-type]


def test_new_options_print_and_parse() -> None:
    options = GeneratorOptions(spread=0.5, quantised=0.3, containers=0.0)
    text = print_spec("strict", options)
    parts = dict(part.split("=") for part in text[len("strict{") : -1].split(", "))
    assert parse_options(GeneratorOptions, parts, text) == options
