"""Nodes to terms and back, in every opset."""

import itertools
from dataclasses import astuple

import numpy as np
import pytest
from onnx import defs
from rule_models import Speller
from term_calls import COMPUTED, call, integers

from miscompile.base.errors import RejectedDraft
from miscompile.base.rng import stream
from miscompile.core.tensor import Tensor, tensor
from miscompile.graph.attributes import attributes
from miscompile.graph.infer import infer as onnx_infer
from miscompile.graph.model import Node, TensorType
from miscompile.graph.text.parser import parse_model
from miscompile.transforms.rules.kinds import Symbol, TermType
from miscompile.transforms.rules.terms import infer, opset_of
from miscompile.transforms.rules.translation.nodes import nodes_of, term_of


@pytest.mark.parametrize("op", sorted(COMPUTED))
def test_what_is_written_reads_as_the_same_term_in_every_opset(op: str) -> None:
    written = 0
    for number in range(90):
        made = call(op, stream(5, op, number))
        if made is None:
            continue
        symbol, types = made
        if op == "Slice" and leaves_an_axis_whole(symbol, types[0].shape):
            continue
        opset = 13 + number % (defs.onnx_opset_version() - 12)
        if opset < opset_of(symbol, types):
            continue
        names = tuple(f"x{place}" for place in range(len(types)))
        fresh = (f"fresh{k}" for k in itertools.count())
        try:
            nodes, constants = nodes_of(symbol, names, {symbol.output: "y"}, opset, lambda hint: next(fresh))  # noqa: B023
        except RejectedDraft:
            assert opset < 19
            continue
        assert len(nodes) == 1
        known = dict(zip(names, types, strict=True))
        known |= {name: TermType(value.dtype, value.shape) for name, value in constants.items()}
        given = {name: TensorType(*kind) for name, kind in known.items()}
        found = onnx_infer(nodes[0], given, opset, constants)[nodes[0].outputs.index("y")]
        kind = infer(symbol, types)
        assert kind is not None
        assert isinstance(found, TensorType)
        assert found.dtype == kind.dtype
        assert found.shape == kind.shape or (found.shape is None and op in ("LessOrEqual", "GreaterOrEqual"))
        terms = term_of(nodes[0], known, constants)
        assert terms is not None
        assert terms[nodes[0].outputs.index("y")] == (symbol, names)
        written += 1
    assert written > 5


def leaves_an_axis_whole(symbol: Symbol, shape: tuple[int, ...]) -> bool:
    """Reading drops such axes, because that is the canonical form."""
    axes, starts, ends, steps = map(integers, symbol.parameters)
    cuts = zip(axes, starts, ends, steps, strict=True)
    return any((start, end, step) == (0, shape[axis], 1) for axis, start, end, step in cuts)


def only_term(text: str, opset: int = 17) -> tuple[Symbol, tuple[str, ...]] | None:
    """The term of the first output of the last node of a model that consists of `text`."""
    model = parse_model(f"ir 9 opset {opset} graph g {text}")
    types = {}
    for info in model.graph.inputs:
        assert isinstance(info.type, TensorType)
        types[info.name] = TermType(*astuple(info.type))
    types |= {name: TermType(value.dtype, value.shape) for name, value in model.graph.initializers.items()}
    terms = term_of(model.graph.nodes[-1], types, model.graph.initializers)
    return None if terms is None else terms[0]


def head(kind: str = "float32[2,3,4]", constants: str = "") -> str:
    return f"(%x: {kind}) -> (%y: float32[1]) {{ {constants}"


