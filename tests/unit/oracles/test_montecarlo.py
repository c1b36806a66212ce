"""Monte-Carlo arithmetic: what the noise twin computes, where its noise goes, and what its spread says."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import load_model_from_string
from onnx.reference import ReferenceEvaluator
from oracle_cases import full, node

from miscompile.base.dtypes import DTYPES
from miscompile.core.case import Case
from miscompile.core.outcome import Values
from miscompile.core.tensor import Tensor, tensor
from miscompile.graph.check import check
from miscompile.graph.emit import to_program
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.graph.read import read
from miscompile.oracles.instrumentation import ULPS
from miscompile.oracles.montecarlo import FLIPPED, FLOOR, ROUNDS, THRESHOLD, judge_noise, noise_seed, noisy

F32 = TensorType("float32", (3,))


def build(
    nodes: Sequence[Node],
    inputs: Mapping[str, Tensor],
    outputs: Mapping[str, TensorType],
    constants: Mapping[str, Tensor] | None = None,
    feeds: int = 1,
) -> Case:
    graph = Graph(
        "g",
        tuple(ValueInfo(name, TensorType(value.dtype, value.shape)) for name, value in inputs.items()),
        tuple(ValueInfo(name, kind) for name, kind in outputs.items()),
        tuple(nodes),
        dict(constants or {}),
    )
    return Case(to_program(Model(graph, {"": 18}, ir_version=10)), (tuple(inputs.values()),) * feeds)


def evaluate(item: Case) -> Values:
    """Run a case in onnx's reference implementation."""
    session = ReferenceEvaluator(load_model_from_string(item.program.payload))
    rows = []
    for feed in item.feeds:
        given = {port.name: _plain(value) for port, value in zip(item.program.inputs, feed, strict=True)}
        found = session.run([port.name for port in item.program.outputs], given)
        rows.append(tuple(_tensor(np.asarray(one)) for one in found))
    return Values(tuple(rows))


def _plain(value: Tensor) -> Any:
    return value.array.view(ml_dtypes.bfloat16) if value.dtype == "bfloat16" else value.array


def _tensor(array: Any) -> Tensor:
    return Tensor("bfloat16", array.view(np.uint16)) if array.dtype.name == "bfloat16" else tensor(array)


def noises(item: Case, twin: Case) -> dict[str, tuple[int | str | None, ...]]:
    """Names and shapes of the inputs that the twin has more."""
    known = {port.name for port in item.program.inputs}
    return {port.name: port.shape or () for port in twin.program.inputs if port.name not in known}


def noised_operands(twin: Case) -> list[tuple[str, int]]:
    """(operator, place) of every operand in the twin that comes out of a product with noise."""
    nodes = read(twin.program.payload).graph.nodes
    products = {
        name
        for one in nodes
        if one.op in ("Mul", "Cast") and any(read_.startswith("miscompile_noise") for read_ in one.inputs)
        for name in one.outputs
    }
    return [
        (one.op, place)
        for one in nodes
        for place, name in enumerate(one.inputs)
        if name in products and not one.outputs[0].startswith("miscompile_noised")
    ]


X, W = full([1.0, -2.0, 3.0]), full([0.5, 0.25, 4.0])


def test_every_float_use_and_every_float_output_gets_noise_of_its_own() -> None:
    item = build(
        [node("Add", "x w", "a"), node("Mul", "a a", "b"), node("ArgMax", "b", "i", axis=0), node("Neg", "a", "c")],
        {"x": X},
        {"b": F32, "i": TensorType("int64", (1,)), "c": F32},
        {"w": W},
    )
    twin = noisy(item, 1)
    check(read(twin.program.payload))
    extra = noises(item, twin)
    assert len(extra) == 6 + 2  # x, w, a, a, b, a are used; b and c are float outputs
    assert set(extra.values()) == {(3,)}
    assert [port.name for port in twin.program.outputs] == ["b", "i", "c"]
    assert twin.program.outputs == item.program.outputs
    assert list(read(twin.program.payload).graph.inputs[0].name) == ["x"]


