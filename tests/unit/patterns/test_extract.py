"""Cutting graphs: units hang together, blocks are convex and of the sizes asked for, and every piece is a program."""

import random
from collections import Counter

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from miscompile.base.errors import SpecError
from miscompile.core.tensor import Tensor
from miscompile.graph.emit import emit
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.graph.text.parser import parse_model
from miscompile.ops.seed import Seed
from miscompile.ops.values import Range
from miscompile.patterns.extract import Operators, PieceSizes, Whole, blocks, subgraphs, whole_of

KIND = TensorType("float32", (2, 3))


def whole(body: str, inputs: str = "%x, %y", outputs: str = "%z") -> Whole:
    """A graph of float32[2,3] alone."""
    typed = [", ".join(f"{name}: float32[2,3]" for name in names.split(", ")) for names in (inputs, outputs)]
    return whole_of(parse_model(f"opset 17\ngraph g({typed[0]}) -> ({typed[1]}) {{\n{body}\n}}"), "m")


def told(seed: Seed) -> tuple[str, ...]:
    """Operators, holes, broken outputs and constants of a piece."""
    graph = seed.graph
    inputs = "".join(info.name for info in graph.inputs)
    outputs = "".join(info.name for info in graph.outputs)
    return "".join(op[0] for op in seed.operators), inputs, outputs, "".join(graph.initializers)


TWO = """init %w: float32[2,3] = fill 2.0
%a = Relu(%x)
%b = Mul(%a, %w)
%c = Neg(%y)
%d = Mul(%c, %w)
%e = Exp(%c)"""


def test_units_share_tensors_but_not_through_constants() -> None:
    two = whole(TWO, outputs="%b, %d, %e")
    assert [told(seed) for seed in subgraphs(two, PieceSizes())] == [("RM", "x", "b", "w"), ("NME", "y", "de", "w")]
    assert [seed.source for seed in subgraphs(two, PieceSizes())] == ["m/unit 1", "m/unit 2"]


def test_units_that_read_one_input_are_one() -> None:
    shared = whole("%a = Relu(%x)\n%b = Neg(%x)\n%z = Exp(%y)", outputs="%a, %b, %z")
    assert [told(seed) for seed in subgraphs(shared, PieceSizes())] == [("RN", "x", "ab", ""), ("E", "y", "z", "")]


def test_what_works_on_constants_alone_goes_with_every_unit_and_does_not_connect() -> None:
    body = "init %w: float32[2,3] = fill 2.0\n%v = Sqrt(%w)\n%a = Mul(%x, %v)\n%b = Mul(%y, %v)"
    found = [told(seed) for seed in subgraphs(whole(body, outputs="%a, %b"), PieceSizes())]
    assert found == [("SM", "x", "a", "w"), ("SM", "y", "b", "w")]


DIAMOND = "%a = Relu(%x)\n%b = Neg(%a)\n%c = Exp(%a)\n%z = Add(%b, %c)"


def test_all_blocks_of_a_diamond_are_convex() -> None:
    found = [told(seed)[0] for seed in blocks(whole(DIAMOND, "%x"), PieceSizes(1, 4))]
    # no block holds Relu and Add without what lies between; Neg and Exp read one intermediate tensor
    assert sorted(found) == sorted(["R", "N", "E", "A", "RN", "RE", "NE", "NA", "EA", "RNE", "NEA", "RNEA"])
    assert [len(ops) for ops in found] == sorted(map(len, found))


def test_holes_and_broken_outputs_of_a_block() -> None:
    (block,) = [seed for seed in blocks(whole(DIAMOND, "%x"), PieceSizes(2, 2)) if seed.operators == ("Relu", "Neg")]
    assert told(block) == ("RN", "x", "ab", "")
    assert block.graph.types == {}
    (block,) = [seed for seed in blocks(whole(DIAMOND, "%x"), PieceSizes(3, 3)) if seed.operators[-1] == "Add"]
    assert told(block) == ("NEA", "a", "z", "")
    assert set(block.graph.types) == {"b", "c"}


def test_an_operator_that_cannot_be_taken_parts_what_it_lies_between() -> None:
    body = "%a = Relu(%x)\n%r = RandomNormalLike(%a)\n%b = Add(%a, %r)\n%c = Exp(%y)"
    left = Counter[str]()
    parted = whole(body, outputs="%b, %c")
    assert [told(seed)[0] for seed in subgraphs(parted, PieceSizes(), left)] == ["E"]
    assert left == {"nodes of random operator RandomNormalLike": 1, "units around an operator that cannot be taken": 1}
    assert [told(seed)[0] for seed in blocks(parted, PieceSizes())] == ["R", "A", "E"]