@pytest.mark.parametrize(
    ("text", "symbol"),
    [
        (head() + "%y = Transpose(%x) }", Symbol("Transpose", ((2, 1, 0),))),
        (head() + "%y = Concat(%x, %x) {axis=-1} }", Symbol("Concat", (2,))),
        (head() + "%y = Flatten(%x) }", Symbol("Flatten", (1,))),
        (head() + "%y = Flatten(%x) {axis=-1} }", Symbol("Flatten", (2,))),
        (head() + "%y = Softmax(%x) }", Symbol("Softmax", (2,))),
        (head() + "%y, %z = Split(%x) {axis=-1} }", Symbol("Split", (2, (2, 2)))),
        (head() + "%y, %z, %w = Split(%x) {axis=2, num_outputs=3} }", Symbol("Split", (2, (2, 2, 0)))),
        (head(constants="init %s: int64[2] = [0, -1] ") + "%y = Reshape(%x, %s) }", Symbol("Reshape", ((2, 12),))),
        (head("float32[1,3,1]") + "%y = Squeeze(%x) }", Symbol("Squeeze", ((0, 2),))),
        (
            head("float32[3]", "init %a: int64[2] = [-1, 0] ") + "%y = Unsqueeze(%x, %a) }",
            Symbol("Unsqueeze", ((0, 2),)),
        ),
        (head("float32[3,1]", "init %s: int64[2] = [1, 5] ") + "%y = Expand(%x, %s) }", Symbol("Expand", ((3, 5),))),
        (
            head(constants="init %b: int64[2] = [1, -9] init %e: int64[2] = [99, 9] ") + "%y = Slice(%x, %b, %e) }",
            Symbol("Slice", ((0,), (1,), (2,), (1,))),
        ),
        (
            head(constants="init %b: int64[1] = [-1] init %e: int64[1] = [-9] init %a: int64[1] = [1] ")
            + "%y = Slice(%x, %b, %e, %a, %b) }",
            Symbol("Slice", ((1,), (2,), (-1,), (-1,))),
        ),
        (
            head(constants="init %p: int64[2] = [1, 2] init %v: float32[] = [1.5] init %a: int64[1] = [-1] ")
            + "%y = Pad(%x, %p, %v, %a) }",
            Symbol("Pad", ((0, 0, 1, 0, 0, 2), "constant", ("float32", 1.5))),
        ),
        (
            head(constants="init %i: int64[2] = [-1, 0] ") + "%y = Gather(%x, %i) {axis=-1} }",
            Symbol("Gather", (2, (3, 0))),
        ),
        (head(constants="init %i: int64[] = [-1] ") + "%y = Gather(%x, %i) }", Symbol("Gather", (0, 1))),
        (head() + "%y = ReduceSum(%x) }", Symbol("ReduceSum", ((0, 1, 2), 1))),
        (head() + "%y = ReduceMax(%x) {axes=[-1], keepdims=0} }", Symbol("ReduceMax", ((2,), 0))),
        (head() + "%y = ArgMax(%x) {axis=-2} }", Symbol("ArgMax", (1, 1, 0))),
        (head() + "%y = Cast(%x) {to=7} }", Symbol("Cast", ("int64",))),
        (
            head("float32[1,2,5,5]") + '%y = MaxPool(%x) {auto_pad="SAME_UPPER", kernel_shape=[2,2], strides=[2,1]} }',
            Symbol("MaxPool", ((2, 2), (0, 0, 1, 1), (2, 1), (1, 1))),
        ),
        (
            head("float32[1,2,5,5]") + '%y = MaxPool(%x) {auto_pad="SAME_LOWER", kernel_shape=[2,2]} }',
            Symbol("MaxPool", ((2, 2), (1, 1, 0, 0), (1, 1), (1, 1))),
        ),
        (
            head("float32[1,1,5]", "init %w: float32[1,1,3] = [1.0, 2.0, 3.0] ")
            + '%y = Conv(%x, %w) {auto_pad="VALID"} }',
            Symbol("Conv", (1, (3,), (0, 0), (1,), (1,))),
        ),
        (head("float32[2,2]") + "%y = Gemm(%x, %x) {transB=1} }", Symbol("Gemm", (1.0, 1.0, 0, 1))),
    ],
)  # fmt: skip
def test_defaults_and_negative_axes_become_canonical(text: str, symbol: Symbol) -> None:
    found = only_term(text)
    assert found is not None
    assert found[0] == symbol
    assert found[1][0] == "x"


@pytest.mark.parametrize(
    "text",
    [
        "(%x: float32[2,3,4], %s: int64[2]) -> (%y: float32[1]) { %y = Reshape(%x, %s) }",
        "(%x: float32[2,3,4], %s: int64[1]) -> (%y: float32[1]) { %y = Squeeze(%x, %s) }",
        "(%x: float32[2,3,4], %i: int64[1]) -> (%y: float32[1]) { %y = Gather(%x, %i) }",
        head("string[2]") + "%y = Identity(%x) }",
        head("int32[2]") + "%y = Div(%x, %x) }",
        head() + "%y = LeakyRelu(%x) }",
        head() + "%y = com.example::Neg(%x) }",
        head() + "%y = Max(%x, %x, %x) }",
        head() + "%y = Softmax(%missing) }",
        head("float32[1,2,5]") + "%y = MaxPool(%x) {ceil_mode=1, kernel_shape=[2]} }",
        head("float32[1,2,5]") + "%y, %i = MaxPool(%x) {kernel_shape=[2]} }",
        head() + "%y = Clip(%x) }",
        head("float32[]", "init %a: int64[0] = [] ") + "%y = ReduceSum(%x, %a) {noop_with_empty_axes=1} }",
    ],
)
def test_what_the_language_cannot_say_is_opaque(text: str) -> None:
    assert only_term(text) is None


def test_constants_are_terms() -> None:
    node = Node("Constant", (), ("y",), attributes({"value": tensor(np.ones(2, np.float32))}))
    assert term_of(node, {}, {}) == [(Symbol("Constant", ("float32", (2,), 1.0)), ())]
    filled = Node("ConstantOfShape", ("s",), ("y",))
    shape = {"s": tensor(np.array([2, 3], np.int64))}
    assert term_of(filled, {}, shape) == [(Symbol("Constant", ("float32", (2, 3), 0)), ())]


def test_constants_are_written_as_initialisers() -> None:
    symbol = Symbol("Constant", ("float16", (2,), 0.5))
    nodes, constants = nodes_of(symbol, (), {0: "c"}, 17, lambda hint: hint)
    assert nodes == ()
    assert constants["c"].same(Tensor("float16", np.full(2, 0.5, np.float16)))


def test_sizes_of_zero_need_opset_14() -> None:
    symbol = Symbol("Reshape", ((0, 2),))
    with pytest.raises(RejectedDraft):
        nodes_of(symbol, ("x",), {0: "y"}, 13, lambda hint: hint)
    (node,), _ = nodes_of(symbol, ("x",), {0: "y"}, 14, lambda hint: hint)
    assert node.attributes["allowzero"].value == 1


def test_outputs_of_split_that_nobody_asks_for_get_names() -> None:
    speller = Speller(17)
    name = speller.term(Symbol("Split", (0, (1, 2, 3)), 1), ("x",))
    assert speller.nodes[0].outputs[1] == name
    assert len(set(speller.nodes[0].outputs)) == 3