def test_without_noise_the_twin_computes_the_same() -> None:
    item = build(
        [node("Mul", "x w", "a"), node("Softmax", "a", "b"), node("Sub", "b x", "c")],
        {"x": X},
        {"b": F32, "c": F32},
        {"w": W},
        feeds=2,
    )
    twin = noisy(item, 5)
    assert len(twin.feeds) == 2 * (1 + ROUNDS)
    plain, found = evaluate(item), evaluate(twin)
    for row, other in zip(plain.results, found.results[:2], strict=True):
        assert all(one is not None and two is not None and one.same(two) for one, two in zip(row, other, strict=True))
    moved = [row[1].array for row in found.results[2:] if row[1] is not None]
    spread = np.ptp(np.stack(moved), axis=0)
    assert (spread > 0).all()
    assert (spread < 1e-4).all()


def test_noise_is_a_few_ulps_and_has_both_signs() -> None:
    item = build([node("Relu", "x", "y")], {"x": X}, {"y": F32})
    twin = noisy(item, 3)
    step = ULPS * DTYPES["float32"].eps
    drawn = [feed[-1].array for feed in twin.feeds[1:]]
    assert all(np.isin(np.abs(array - 1), np.float32(step)).all() for array in drawn)
    assert (drawn[0] > 1).all()
    assert (drawn[1] < 1).all()
    assert {tuple(array > 1) for array in drawn[2:]} - {(True,) * 3, (False,) * 3}
    assert (twin.feeds[0][-1].array == 1).all()


def test_noise_is_a_function_of_seed_and_case() -> None:
    item = build([node("Relu", "x", "y")], {"x": X}, {"y": F32})
    same, other = noisy(item, noise_seed(item)), noisy(item, noise_seed(item) + 1)
    again = noisy(item, noise_seed(item))
    assert all(
        a.same(b) for one, two in zip(same.feeds, again.feeds, strict=True) for a, b in zip(one, two, strict=True)
    )
    assert any(
        not a.same(b) for one, two in zip(same.feeds, other.feeds, strict=True) for a, b in zip(one, two, strict=True)
    )
    assert same.recipe == {"noise": noise_seed(item)}


def test_integers_and_structural_operands_get_none() -> None:
    image = full(np.ones((1, 1, 2, 2)))
    item = build(
        [
            node("Resize", "x _ scales", "y"),
            node("Shape", "k", "s"),
            node("Dropout", "x ratio", "d"),
        ],
        {"x": image, "k": full([1, 2], "int64")},
        {
            "y": TensorType("float32", (1, 1, 4, 4)),
            "s": TensorType("int64", (1,)),
            "d": TensorType("float32", (1, 1, 2, 2)),
        },
        {"scales": full([1, 1, 2, 2]), "ratio": full(0.5)},
    )
    twin = noisy(item, 0)
    check(read(twin.program.payload))
    assert sorted(set(noised_operands(twin))) == [("Dropout", 0), ("Resize", 0)]


@pytest.mark.parametrize(
    ("sizes", "noise"),
    [((64, 64), (64, 64)), ((2, 64, 64), (1, 64, 64)), ((3, 5000), (1, 1)), ((5000,), (1,)), ((0, 5000), (0, 5000))],
)
def test_the_noise_of_a_large_value_is_small(sizes: tuple[int, ...], noise: tuple[int, ...]) -> None:
    kind = TensorType("float32", sizes)
    item = build([node("Sigmoid", "x", "y")], {"x": full(np.zeros(sizes))}, {"y": kind})
    twin = noisy(item, 0)
    check(read(twin.program.payload))
    assert {port.shape for port in twin.program.inputs[1:]} == {noise}


