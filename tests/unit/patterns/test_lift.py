"""Lifting: what becomes free, what stays, and that a lifted motif stands for what it was lifted from."""

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from miscompile.base.rng import stream
from miscompile.core.tensor import Tensor, tensor
from miscompile.graph.model import Attribute, Graph, Node, TensorType, ValueInfo
from miscompile.graph.text.parser import parse_model
from miscompile.ops.seed import Seed
from miscompile.ops.spec import OperatorLimits
from miscompile.ops.support import Support
from miscompile.ops.values import Range, Style
from miscompile.patterns.language import Motif, Weight, parse_motifs
from miscompile.patterns.lift import lift
from miscompile.patterns.print import print_motif
from miscompile.patterns.shipped import catalogue
from miscompile.producers.finish import finish, leaves
from miscompile.producers.motifs.plant import NONE, plant
from miscompile.producers.scope import Scope

SUPPORT = Support(open=True)


def scope(*names: object, opset: int = 21) -> Scope:
    return Scope(stream(0, "lift", *map(str, names)), opset, OperatorLimits(), Style(), SUPPORT)


def planted_seed(known: Scope) -> Seed:
    """Everything in a scope as a seed, as extraction gives one."""

    def info(name: str) -> ValueInfo:
        return ValueInfo(name, TensorType(known.operands[name].dtype, known.operands[name].shape))

    made = {node.outputs[0]: node.attributes["value"].value for node in known.nodes if node.op == "Constant"}
    nodes = tuple(node for node in known.nodes if node.op != "Constant")
    inputs = tuple(map(info, (*known.inputs, *known.pinned)))
    graph = Graph("g", inputs, tuple(map(info, leaves(known))), nodes, {**known.initializers, **made})
    return Seed("planted", graph, known.opset, dict(known.inputs), dict(known.pinned))


def lifted(text: str, *, opset: int = 17, pinned: dict[str, Tensor] | None = None, **ranges: Range) -> str:
    """The text of the motif lifted from a graph in text form, without its header."""
    graph = parse_model(f"opset {opset}\n{text}").graph
    motif = lift(Seed("s", graph, opset, ranges, pinned or {}), "m")
    assert motif is not None
    return print_motif(motif).removeprefix("[m]\n")


motifs_and_seeds = given(st.sampled_from(catalogue()), st.integers(0, 1000), st.sampled_from([17, 21]))


@motifs_and_seeds
@settings(max_examples=40)
def test_a_lifted_motif_can_be_planted_on_other_sizes_and_dtypes(motif: Motif, number: int, opset: int) -> None:
    known = scope(motif.name, number, opset=opset)
    if plant(known, motif, NONE) is None:
        return
    seed = planted_seed(known)
    found = lift(seed, motif.name)
    assert found is not None
    assert found.operators == seed.operators
    assert tuple(parse_motifs(print_motif(found), "lifted")) == (found,)
    came_off = 0
    for turn in range(6):
        other = scope(motif.name, number, turn, opset=opset)
        if plant(other, found, NONE) is not None:
            came_off += 1
            assert tuple(node.op for node in other.nodes if node.op != "Constant") == seed.operators
            onnx.checker.check_model(finish(other, leaves(other), 1, {}).program.payload, full_check=True)
    assert came_off


@motifs_and_seeds
@settings(max_examples=40)
def test_a_lifted_motif_fits_where_it_came_from(motif: Motif, number: int, opset: int) -> None:
    known = scope(motif.name, number, opset=opset)
    if plant(known, motif, NONE) is None:
        return
    seed = planted_seed(known)
    found = lift(seed, motif.name)
    assert found is not None
    assert len(found.holes) == len(known.inputs)  # nothing that was planted asks for a known operand
    for turn in range(3):
        other = scope(motif.name, number, "again", turn, opset=opset)
        operands = {
            hole.name: other.new_input(known.operands[name].dtype, known.operands[name].shape, span)
            for hole, (name, span) in zip(found.holes, known.inputs.items(), strict=True)
        }
        if plant(other, found, NONE, holes=operands) is not None:
            assert tuple(node.op for node in other.nodes if node.op != "Constant") == seed.operators
            assert {operands[hole.name].name for hole in found.holes} == set(other.inputs)
            return
    pytest.fail(f"{print_motif(found)} does not fit the operands it was lifted from")


def test_a_dimension_of_one_goes_only_where_any_may_stand_in_front() -> None:
    """Expand gives it back, so that results do not tell; an operand with it would no longer fit."""
    text = """
    graph g(%x: float32[1,6]) -> (%y: float32[1,6]) {
      init %s: int64[2] = [1, 6]
      %a = Abs(%x)
      %e = Expand(%a, %s)
      %y = Neg(%e)
    }
    """
    assert lifted(text).splitlines()[0].startswith("x1 = value(..., 1, N1")


