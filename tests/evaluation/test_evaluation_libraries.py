"""Libraries from pairs: the same pairs cut in each way, and fragments that are for no pass."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from played_pools import PlayedPool, with_passes

from evaluation.oatest.libraries import build
from evaluation.oatest.sources import batches, entire, pairs_in, plain_graphs, whole_of
from miscompile.base.errors import UsageError
from miscompile.base.rng import stream
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.harvest.patterns.pieces import inferred
from miscompile.ops.seed import Seed
from miscompile.ops.support import Support

FLOATS = TensorType("float32", (2, 3))


def seed(name: str, *nodes: tuple[str, str, str]) -> Seed:
    """Return a program of operators, each given as operator, operands and result; results that nothing reads leave."""
    made = [Node(op, tuple(read.split()), (result,)) for op, read, result in nodes]
    results = [node.outputs[0] for node in made]
    read = {one for node in made for one in node.inputs}
    graph = Graph(
        "g",
        tuple(ValueInfo(one, FLOATS) for one in sorted(read - set(results))),
        tuple(ValueInfo(one, FLOATS) for one in results if one not in read),
        tuple(made),
        types=dict.fromkeys(results, FLOATS),
    )
    return Seed(name, graph, 17)


PROGRAM = seed(
    "two units", ("Exp", "x", "a"), ("Relu", "a", "b"), ("Neg", "b", "c"), ("Abs", "y", "d"), ("Tanh", "d", "e")
)


def fires(operators: list[str]) -> list[str]:
    """Play two passes: one looks for Relu and Neg, one for an operator that changes a sign."""
    return (["Chain"] if {"Relu", "Neg"} <= set(operators) else []) + (["Sign"] if "Neg" in operators else [])


def test_the_same_pairs_are_cut_in_each_way() -> None:
    told: list[tuple[int, int]] = []
    found = build([PROGRAM], "toy", PlayedPool(with_passes(fires)), 2, 0, lambda *what: told.append(what))
    assert [cut.called for cut in found.pairs] == ["Chain", "Sign"]
    assert told == [(1, 2)]
    assert [cut.whole for cut in found.pairs] == [PROGRAM, PROGRAM]
    assert [list(cut.unit.operators) for cut in found.pairs] == [["Exp", "Relu", "Neg"]] * 2
    assert [list(cut.block.operators) for cut in found.pairs] == [["Relu", "Neg"], ["Neg"]]
    for library in (found.own, found.blocks, found.subgraphs, found.wholes):
        assert [pattern.triggers_on("toy") for pattern in library] == [{"Chain"}, {"Sign"}]
        assert all(pattern.seed is not None and pattern.motif is not None for pattern in library)
    assert found.own == found.own
    assert {pattern.granularity for pattern in found.own} == {"block"}
    assert [pattern.operators for pattern in found.own] == [pattern.operators for pattern in found.blocks]
    assert found.tests == (PROGRAM,)
    data = found.as_json()
    assert (data["pairs"], data["programs"]) == (2, 1)
    assert data["operators"] == {"block": 1.5, "subgraph": 3.0, "whole": 5.0}


def test_a_pass_that_needs_the_whole_unit_gives_a_subgraph() -> None:
    """In a larger program the pass does not fire, so that the pattern is no block."""

    def alone(operators: list[str]) -> list[str]:
        return ["Alone"] if operators in (["Relu", "Neg"], [node.op for node in pair.graph.nodes]) else []

    pair = seed("pair", ("Relu", "x", "a"), ("Neg", "a", "b"), ("Abs", "y", "c"))
    found = build([pair], "toy", PlayedPool(with_passes(alone)), 1, 0)
    assert [cut.label for cut in found.pairs] == ["subgraph"]
    assert found.own[0].operators == found.subgraphs[0].operators == ("Relu", "Neg")


def test_pairs_that_are_alike_and_more_than_asked_for_are_left_out() -> None:
    twice = build([PROGRAM, PROGRAM], "toy", PlayedPool(with_passes(fires)), 2, 0)
    assert len(twice.pairs) == 2
    assert twice.left["pairs like another one"] == 2
    one = build([PROGRAM, PROGRAM], "toy", PlayedPool(with_passes(fires)), 1, 0)
    assert len(one.pairs) == 2
    assert "pairs like another one" not in one.left


def test_random_fragments_are_as_many_and_as_large_and_for_no_pass() -> None:
    found = build([PROGRAM], "toy", PlayedPool(with_passes(fires)), 2, 0)
    graphs = plain_graphs(Support(open=True), (17,), 3)
    fragments = found.at_random(graphs, stream(0, "fragments"))
    assert len(fragments) == len(found.own)
    for fragment, own in zip(fragments, found.own, strict=True):
        assert not fragment.triggers
        assert 1 <= len(fragment.operators) <= len(own.operators)
    again = found.at_random(plain_graphs(Support(open=True), (17,), 3), stream(0, "fragments"))
    assert [one.operators for one in again] == [one.operators for one in fragments]


def test_plain_graphs_have_neither_motifs_nor_an_end() -> None:
    graphs = list(islice(plain_graphs(Support(open=True), (17,), 1), 3))
    assert len({graph.name for graph in graphs}) == 3
    assert all(len(graph.graph.nodes) > 5 for graph in graphs)


def test_a_model_that_can_be_cut_comes_whole() -> None:
    model = Model(PROGRAM.graph, {"": 17})
    whole = inferred(model, "model")
    assert whole is not None
    found = entire(whole)
    assert found is not None
    assert found.operators == PROGRAM.operators
    assert entire(whole_of(found)) is not None
    foreign = seed("foreign", ("Exp", "x", "a"), ("Bernoulli", "a", "b"))
    assert entire(whole_of(foreign)) is None


def test_pairs_are_found_below_a_folder(tmp_path: Path) -> None:
    below = tmp_path / "0001-test"
    below.mkdir()
    line = '{"model": "m.onnx", "pass": "GeluFusion", "changed": null, "test": "test_gelu"}\n'
    (below / "pairs.jsonl").write_text(line)
    for path in (tmp_path, below / "pairs.jsonl"):
        (pair,) = pairs_in(path)
        assert (pair.model, pair.test) == (below / "m.onnx", "test_gelu")
    (below / "pairs.jsonl").write_text("")
    with pytest.raises(UsageError, match="no pairs"):
        pairs_in(tmp_path)


def test_batches_hold_everything_in_order() -> None:
    def numbers() -> Iterator[int]:
        yield from range(7)

    assert list(batches(numbers(), 3)) == [[0, 1, 2], [3, 4, 5], [6]]