def test_an_approximated_function_may_vanish_before_a_ceil() -> None:
    item = build([node("Sigmoid", "x", "s"), node("Ceil", "s", "y")], {"x": full([-20.0, 1.0, 2.0])}, {"y": F32})
    here, gone = Values(((full([1.0, 1.0, 1.0]),),)), Values(((full([0.0, 1.0, 1.0]),),))
    weighed = judge_noise(here, gone, evaluate(noisy(item, 0)))
    assert weighed is not None
    assert weighed.ratio <= THRESHOLD


def test_what_is_quantised_dynamically_may_fall_on_either_side_of_a_tie() -> None:
    kind = TensorType("uint8", (3,))
    item = build([node("DynamicQuantizeLinear", "x", "y s z")], {"x": full([-4.0, -2.0, -4.0])}, {"y": kind})
    up, down = (Values(((full([0, number, 0], "uint8"),),)) for number in (128, 127))
    weighed = judge_noise(up, down, evaluate(noisy(item, 0)))
    assert weighed is not None
    assert weighed.ratio <= THRESHOLD


@pytest.mark.parametrize(
    ("call", "allowed"),
    [(node("LayerNormalization", "x s", "y"), True), (node("InstanceNormalization", "x s s", "y"), False)],
)
def test_a_normalisation_that_computes_in_float32_may_round_to_it(call: Node, allowed: bool) -> None:
    kind, ones = TensorType("float64", (1, 1, 3)), full([1.0], "float64")
    item = build([call], {"x": full([[[1.0, 2.0, 4.0]]], "float64"), "s": ones}, {"y": kind})
    base = evaluate(noisy(item, 0))
    exact = base.results[0][0]
    assert exact is not None
    near = Values(((Tensor("float64", exact.array * (1 + 1e-7)),),))
    weighed = judge_noise(Values((base.results[0],)), near, base)
    assert weighed is not None
    assert (weighed.ratio <= THRESHOLD) == allowed


def test_an_input_that_is_an_output_stays_what_it_is() -> None:
    item = build([node("Relu", "x", "y")], {"x": X}, {"y": F32, "x": F32})
    twin = noisy(item, 0)
    check(read(twin.program.payload))
    found = evaluate(twin)
    assert all(row[1] is not None and row[1].same(X) for row in found.results)
    assert [port.name for port in twin.program.outputs] == ["y", "x"]


def test_a_constant_that_is_an_output_stays_what_it_is() -> None:
    item = build([node("Relu", "x", "y")], {"x": X}, {"y": F32, "w": F32}, {"w": W})
    twin = noisy(item, 0)
    check(read(twin.program.payload))
    assert all(row[1] is not None and row[1].same(W) for row in evaluate(twin).results)


def test_an_output_that_is_used_again_is_renamed_for_its_users() -> None:
    item = build([node("Relu", "x", "y"), node("Neg", "y", "z")], {"x": X}, {"y": F32, "z": F32})
    twin = noisy(item, 0)
    check(read(twin.program.payload))
    found = evaluate(twin)
    assert all(row[0] is not None and row[0].shape == (3,) for row in found.results)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
def test_noise_moves_results_of_every_float_type(dtype: str) -> None:
    x = full([1.0, -2.0, 3.0], dtype)
    kind = TensorType(dtype, (3,))
    item = build([node("Neg", "x", "a"), node("Neg", "a", "y")], {"x": x}, {"y": kind})
    twin = noisy(item, 0)
    check(read(twin.program.payload))
    found = evaluate(twin)
    numbers = np.stack([row[0].numbers().astype(np.float64) for row in found.results if row[0] is not None])
    relative = np.abs(numbers / x.numbers().astype(np.float64) - 1).max(axis=0)
    assert (relative >= ULPS * DTYPES[dtype].eps / 2).all(), "the noise is lost in rounding"
    assert (relative < 8 * ULPS * DTYPES[dtype].eps).all()
    assert found.results[0][0] is not None
    assert found.results[0][0].same(x)


