"""The language against onnx: what entries infer and evaluate, and which element types they take."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import defs
from onnx.reference import ReferenceEvaluator
from rule_models import term_model, words
from term_calls import COMPUTED, ROUNDED, call, integers, same

from miscompile.base.dtypes import FLOATS
from miscompile.base.rng import array_stream, stream
from miscompile.core.tensor import tensor
from miscompile.graph.check import check
from miscompile.graph.emit import emit
from miscompile.graph.infer import infer as onnx_infer
from miscompile.graph.model import TensorType
from miscompile.transforms.rules.kinds import KNOWN, Symbol, TermType, broadcast
from miscompile.transforms.rules.numbers import drawn
from miscompile.transforms.rules.terms import LANGUAGE, constant, evaluate, infer, newest, opset_of
from miscompile.transforms.rules.translation.nodes import constant_tensor

OPSET = 23


@pytest.mark.parametrize("op", sorted(COMPUTED))
def test_entries_agree_with_onnx(op: str) -> None:
    """Types with onnx's inference, values with its reference implementation, in every element type."""
    seen = Counter[str]()
    for number in range(120):
        rng = stream(1, op, number)
        made = call(op, rng)
        if made is None:
            continue
        symbol, types = made
        opset = max(OPSET, opset_of(symbol, types))
        model = term_model(symbol, types, opset)
        check(model)
        kind = infer(symbol, types)
        assert kind is not None
        node, known = model.graph.nodes[0], model.graph.initializers
        given = {f"x{place}": TensorType(*each) for place, each in enumerate(types)}
        given |= {name: TensorType(value.dtype, value.shape) for name, value in known.items()}
        assert onnx_infer(node, given, opset, known)[symbol.output] == TensorType(*kind)
        if types[0].dtype == "bfloat16" or 0 in kind.shape:
            continue
        arrays = [drawn(each, "small", array_stream(2, op, number)) for each in types]
        if op in ("Sqrt", "Log", "Reciprocal", "BatchNormalization"):
            arrays = [np.abs(array) + 1 for array in arrays]
        if op == "Div":
            arrays[1] = np.abs(arrays[1]) + 1
        if _reference_is_wrong(symbol) or (op == "MaxPool" and types[0].dtype.endswith("int8")):
            continue
        if op == "Cast" and (symbol.parameters[0] == "bfloat16" or str(symbol.parameters[0]).startswith("uint")):
            continue
        feeds = words({f"x{place}": array for place, array in enumerate(arrays)})
        with np.errstate(all="ignore"):
            expected = ReferenceEvaluator(emit(model)).run(None, feeds)[0]
        tolerance = 0.0 if op not in ROUNDED else 2e-3 if types[0].dtype == "float16" else 2e-6
        assert same(evaluate(symbol, tuple(arrays)), np.asarray(expected), tolerance), (symbol, types)
        seen[types[0].dtype] += 1
    assert sum(seen.values()) > 12, seen


def _reference_is_wrong(symbol: Symbol) -> bool:
    """Pools with uneven pads lose places there, and Pad takes no negative pads; ONNX Runtime judges these below."""
    if symbol.op == "Pad":
        return min(integers(symbol.parameters[0])) < 0
    if symbol.op in ("MaxPool", "AveragePool"):
        _, pads, strides, dilations, *_ = symbol.parameters
        return any(integers(pads)) or any(step != 1 for step in (*integers(strides), *integers(dilations)))
    return False


@pytest.mark.parametrize("op", sorted(COMPUTED))
def test_element_types_are_those_of_the_schemas(op: str) -> None:
    for opset in range(13, defs.onnx_opset_version() + 1):
        taken = {dtype for dtype, first in LANGUAGE[op].dtypes.items() if first <= opset}
        if not taken:
            continue
        formal = defs.get_schema(op, opset).inputs[LANGUAGE[op].main]
        aliases = {"float": "float32", "double": "float64"}
        allowed = {name.removeprefix("tensor(").removesuffix(")") for name in formal.types}
        names = {aliases.get(name, name) for name in allowed}
        assert taken <= names, (op, opset)
        narrower = {"Div": set(FLOATS), "ReduceMean": set(FLOATS), "ReduceMax": {"bool"}, "ReduceMin": {"bool"}}
        missing = (names & set(KNOWN)) - taken
        if op in ("Div", "ReduceMean"):
            missing &= narrower[op]
        elif op in narrower:
            missing -= narrower[op]
        assert not missing, (op, opset, missing)


shapes = st.lists(st.integers(0, 3), max_size=3).map(tuple)


@given(st.lists(shapes, min_size=1, max_size=3))
def test_broadcasting_is_numpys(given_shapes: list[tuple[int, ...]]) -> None:
    try:
        expected = np.broadcast_shapes(*given_shapes)
    except ValueError:
        expected = None
    assert broadcast(*given_shapes) == expected