def test_sizes_that_must_agree_get_one_name_and_leading_ones_go() -> None:
    text = """graph g(%x: float32[2,3,4], %y: float32[4]) -> (%b: float32[2,3,5]) {
      init %w: float32[4,5] = fill 0.5
      %a = Add(%x, %y)
      %b = MatMul(%a, %w)
    }"""
    graph = parse_model(f"opset 17\n{text}").graph
    weights = tensor(np.random.default_rng(0).uniform(0.5, 2, (4, 5)), "float32")
    seed = Seed("s", Graph("g", graph.inputs, graph.outputs, graph.nodes, {"w": weights}), 17)
    motif = lift(seed, "m")
    assert motif is not None
    lo, hi = weights.array.min(), weights.array.max()
    weight = motif.statements[3]
    assert isinstance(weight, Weight)
    assert weight.within is not None
    assert 0 < lo <= weight.within[0] < weight.within[1] <= hi
    assert print_motif(motif).splitlines()[1:6] == [
        "x1 = value(..., N1)",
        "x2 = value(N1)",
        "v1 = Add(x1, x2)",
        f"w1 = weight(N1, N2, lo={weight.within[0]}, hi={weight.within[1]})",
        "v2 = MatMul(v1, w1)",
    ]


def test_shapes_and_groups_follow_the_sizes_they_equal() -> None:
    text = """graph g(%x: float32[2,6,4,4], %w: float32[6,1,3,3]) -> (%b: float32[2,6,4]) {
      init %s: int64[3] = [2, 6, 4]
      %a = Conv(%x, %w) {group=6}
      %b = Reshape(%a, %s)
    }"""
    assert lifted(text).splitlines() == [
        "x1 = value(N1, N2, 4, 4)",
        "x2 = value(N2, 1, 3, 3)",
        "v1 = Conv(x1, x2, group=N2)",
        "v2 = Reshape(v1, ints(N1, N2, 4))",
        'dtypes("float32", "float16", "float64")',
    ]


def test_one_stays_one_and_axes_become_an_attribute() -> None:
    text = """graph g(%x: float32[1,7]) -> (%b: float32[1,1,7]) {
      init %i: int64[1] = [0]
      %b = Unsqueeze(%x, %i)
    }"""
    first, call, dtypes = lifted(text).splitlines()
    assert (first, call) == ("x1 = value(1, N1)", "v1 = Unsqueeze(x1, axes=(0,))")
    assert "bool" in dtypes


def test_numbers_that_someone_wrote_stay_and_drawn_ones_go() -> None:
    text = """graph g(%x: float32[3,2]) -> (%d: float32[3,2]) {
      init %h: float32[] = [0.5]
      init %p: float32[2] = [1.0, -2.0]
      init %r: float32[2] = [0.123456, 1.654321]
      init %f: float32[2] = [3.0, 3.0]
      init %n: float32[3,1] = [nan, -inf, 0.0]
      %a = Mul(%x, %h)
      %b = Mul(%a, %p)
      %c = Mul(%b, %r)
      %e = Mul(%c, %f)
      %d = Mul(%e, %n)
    }"""
    lines = lifted(text).splitlines()
    assert lines == [
        "x1 = value(..., 3, 2)",
        "v1 = Mul(x1, 0.5)",
        "c1 = numbers((1.0, -2.0))",
        "v2 = Mul(v1, c1)",
        "w1 = weight(2, lo=0.124, hi=1.65)",
        "v3 = Mul(v2, w1)",
        "v4 = Mul(v3, full(3.0, 2))",
        "c2 = numbers((nan, -inf, 0.0), sizes=(3, 1))",
        "v5 = Mul(v4, c2)",
    ]


def test_dtypes_that_do_not_hang_together_stay() -> None:
    text = """graph g(%x: float32[3,2], %i: int64[4], %m: bool[4,2]) -> (%c: int8[4,2]) {
      %a = Gather(%x, %i)
      %b = Where(%m, %a, %a)
      %c = Cast(%b) {to=3}
    }"""
    lines = lifted(text, i=Range(0, 2, integral=True)).splitlines()
    assert lines[:6] == [
        "x1 = value(N1, N2)",
        'x2 = value(..., N3, dtype="int64", lo=0, hi=2)',
        'x3 = value(N3, N2, dtype="bool")',
        "v1 = Gather(x1, x2)",
        "v2 = Where(x3, v1, v1)",
        "v3 = Cast(v2, to=int8)",
    ]
    assert "int64" in lines[6]