def test_symbolic_shapes_get_noise_that_fits_any_size() -> None:
    kind = TensorType("float32", ("n",))
    graph = Graph("g", (ValueInfo("x", kind),), (ValueInfo("y", kind),), (node("Relu", "x", "y"),))
    item = Case(to_program(Model(graph, {"": 18}, ir_version=10)), ((X,),))
    twin = noisy(item, 0)
    assert set(noises(item, twin).values()) == {()}
    assert evaluate(twin).results[0][0] is not None


# judge_noise ----------------------------------------------------------------------------------------------------------


def one(*numbers: float, dtype: str = "float32") -> Tensor:
    return full(list(numbers), dtype)


def spread_of(centre: Sequence[float], width: Sequence[float], dtype: str = "float32") -> Values:
    """Noise results around `centre`, each element within its width and reaching it."""
    rows = [(one(*centre, dtype=dtype),)]
    for step in range(ROUNDS):
        sign = -1 if step % 2 else 1
        rows.append((one(*(c + sign * w for c, w in zip(centre, width, strict=True)), dtype=dtype),))
    return Values(tuple(rows))


def values(*numbers: float) -> Values:
    return Values(((one(*numbers),),))


ELEMENTS = st.lists(st.tuples(st.floats(-64, 64, width=16), st.floats(0.125, 8, width=16)), min_size=1, max_size=5)


@given(ELEMENTS, st.floats(-1, 1))
def test_a_difference_inside_the_spread_is_benign(elements: list[tuple[float, float]], share: float) -> None:
    centre, width = [c for c, _ in elements], [w for _, w in elements]
    moved = [c + share * w for c, w in elements]
    found = judge_noise(values(*centre), values(*moved), spread_of(centre, width))
    assert found is not None
    assert found.ratio <= 1.001 <= THRESHOLD


@given(ELEMENTS, st.data())
def test_a_difference_far_outside_is_reported_where_it_is(
    elements: list[tuple[float, float]], data: st.DataObject
) -> None:
    centre, width = [c for c, _ in elements], [w for _, w in elements]
    place = data.draw(st.integers(0, len(elements) - 1))
    moved = list(centre)
    moved[place] += 3 * max(width)
    found = judge_noise(values(*centre), values(*moved), spread_of(centre, width))
    assert found is not None
    assert found.ratio > THRESHOLD
    assert found.difference == pytest.approx(3 * max(width), rel=1e-3)
    flipped = max(width) > FLIPPED * (max(map(abs, centre)) + max(width))
    least = max(width) if flipped else FLOOR * max(width)
    assert found.allowed == pytest.approx(THRESHOLD * max(width[place], least), rel=1e-3)


@given(ELEMENTS)
def test_equal_results_have_no_ratio(elements: list[tuple[float, float]]) -> None:
    centre = [c for c, _ in elements]
    found = judge_noise(values(*centre), values(*centre), spread_of(centre, [w for _, w in elements]))
    assert found is not None
    assert found.ratio == 0.0


def test_no_spread_at_all_makes_any_difference_infinite() -> None:
    found = judge_noise(values(1, 2), values(1, 2.5), spread_of([1, 2], [0, 0]))
    assert found is not None
    assert found.ratio == math.inf


def test_the_spread_of_the_tensor_lends_a_floor_to_quiet_elements() -> None:
    noise = spread_of([1000, 2], [1, 0])
    near = judge_noise(values(1000, 2), values(1000, 2 + FLOOR), noise)
    far = judge_noise(values(1000, 2), values(1000, 2 + 3 * FLOOR), noise)
    assert near is not None
    assert far is not None
    assert near.ratio <= THRESHOLD < far.ratio


def test_which_elements_a_discontinuity_has_flipped_is_chance() -> None:
    noise = spread_of([1, 2], [1, 0])
    near = judge_noise(values(1, 2), values(1, 2 + THRESHOLD), noise)
    far = judge_noise(values(1, 2), values(1, 2.5 + THRESHOLD), noise)
    assert near is not None
    assert far is not None
    assert near.ratio <= THRESHOLD < far.ratio


