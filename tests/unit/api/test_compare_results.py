"""The comparison of supplied results: laws that hold for all arrays, and what each element type does.

Noise runs are evaluated by onnx's reference implementation in this process; `tests/process/test_api.py` has the worker.
"""

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from onnx import parser
from onnx.reference import ReferenceEvaluator

from miscompile.api import comparison
from miscompile.api.comparison import compare
from miscompile.base.errors import ModelError, UsageError
from miscompile.core.case import Case
from miscompile.core.outcome import Outcome, Values
from miscompile.core.tensor import Array
from miscompile.graph.foreign import from_foreign, to_foreign
from miscompile.oracles.montecarlo import joined, noise_seed, noise_twins

QUICK = settings(max_examples=20, deadline=None)


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no worker be started."""
    monkeypatch.setattr(comparison, "_noise", lambda case, target, seconds: evaluated(case))


def evaluated(case: Case) -> Outcome:
    return joined([_values(twin) for twin in noise_twins(case, noise_seed(case))])


def _values(case: Case) -> Values:
    evaluator = ReferenceEvaluator(onnx.load_model_from_string(case.program.payload))
    names = [port.name for port in case.program.inputs]
    feeds = ({name: to_foreign(value) for name, value in zip(names, feed, strict=True)} for feed in case.feeds)
    with np.errstate(all="ignore"):
        return Values(tuple(tuple(map(from_foreign, map(np.asarray, evaluator.run(None, feed)))) for feed in feeds))


def model_of(types: str, body: str, results: str, opset: int = 19) -> onnx.ModelProto:
    return parser.parse_model(f'<ir_version: 10, opset_import: ["": {opset}]> g ({types}) => ({results}) {{ {body} }}')


def moved(dtype: str) -> onnx.ModelProto:
    """Return a model whose output is its input in another order, so that every bit is known."""
    return model_of(f"{dtype}[3,2] x", "y = Transpose(x)", f"{dtype}[2,3] y", opset=21)


SUM = model_of("float[n,16] x, float[16,3] w", "a = MatMul(x, w) y = Tanh(a)", "float[n,3] y")
INPUTS = {
    "x": np.random.default_rng(1).standard_normal((4, 16)).astype(np.float32),
    "w": np.random.default_rng(2).standard_normal((16, 3)).astype(np.float32),
}
RIGHT = np.tanh(INPUTS["x"].astype(np.float64) @ INPUTS["w"]).astype(np.float32)

TYPES: dict[str, Any] = {
    "float": np.float32, "float16": np.float16, "double": np.float64, "int8": np.int8, "uint64": np.uint64,
    "int64": np.int64, "bool": np.bool_, "bfloat16": ml_dtypes.bfloat16, "float8e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8e5m2": ml_dtypes.float8_e5m2,
}  # fmt: skip


def words(dtype: Any) -> st.SearchStrategy[Array]:
    """Draw arrays of any bits, NaN of all payloads and infinities among them."""
    kind = np.dtype(dtype)
    if kind == np.bool_:
        return arrays.arrays(np.bool_, (2, 3))
    return arrays.arrays(np.dtype(f"u{kind.itemsize}"), (2, 3)).map(lambda found: found.view(kind))


def everyday(dtype: Any) -> st.SearchStrategy[Array]:
    """Draw arrays of all integers, and of floats that are far from overflow."""
    if np.dtype(dtype).kind in "iub":
        return words(dtype)
    return arrays.arrays(np.float64, (2, 3), elements=st.floats(-100, 100)).map(lambda found: found.astype(dtype))


@pytest.mark.parametrize("name", TYPES)
@QUICK
@given(data=st.data())
def test_a_result_equals_itself(name: str, data: st.DataObject) -> None:
    y = data.draw(words(TYPES[name]))
    found = compare([y.copy()], [y], moved(name), [np.ascontiguousarray(y.T)])
    assert (found.verdict, found.ok) == ("equal", True)


@pytest.mark.parametrize("name", TYPES)
@QUICK
@given(data=st.data())
def test_an_element_that_is_only_moved_must_have_its_bits(name: str, data: st.DataObject) -> None:
    y, other = (data.draw(everyday(TYPES[name])) for _ in range(2))
    place = (data.draw(st.integers(0, 1)), data.draw(st.integers(0, 2)))
    actual = y.copy()
    actual[place] = other[place]
    found = compare({"y": actual}, {"y": y}, moved(name), [np.ascontiguousarray(y.T)])
    differs = actual[place] != y[place]
    assert found.verdict == ("wrong" if differs else "equal")
    assert found["y"].wrong.sum() == differs
    assert found["y"].wrong[place] == differs


@QUICK
@given(place=st.tuples(st.integers(0, 3), st.integers(0, 2)), times=st.floats(1.01, 1e6), sign=st.sampled_from([-1, 1]))
def test_an_element_beyond_what_rounding_explains_is_told(place: tuple[int, int], times: float, sign: int) -> None:
    allowed = compare([RIGHT * np.float32(1 + 2e-7)], [RIGHT], SUM, INPUTS)["y"].allowed
    actual = RIGHT.astype(np.float64)
    actual[place] += sign * times * allowed[place]
    rounded = actual.astype(np.float32)
    found = compare([rounded], [RIGHT], SUM, INPUTS)["y"]
    gap = np.abs(rounded.astype(np.float64) - RIGHT)
    assert found.verdict == "wrong"
    assert found.rule == "monte-carlo"
    np.testing.assert_array_equal(found.wrong, gap > allowed)
    assert found.wrong[place]


@QUICK
@given(share=arrays.arrays(np.float64, (4, 3), elements=st.floats(-0.9, 0.9)))
def test_differences_within_the_bound_are_rounding(share: Array) -> None:
    allowed = compare([RIGHT * np.float32(1 + 2e-7)], [RIGHT], SUM, INPUTS)["y"].allowed
    actual = (RIGHT + share * allowed).astype(np.float32)
    assert compare([actual], [RIGHT], SUM, INPUTS).ok


def test_the_bound_follows_the_program() -> None:
    """The bound of a difference is that of its operands, and in float16 2**13 times that of float32."""
    bounds = {}
    kinds: dict[str, Any] = {"float": np.float32, "float16": np.float16}
    for name, dtype in kinds.items():
        model = model_of(f"{name}[3] a, {name}[3] b", "s = Add(a, b) y = Sub(s, a)", f"{name}[3] y")
        a: Array = np.array([1, 64, 512.25], dtype)
        b: Array = np.array([0.7, 0.7, 0.7], dtype)
        right = (a + b) - a
        bounds[name] = compare([right * dtype(1.002)], [right], model, [a, b])["y"].allowed
    assert 512 * 16 * 2.0**-23 < bounds["float"][2] < 512 * 64 * 2.0**-23
    assert 512 * 16 * 2.0**-10 < bounds["float16"][2] < 512 * 64 * 2.0**-10


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, np.float16])
def test_a_cast_to_a_small_float_may_fall_to_the_next_number_at_a_tie_only(dtype: Any) -> None:
    names = {np.dtype(value): name for name, value in TYPES.items()}
    code = {"bfloat16": 16, "float8e4m3fn": 17, "float8e5m2": 19, "float16": 10}[names[np.dtype(dtype)]]
    name = names[np.dtype(dtype)]
    model = model_of("float[4] x", f"d = Mul(x, x) y = Cast <to = {code}> (d)", f"{name}[4] y")
    x = np.array([1.3, 2.7, 3.1, 0.0], np.float32)
    right = (x * x).astype(dtype)
    bits = right.view(np.dtype(f"u{np.dtype(dtype).itemsize}"))
    assert compare([right.copy()], [right], model, [x]).verdict == "equal"
    wrong = bits.copy()
    wrong[1] += 2 if dtype is np.float16 else 1
    found = compare([wrong.view(dtype)], [right], model, [x])
    one = found["y"]
    assert found.verdict in ("wrong", "rounding")
    if dtype in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
        assert found.verdict == "wrong", "the product is far from a tie, so that rounding cannot reach the next number"
    far = bits.copy()
    far[1] = 0
    assert compare([far.view(dtype)], [right], model, [x]).verdict == "wrong"
    assert one.difference.shape == one.allowed.shape == one.allowed_ulps.shape == (4,)


def test_whole_numbers_must_agree_in_every_bit() -> None:
    feed = {name: np.rint(value * 3) for name, value in INPUTS.items()}
    model = model_of("float[n,16] x, float[16,3] w", "y = MatMul(x, w)", "float[n,3] y")
    right = feed["x"] @ feed["w"]
    actual = right.copy()
    actual[1, 1] = np.nextafter(actual[1, 1], np.float32(np.inf))
    found = compare([actual], [right], model, feed)["y"]
    assert (found.verdict, found.rule, int(found.wrong.sum())) == ("wrong", "exact", 1)
    assert "no rounding can reach it" in found.why


def test_integers_that_rounding_decides_are_not_judged_by_it() -> None:
    """A truncation at its edge may give both numbers; one that is far from an edge may not."""
    model = model_of("float[2] x", "d = Mul(x, x) y = Cast <to = 7> (d)", "int64[2] y")
    x = np.array([2.0, 1.3], np.float32)
    near = compare([np.array([3, 1])], [np.array([4, 1])], model, [x])
    assert near.verdict == "rounding"
    x = np.array([1.2, 1.3], np.float32)
    assert compare([np.array([1, 2])], [np.array([1, 1])], model, [x]).verdict == "wrong"


DIVISION = model_of("float[3] x, float[3] w", "y = Div(x, w)", "float[3] y")
X, W = np.array([0.3, 3, -0.3], np.float32), np.array([0, 7, 0], np.float32)
with np.errstate(all="ignore"):
    QUOTIENTS = X / W


@pytest.mark.parametrize(
    ("actual", "verdict"),
    [
        ([np.inf, 3 / 7, -np.inf], "equal"),
        ([np.nan, 3 / 7, -np.inf], "undecided"),
        ([np.inf, np.nan, -np.inf], "wrong"),
        ([np.inf, np.inf, -np.inf], "wrong"),
        ([np.nan, 0.9, -np.inf], "wrong"),
        ([np.inf, 3 / 7 * (1 + 3e-7), -np.inf], "rounding"),
    ],
)
def test_numbers_that_are_not_finite(actual: Sequence[float], verdict: str) -> None:
    found = compare([np.array(actual, np.float32)], [QUOTIENTS], DIVISION, [X, W])
    assert found.verdict == verdict
    assert found.ok == (verdict in ("equal", "rounding"))


def test_nan_that_the_expected_result_alone_has_is_wrong() -> None:
    broken = RIGHT.copy()
    broken[0, 0] = np.nan
    found = compare([RIGHT], [broken], SUM, INPUTS)
    assert found.verdict == "wrong"
    assert "expected values are not what the program computes" in found.why


def test_zeros_of_either_sign_are_equal() -> None:
    zeros = np.zeros((2, 3), np.float32)
    assert compare([-zeros], [zeros], moved("float"), [zeros.T]).verdict == "equal"


def test_results_that_belong_to_other_inputs_are_not_judged() -> None:
    other = {"x": INPUTS["x"] + 1, "w": INPUTS["w"]}
    found = compare([RIGHT * np.float32(1 + 2e-7)], [RIGHT], SUM, other)
    assert found.verdict == "undecided"
    assert "neither result is what the program computes" in found.why


def test_without_inputs_only_equal_results_are_decided() -> None:
    assert compare([RIGHT], [RIGHT], SUM).verdict == "equal"
    found = compare([RIGHT * np.float32(1 + 2e-7)], [RIGHT], SUM)
    assert (found.verdict, found.ok) == ("undecided", False)
    assert np.isnan(found["y"].allowed).all()


@pytest.mark.parametrize(
    ("actual", "why"),
    [
        ([RIGHT[:2]], "shape [2, 3] instead of [4, 3]"),
        ([RIGHT.astype(np.float64)], "float64 instead of float32"),
        ([], "output is missing"),
        ({}, "output is missing"),
    ],
)
def test_another_type_or_shape_or_none_is_wrong(actual: Any, why: str) -> None:
    found = compare(actual, [RIGHT], SUM, INPUTS)
    assert found.verdict == "wrong"
    assert found.outputs[0].rule == "structure"
    assert why in found.why
    assert found["y"].wrong.size == 0


@pytest.mark.parametrize(
    ("actual", "expected", "inputs", "text"),
    [
        ([RIGHT], [RIGHT.astype(np.float64)], INPUTS, "expected: 'y' is float64 where ONNX infers float32"),
        ([RIGHT], {"z": RIGHT}, INPUTS, "expected: the model has no 'z'; it has: y"),
        ([RIGHT, RIGHT], [RIGHT], INPUTS, "actual: 2 arrays for 1"),
        ([RIGHT], [RIGHT], {"x": INPUTS["x"]}, "inputs: there is no array for 'w'"),
        ([RIGHT], [RIGHT], [INPUTS["x"], INPUTS["w"].astype(np.float64)], "'w' is an array of float64"),
        ([RIGHT], [RIGHT], [INPUTS["x"], INPUTS["w"][:5]], "inputs: 'w' has size 5 where 16 is declared"),
        (RIGHT, [RIGHT], INPUTS, "actual: give a dict of arrays by name, or a list"),
    ],
)
def test_arrays_that_do_not_fit_the_model_are_usage_errors(actual: Any, expected: Any, inputs: Any, text: str) -> None:
    with pytest.raises(UsageError) as error:
        compare(actual, expected, SUM, inputs)
    assert text in str(error.value)


def test_models_come_as_files_and_bytes(tmp_path: Any) -> None:
    onnx.save(SUM, tmp_path / "model.onnx")
    for program in (SUM.SerializeToString(), tmp_path / "model.onnx", str(tmp_path / "model.onnx")):
        assert compare([RIGHT], [RIGHT], program, INPUTS).ok
    for broken in (b"nonsense", tmp_path / "none.onnx"):
        with pytest.raises(ModelError):
            compare([RIGHT], [RIGHT], broken)
    with pytest.raises(UsageError, match="int is no ONNX model"):
        compare([RIGHT], [RIGHT], 3)


def test_lists_of_numbers_get_the_types_of_the_model() -> None:
    model = model_of("int8[2] x", "y = Neg(x)", "int8[2] y")
    assert compare([[-1, -2]], [[-1, -2]], model, [[1, 2]]).verdict == "equal"
    assert compare([[-1, -3]], [[-1, -2]], model, [[1, 2]]).verdict == "wrong"


def test_the_worst_output_decides_and_is_named() -> None:
    model = model_of("float[2,3] x", "y = Tanh(x) z = Neg(x)", "float[2,3] y, float[2,3] z")
    x = INPUTS["x"][:2, :3]
    y, z = np.tanh(x), -x
    found = compare([y, z + 1], [y, z], model, [x])
    assert [one.verdict for one in found.outputs] == ["equal", "wrong"]
    assert found.verdict == "wrong"
    assert found.why.startswith("z: 6 of 6 elements are wrong; at [")
    with pytest.raises(KeyError):
        found["none"]