def test_what_an_operator_takes_as_a_constant_only_becomes_one() -> None:
    text = """graph g(%x: float32[5], %s: float32[]) -> (%b: uint8[5]) {
      %a = Relu(%x)
      %b = QuantizeLinear(%a, %s)
    }"""
    lines = lifted(text, s=Range(0.5, 0.5, integral=False)).splitlines()
    assert lines[0] == "x1 = value(N1)"
    assert lines[2:4] == ['w1 = weight(dtype="float32", lo=0.5, hi=0.5)', "v2 = QuantizeLinear(v1, w1)"]


def test_a_table_keeps_the_rows_that_such_a_constant_looks_up() -> None:
    text = lifted(
        "graph g(%x: float32[2,4,3,8], %c: float32[50,4], %s: float32[50,4], %p: int64[2,3]) -> (%y: float32[2,4,3,8])"
        " {\n %y = RotaryEmbedding(%x, %c, %s, %p)\n}\n",
        opset=23,
        p=Range(9, 47, integral=True),
    )
    assert "value(50, 4)" in text
    assert 'weight(N1, N3, dtype="int64", lo=9, hi=47)' in text


def test_results_and_operands_that_are_left_out_stay_out() -> None:
    text = """graph g(%x: float32[5,2]) -> (%b: float32[5,2], %i: int64[1,2]) {
      init %k: int64[1] = [1]
      init %h: float32[] = [2.0]
      %a = Clip(%x, _, %h)
      %b = Relu(%a)
      _, %i = TopK(%b, %k) {axis=0, largest=0}
    }"""
    lines = lifted(text).splitlines()
    assert "v1 = Clip(x1, _, 2.0)" in lines
    assert "_, v3 = TopK(v2, ints(1), axis=0, largest=0)" in lines


def test_ranges_are_kept_where_they_matter() -> None:
    text = "graph g(%x: float32[3], %y: float32[3]) -> (%b: float32[3]) {\n%a = Sqrt(%x)\n%b = Add(%a, %y)\n}"
    lines = lifted(text, x=Range(0.1234, 5, integral=False), y=Range(-9, 9, integral=False)).splitlines()
    assert lines[:2] == ["x1 = value(..., N1, lo=0.124, hi=5.0)", "x2 = value(N1)"]


def test_pinned_inputs_are_constants() -> None:
    text = "graph g(%x: float32[4,3], %s: int64[1]) -> (%b: float32[12]) {\n%b = Reshape(%x, %s)\n}"
    lines = lifted(text, pinned={"s": Tensor("int64", np.array([-1]))}).splitlines()
    assert lines[:2] == ["x1 = value(N1, N2)", "v1 = Reshape(x1, ints(-1))"]


@pytest.mark.parametrize(
    "text",
    [
        "graph g(%x: float32[2]) -> (%y: float32[2]) {\n%y = com.me::Relu(%x)\n}",
        "graph g(%x: string[2]) -> (%y: string[2]) {\n%y = Identity(%x)\n}",
        "graph g(%x: seq(float32[2])) -> (%y: int64[]) {\n%y = SequenceLength(%x)\n}",
        "graph g(%x: float32[2,2]) -> (%y: float32[2,2]) {\n%y = NoSuchOperator(%x)\n}",
        "graph g(%x: float32[2,3], %s: int64[1]) -> (%y: float32[6]) {\n%y = Reshape(%x, %s)\n}",
        "graph g(%x: float32[2,3]) -> (%y: float32[2,3]) {\n%y = MatMul(%x, %x)\n}",
        "graph g() -> (%y: float32[2]) {\ninit %x: float32[2] = [1.0, 2.0]\n%y = Relu(%x)\n}",
        "graph g(%x: float32[2]) -> (%x: float32[2]) {\n}",
    ],
    ids=["domain", "string", "sequence", "unknown", "open shape", "invalid", "no hole", "no node"],
)
def test_what_cannot_be_said_is_not_lifted(text: str) -> None:
    graph = parse_model(f"opset 17\n{text}").graph
    assert lift(Seed("s", graph, 17), "m") is None


def test_bodies_are_not_lifted() -> None:
    kind = TensorType("float32", (2,))
    body = Graph("b", (), (ValueInfo("z", kind),), (Node("Relu", ("x",), ("z",)),))
    branches = {name: Attribute("graph", body) for name in ("then_branch", "else_branch")}
    node = Node("If", ("c",), ("y",), branches)
    inputs = (ValueInfo("c", TensorType("bool", ())), ValueInfo("x", kind))
    assert lift(Seed("s", Graph("g", inputs, (ValueInfo("y", kind),), (node,)), 17), "m") is None


def test_a_name_is_made_fit_for_a_motif() -> None:
    graph = parse_model("opset 17\ngraph g(%x: float32[2]) -> (%y: float32[2]) {\n%y = Relu(%x)\n}").graph
    motif = lift(Seed("s", graph, 17), "tests/a.py::test_b")
    assert motif is not None
    assert motif.name == "tests-a-py-test_b"