def test_one_flip_before_a_normalisation_is_no_bug() -> None:
    sizes = TensorType("float32", (1, 1, 14))
    item = build(
        [node("Sigmoid", "x", "s"), node("Ceil", "s", "c"), node("InstanceNormalization", "c w b", "y")],
        {"x": full([[[-30.0] * 14]])},
        {"y": sizes},
        {"w": full([4.0]), "b": full([4.0])},
    )
    together = np.full((1, 1, 14), 4.0, np.float32)
    alone = np.full((1, 1, 14), 4.0 - 4.0 / math.sqrt(13), np.float32)
    alone[0, 0, 6] = 4.0 + 4.0 * math.sqrt(13)
    one_moved = judge_noise(Values(((full(together),),)), Values(((full(alone),),)), evaluate(noisy(item, 0)))
    assert one_moved is not None
    assert one_moved.ratio <= THRESHOLD


@pytest.mark.parametrize("wild", [math.nan, math.inf])
def test_noise_that_is_not_finite_decides_nothing(wild: float) -> None:
    assert judge_noise(values(1, 2), values(1, 3), spread_of([1, 2], [0, wild])) is None


def test_noise_of_another_shape_or_missing_decides_nothing() -> None:
    other = Values(((one(1, 2),),) + ((one(1),),) * ROUNDS)
    missing = Values(((None,),) * (1 + ROUNDS))
    assert judge_noise(values(1, 2), values(1, 3), other) is None
    assert judge_noise(values(1, 2), values(1, 3), missing) is None


@pytest.mark.parametrize("wild", [math.nan, math.inf])
def test_a_result_that_is_not_finite_is_far_outside_every_spread(wild: float) -> None:
    found = judge_noise(values(1, 2), values(1, wild), spread_of([1, 2], [5, 5]))
    assert found is not None
    assert found.ratio == math.inf


def test_the_worst_output_of_all_feeds_is_named() -> None:
    quiet = spread_of([1, 2], [0.5, 0.5]).results
    rows = (*quiet[:1], *quiet[:1], *quiet[1:], *quiet[1:])
    noise = Values(tuple((row[0], row[0]) for row in rows))
    plain = one(1, 2)
    reference = Values(((plain, plain), (plain, plain)))
    other = Values(((one(1, 2.5), plain), (plain, one(4, 2))))
    found = judge_noise(reference, other, noise)
    assert found is not None
    assert (found.feed, found.output, found.difference) == (1, 1, 3.0)


def test_flipping_integers_and_empty_outputs_are_weighed_too() -> None:
    noise = spread_of([3], [1], dtype="int64")
    want, got = Values(((one(3, dtype="int64"),),)), Values(((one(4, dtype="int64"),),))
    found = judge_noise(want, got, noise)
    assert found is not None
    assert found.ratio == 1.0
    nothing = Values(((one(),),))
    empty = judge_noise(nothing, nothing, Values(nothing.results * (1 + ROUNDS)))
    assert empty is not None
    assert empty.ratio == 0.0


def test_an_honest_rounding_difference_passes_and_a_wrong_constant_does_not() -> None:
    rng = np.random.default_rng(1)
    x = full(rng.uniform(-3, 3, (4, 16)))
    w = full(rng.uniform(-3, 3, (16, 4)))
    kind = TensorType("float32", (4, 4))
    item = build([node("MatMul", "x w", "y")], {"x": x}, {"y": kind}, {"w": w})
    noise = evaluate(noisy(item, noise_seed(item)))
    reference = evaluate(item)
    backwards = full((x.array[:, ::-1] @ w.array[::-1]).astype(np.float32))
    honest = judge_noise(reference, Values(((backwards,),)), noise)
    assert honest is not None
    assert honest.ratio <= THRESHOLD
    wrong = judge_noise(reference, Values(((full(backwards.array * 1.01),),)), noise)
    assert wrong is not None
    assert wrong.ratio > THRESHOLD