def test_fixed_values_are_pinned_and_ranges_go_along() -> None:
    graph = parse_model(
        "opset 17\ngraph g(%x: float32[2,3], %s: int64[1]) -> (%z: float32[6]) {\n"
        "%a = Relu(%x)\n%z: float32[6] = Reshape(%a, %s)\n}"
    ).graph
    types = {"x": KIND, "a": KIND, "s": TensorType("int64", (1,)), "z": TensorType("float32", (6,))}
    span = Range(-1, 1, integral=False)
    fixed = {"s": Tensor("int64", np.array([6]))}
    (seed,) = subgraphs(Whole("m", graph, 17, types, {"x": span, "a": span}, fixed), PieceSizes())
    assert seed.ranges == {"x": span}
    assert seed.pinned == fixed
    left = Counter[str]()
    assert not list(subgraphs(Whole("m", graph, 17, types, {}, {**fixed, "x": fixed["s"]}), PieceSizes(), left))
    assert left == {"pieces without holes": 1}


@pytest.mark.parametrize(
    ("sizes", "reason"),
    [
        (PieceSizes(1, 3), "units of more than 3 operators"),
        (PieceSizes(elements=5), "pieces with values of more than 5 elements"),
        (PieceSizes(weights=20), "pieces with constants of more than 0 KiB"),
    ],
)
def test_what_is_too_large_is_left_out_and_counted(sizes: PieceSizes, reason: str) -> None:
    left = Counter[str]()
    body = "init %w: float32[2,3] = fill 2.0\n%o = Mul(%x, %w)\n" + DIAMOND.replace("%x", "%o")
    assert not list(subgraphs(whole(body, "%x"), sizes, left))
    assert left == {reason: 1}


def test_sizes_that_no_piece_has_are_refused() -> None:
    with pytest.raises(SpecError, match="write the smaller number first"):
        PieceSizes(4, 3)


@st.composite
def random_wholes(draw: st.DrawFn) -> Whole:
    known, nodes = ["x", "y"], []
    for place in range(draw(st.integers(1, 9))):
        op = draw(st.sampled_from(["Add", "Mul", "Relu", "Neg"]))
        count = 2 if op in ("Add", "Mul") else 1
        read = tuple(draw(st.sampled_from([*known, "w"])) for _ in range(count))
        nodes.append(Node(op, read, (f"v{place}",)))
        known.append(f"v{place}")
    outputs = draw(st.lists(st.sampled_from(known[2:]), min_size=1, max_size=2, unique=True))
    weights = {"w": Tensor("float32", np.ones((2, 3), np.float32))}
    given, results = (tuple(ValueInfo(name, KIND) for name in names) for names in (["x", "y"], outputs))
    return Whole("m", Graph("g", given, results, tuple(nodes), weights), 17, dict.fromkeys((*known, "w"), KIND))


@given(random_wholes(), st.integers(1, 3), st.integers(3, 5))
@settings(max_examples=60)
def test_blocks_are_connected_convex_pieces_that_run_alone(one: Whole, least: int, most: int) -> None:
    sizes = PieceSizes(least, most)
    operators = Operators(one, sizes)
    regions = list(operators.regions())
    assert len(set(regions)) == len(regions)
    for members in regions:
        assert least <= len(members) <= most
        assert operators.closed(members) == members
    for seed in (*blocks(one, sizes), *subgraphs(one, PieceSizes(1, 99))):
        onnx.checker.check_model(onnx.load_from_string(emit(Model(seed.graph, {"": 17}))), full_check=True)


@given(random_wholes(), st.integers(0, 99))
@settings(max_examples=60)
def test_a_sample_is_drawn_from_all_blocks_and_repeats_with_its_stream(one: Whole, number: int) -> None:
    operators = Operators(one, PieceSizes(1, 4))
    drawn = list(operators.drawn(random.Random(number), 5))
    assert drawn == list(operators.drawn(random.Random(number), 5))
    assert len(set(drawn)) == len(drawn) <= 5
    assert set(drawn) <= set(operators.regions())


def test_a_sample_holds_blocks_of_several_sizes() -> None:
    body = "\n".join(f"%v{place + 1} = Relu(%v{place})" for place in range(12))
    chain = whole(body, "%v0", "%v12")
    found = list(blocks(chain, PieceSizes(1, 6), rng=random.Random(0), count=30))
    assert len(found) == 30
    assert {len(seed.operators) for seed in found} == {1, 2, 3, 4, 5, 6}


@given(random_wholes())
@settings(max_examples=60)
def test_every_operator_that_does_not_work_on_constants_alone_is_in_one_unit(one: Whole) -> None:
    operators = Operators(one, PieceSizes())
    units = list(operators.units())
    places = [place for unit in units for place in unit]
    assert sorted(places) == [place for place, fixed in enumerate(operators.fixed) if not fixed]
