"""Outlines of serialised programs decide about predicates as the whole programs do, as far as they know the types."""

import random
from dataclasses import replace

import pytest
from program_with_branches import BRANCHES

from miscompile.base.errors import ModelError
from miscompile.base.rng import stream
from miscompile.graph.emit import emit
from miscompile.graph.model import Model, Node, TensorType
from miscompile.graph.read import read
from miscompile.graph.text.parser import parse_model
from miscompile.ops.support import Support
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.strict import Strict
from miscompile.triage.outline import outlined
from miscompile.triage.predicate import (
    FLOATS,
    BugPredicate,
    DescribedGraph,
    NodePattern,
    ValuePattern,
    described,
    plain_attribute,
)

CLIP = BugPredicate(
    "toy", "wrong", "", "", (), "",
    (NodePattern("Neg", ("x",), ("n",), {}), NodePattern("Clip", ("n", "low"), ("c",), {})),
    {"low": ValuePattern("float32", 0, constant=True, elements=(2.0,))},
)  # fmt: skip

PROGRAM = """ir 10
opset 18

graph g(%p: float32[2,3]) -> (%r: float32[2,3]) {
  init %two: float32[] = [2.0]
  %n = Neg(%p)
  %c = Clip(%n, %two)
  %r = Relu(%c)
}
"""


def model(text: str = PROGRAM) -> Model:
    return parse_model(text)


def on(name: str, pattern: ValuePattern) -> BugPredicate:
    return replace(CLIP, values={**CLIP.values, name: pattern})


def test_constants_and_declared_types_decide() -> None:
    outline = outlined(emit(model()))
    assert CLIP.matches(outline, surely=True)
    assert not on("low", ValuePattern(elements=(3.0,))).matches(outline)
    assert not on("low", ValuePattern(FLOATS, 1)).matches(outline)
    assert on("x", ValuePattern("float32", shape=(2, -1), constant=False)).matches(outline, surely=True)
    assert not on("x", ValuePattern("float16")).matches(outline)
    assert not on("x", ValuePattern(constant=True)).matches(outline)


def test_types_of_inner_values_are_known_only_by_inference() -> None:
    outline = outlined(emit(model()))
    for wanted in (ValuePattern("float32", 2), ValuePattern("int8")):
        assert on("n", wanted).matches(outline)
        assert not on("n", wanted).matches(outline, surely=True)
    inferred = outlined(emit(model()), infer=True)
    assert on("n", ValuePattern("float32", 2)).matches(inferred, surely=True)
    assert not on("n", ValuePattern("int8")).matches(inferred)


def test_attributes_bodies_and_edges_decide() -> None:
    outline = outlined(emit(model(BRANCHES)))
    branch = replace(CLIP, nodes=(NodePattern("If", ("c",), ("r",), bodies=("Div", "Neg")),), values={})
    assert branch.matches(outline, surely=True)
    assert not replace(branch, nodes=(replace(branch.nodes[0], bodies=("Neg", "Neg")),)).matches(outline)
    inner = replace(CLIP, nodes=(NodePattern("Div", ("a", "p"), ("d",)), NodePattern("Mul", ("d", "p"), ("u",))))
    assert replace(inner, values={"a": ValuePattern(constant=True, elements=(1.0,))}).matches(outline, surely=True)
    assert not replace(inner, nodes=(*inner.nodes, NodePattern("Relu", ("u",), ("v",)))).matches(outline)


def test_other_bytes_are_one_clear_error() -> None:
    with pytest.raises(ModelError, match="no ONNX model"):
        outlined(b"\xff\xff")


def drawn(rng: random.Random, graph: DescribedGraph) -> BugPredicate:
    """A predicate of one or two nodes of a graph; conditions are as in the graph, but for one in ten."""
    place = rng.randrange(len(graph.nodes))
    nodes = [
        graph.nodes[place],
        *(node for node in graph.nodes[:place] if set(node.outputs) & {*graph.nodes[place].inputs}),
    ]
    chosen = nodes[: rng.randint(1, 2)][::-1]
    names = {name for node in chosen for name in (*node.inputs, *node.outputs) if name}
    values = {name: pattern(rng, graph, name) for name in sorted(names) if rng.random() < 0.5}
    return replace(CLIP, nodes=tuple(node_pattern(rng, node) for node in chosen), values=values)


def node_pattern(rng: random.Random, node: Node) -> NodePattern:
    held = {name: plain_attribute(one.value) for name, one in node.attributes.items()}
    kept = {name: value for name, value in held.items() if value is not None and rng.random() < 0.5}
    return NodePattern(node.op, node.inputs, node.outputs, kept, node.domain)


def pattern(rng: random.Random, graph: DescribedGraph, name: str) -> ValuePattern:
    kind = graph.types.get(name)
    wanted = ValuePattern(constant=name in graph.constants if rng.random() < 0.5 else None)
    if isinstance(kind, TensorType) and kind.shape is not None:
        wanted = replace(wanted, dtype=rng.choice((kind.dtype, None)), rank=rng.choice((len(kind.shape), None)))
        sizes = tuple(size if isinstance(size, int) else -1 for size in kind.shape)
        wanted = replace(wanted, shape=rng.choice((sizes, None)))
    return replace(wanted, rank=9) if rng.random() < 0.1 else wanted


@pytest.mark.parametrize("infer", [False, True])
def test_an_outline_never_contradicts_the_whole_program(infer: bool) -> None:
    producer = Strict(GeneratorOptions(control=0.1, spread=0.0), Support(open=True))
    sure = matched = 0
    for number in range(60):
        rng = stream(5, "outline", number)
        payload = producer.propose(rng).program.payload
        outline, whole = outlined(payload, infer=infer), described(read(payload))
        assert len(outline.graphs) == len(whole.graphs)
        for graph in whole.graphs:
            for _ in range(4 if graph.nodes else 0):
                predicate = drawn(rng, graph)
                truth, possible = predicate.matches(whole), predicate.matches(outline)
                certain = predicate.matches(outline, surely=True)
                assert certain <= truth <= possible, (number, predicate)
                matched += truth
                sure += certain
    assert sure > 50
    assert matched > sure