values = st.sampled_from(sorted(KNOWN)).flatmap(
    lambda dtype: st.tuples(st.just(dtype), shapes, st.integers(0, 10**6), st.sampled_from(("small", "special")))
)


@settings(max_examples=200)
@given(values)
def test_constants_keep_their_bits(value: tuple[str, tuple[int, ...], int, str]) -> None:
    dtype, sizes, seed, regime = value
    array = drawn(TermType(dtype, sizes), regime if dtype in FLOATS else "ordinary", array_stream(seed, "constant"))
    for each in (array, np.full_like(array, array.reshape(-1)[0]) if array.size else array):
        original = tensor(each.view(np.uint16) if dtype == "bfloat16" else each, dtype)
        symbol = constant(original)
        assert symbol is not None
        assert infer(symbol, ()) == TermType(dtype, sizes)
        assert constant_tensor(symbol).same(original)
        assert evaluate(symbol, ()).tobytes() == each.tobytes()


def test_zeros_of_both_signs_are_different_constants() -> None:
    zeros = [constant(tensor(np.full((3,), zero, np.float32))) for zero in (0.0, -0.0)]
    assert zeros[0] != zeros[1]
    assert zeros[0] == Symbol("Constant", ("float32", (3,), 0))


def test_large_constants_are_opaque_unless_they_are_uniform() -> None:
    assert constant(tensor(np.arange(65, dtype=np.int64))) is None
    assert constant(tensor(np.arange(64, dtype=np.int64))) is not None
    assert constant(tensor(np.full((9, 9), 7, np.int64))) == Symbol("Constant", ("int64", (9, 9), 7))


@pytest.mark.parametrize(
    ("symbol", "types"),
    [
        (Symbol("Add"), (TermType("float32", (2,)), TermType("float32", (3,)))),
        (Symbol("Add"), (TermType("float32", (2,)), TermType("float64", (2,)))),
        (Symbol("Add"), (TermType("bool", (2,)), TermType("bool", (2,)))),
        (Symbol("Neg"), (TermType("uint8", (2,)),)),
        (Symbol("MatMul"), (TermType("float32", ()), TermType("float32", (2,)))),
        (Symbol("MatMul"), (TermType("int8", (2, 2)), TermType("int8", (2, 2)))),
        (Symbol("Transpose", ((0, 0),)), (TermType("float32", (2, 2)),)),
        (Symbol("Concat", (-1,)), (TermType("float32", (2, 2)),)),
        (Symbol("Split", (0, (1, 2))), (TermType("float32", (4,)),)),
        (Symbol("Reshape", ((-1,),)), (TermType("float32", (4,)),)),
        (Symbol("Squeeze", ((0,),)), (TermType("float32", (4,)),)),
        (Symbol("Expand", ((3,),)), (TermType("float32", (4,)),)),
        (Symbol("Slice", ((0,), (0,), (5,), (1,))), (TermType("float32", (4,)),)),
        (Symbol("Gather", (0, 4)), (TermType("float32", (4,)),)),
        (Symbol("Pad", ((0, 3), "reflect", 0)), (TermType("float32", (3,)),)),
        (Symbol("ReduceMax", ((0,), 1)), (TermType("float32", (0, 2)),)),
        (Symbol("MaxPool", ((2,), (2, 0), (1,), (1,))), (TermType("float32", (1, 1, 4)),)),
        (Symbol("Gemm", (0.5, 1.0, 0, 0)), (TermType("int32", (2, 2)), TermType("int32", (2, 2)))),
    ],
)
def test_what_is_ill_formed_has_no_type(symbol: Symbol, types: tuple[TermType, ...]) -> None:
    assert infer(symbol, types) is None


def test_what_operators_have_learnt_since_needs_its_opset() -> None:
    empty, full, image = TermType("float32", (0, 2)), TermType("float32", (2, 2)), TermType("float32", (1, 1, 5))
    assert opset_of(Symbol("Reshape", ((2, 0),)), (empty,)) == 14
    assert opset_of(Symbol("Reshape", ((4,),)), (full,)) == 13
    for dilation, opset in ((1, 13), (2, 19)):
        pool = Symbol("AveragePool", ((2,), (0, 0), (1,), (dilation,), 0))
        assert infer(pool, (image,)) is not None
        assert opset_of(pool, (image,)) == opset


@pytest.mark.parametrize("op", sorted(COMPUTED))
def test_no_term_needs_more_than_the_newest_opset_of_its_operator(op: str) -> None:
    made = [call(op, stream(9, op, number)) for number in range(60)]
    opsets = {opset_of(*each) for each in made if each is not None}
    assert opsets
    assert max(opsets) <= newest(op)
