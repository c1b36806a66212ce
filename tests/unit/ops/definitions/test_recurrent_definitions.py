"""Our definitions of RNN, GRU and LSTM, against ONNX Runtime, against torch, and against the formulas of the pages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from miscompile.core.tensor import Array
from miscompile.ops.definitions import recurrent
from miscompile.ops.definitions.evaluated_call import EvaluatedCall
from miscompile.ops.definitions.evaluator import evaluator

OPERATORS = {"RNN": recurrent.rnn, "GRU": recurrent.gru, "LSTM": recurrent.lstm}
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
FUNCTIONS = {"RNN": 1, "GRU": 2, "LSTM": 3}
OPERANDS = ("X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P")
STATES = (5, 6)
PLAIN = ("Relu", "Tanh", "Sigmoid", "Softsign", "Softplus")
DEFAULTED = ("LeakyRelu", "HardSigmoid", "Elu")
# ONNX Runtime takes zeros where these have no alpha or beta, so it gets all of them.
UNLIKE = ("Affine", "ThresholdedRelu", "ScaledTanh")
WITH_BETA = ("Affine", "ScaledTanh", "HardSigmoid")
WITHIN_ONE = ("Sigmoid", "HardSigmoid", "Tanh", "Softsign")


@dataclass(frozen=True)
class Call:
    """One call: the operands are None where they are left out, the results have an empty name."""

    operator: str
    operands: tuple[Array | None, ...]
    attributes: Mapping[str, Any]
    results: tuple[str, ...]

    def model(self) -> onnx.ModelProto:
        pairs = list(zip(OPERANDS, self.operands, strict=False))
        names = ["" if value is None else name for name, value in pairs]
        node = helper.make_node(self.operator, names, self.results, **self.attributes)
        inputs = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
            for name, value in pairs
            if value is not None
        ]
        outputs = [
            helper.make_tensor_value_info(name, inputs[0].type.tensor_type.elem_type, None)
            for name in self.results
            if name
        ]
        graph = helper.make_graph([node], "recurrent", inputs, outputs)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)

    def feeds(self) -> dict[str, Array]:
        return {name: value for name, value in zip(OPERANDS, self.operands, strict=False) if value is not None}

    def defined(self) -> list[Array]:
        """Return the results that the evaluator makes with our definition."""
        return list(evaluator(self.model()).run(None, self.feeds()))

    def computed(self) -> list[Array]:
        """Return ONNX Runtime's results."""
        options = onnxruntime.SessionOptions()
        options.log_severity_level, options.intra_op_num_threads = 4, 1
        session = onnxruntime.InferenceSession(
            self.model().SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        return list(session.run(None, self.feeds()))


def _activations(operator: str, directions: int, bounded: bool, rng: np.random.Generator) -> dict[str, Any]:
    complete = rng.random() < 0.5
    known = PLAIN + DEFAULTED + (UNLIKE if complete else ())
    names = [str(rng.choice(known)) for _ in range(FUNCTIONS[operator] * directions)]
    if bounded:
        gates = [str(rng.choice(WITHIN_ONE[: 2 if at % 3 == 0 else 4])) for at in range(len(names))]
        names = [name if at % 3 == 2 else gate for at, (name, gate) in enumerate(zip(names, gates, strict=True))]
    alphas = [float(rng.uniform(0.1, 0.9)) for name in names if name in DEFAULTED + UNLIKE]
    betas = [float(rng.uniform(0.1, 0.9)) for name in names if name in WITH_BETA]
    if not complete:
        alphas, betas = (values[: int(rng.integers(len(values) + 1))] for values in (alphas, betas))
    if operator != "RNN":  # ONNX Runtime's RNN minds the case of the names
        names = [str(rng.choice([name, name.lower(), name.upper()])) for name in names]
    # An empty list is no attribute: onnx's make_node cannot tell its type.
    lists = {"activations": names, "activation_alpha": alphas, "activation_beta": betas}
    return {name: value for name, value in lists.items() if value}


def _drawn(operator: str, seed: int) -> Call:
    """Return a call of layout 0 that ONNX Runtime takes and computes as the page says."""
    rng = np.random.default_rng(seed)
    steps, batch, size, hidden = (int(rng.integers(1, limit)) for limit in (5, 4, 4, 4))
    direction = str(rng.choice(["forward", "reverse", "bidirectional"]))
    directions, gates = 1 + (direction == "bidirectional"), GATES[operator]
    attributes: dict[str, Any] = {"direction": direction, "hidden_size": hidden}
    clipped, named = rng.random() < 0.4, rng.random() < 0.5
    if clipped:
        # ONNX Runtime does not clip the input of the function h of LSTM, so no cell reaches this limit: |C| grows by 1
        # in a step.
        attributes["clip"] = steps + 1.1 if operator == "LSTM" else 0.7
    if named:
        attributes |= _activations(operator, directions, operator == "LSTM" and clipped, rng)
    if operator != "RNN" and rng.random() < 0.5:
        attributes["linear_before_reset" if operator == "GRU" else "input_forget"] = 1

    def floats(*shape: int, scale: float = 1.0) -> Array:
        return rng.uniform(-scale, scale, shape).astype(np.float32)

    state = (directions, batch, hidden)
    optional: list[Array | None] = [floats(directions, 2 * gates * hidden), None, floats(*state)]
    if operator == "LSTM":
        optional += [floats(*state), floats(directions, 3 * hidden)]
    optional = [value if rng.random() < 0.5 else None for value in optional]
    started = any(value is not None for value in optional[2:4])
    if rng.random() < 0.5:  # ONNX Runtime forgets the initial states of an entry without steps
        optional[1] = rng.integers(1 if started else 0, steps + 1, batch).astype(np.int32)
    x = floats(steps, batch, size, scale=8.0 if clipped else 1.0)
    operands = (x, floats(directions, gates * hidden, size), floats(directions, gates * hidden, hidden), *optional)
    names = ("Y", "Y_h", "Y_c")[: 3 if operator == "LSTM" else 2]
    results = tuple(name if rng.random() < 0.7 else "" for name in names)
    return Call(operator, operands, attributes, results if any(results) else names)


@pytest.mark.parametrize("seed", range(150))
@pytest.mark.parametrize("operator", OPERATORS)
def test_a_call_has_the_results_of_onnx_runtime(operator: str, seed: int) -> None:
    call = _drawn(operator, seed)
    # ONNX Runtime needs the hidden size, which the page leaves optional.
    without = {name: value for name, value in call.attributes.items() if name != "hidden_size"}
    found, expected = replace(call, attributes=without).defined(), call.computed()
    for one, other in zip(found, expected, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4, err_msg=str(call))


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("operator", OPERATORS)
def test_layout_1_transposes_operands_and_results(operator: str, seed: int) -> None:
    call = _drawn(operator, seed)  # ONNX Runtime refuses layout 1
    turned = [
        value.swapaxes(0, 1) if value is not None and place in (0, *STATES) else value
        for place, value in enumerate(call.operands)
    ]
    batch_first = replace(call, operands=tuple(turned), attributes={**call.attributes, "layout": 1})
    names = [name for name in call.results if name]
    for name, one, other in zip(names, batch_first.defined(), call.defined(), strict=True):
        expected = other.transpose(2, 0, 1, 3) if name == "Y" else other.swapaxes(0, 1)
        np.testing.assert_array_equal(one, expected)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("operator", OPERATORS)
def test_small_floats_are_rounded_once(operator: str, dtype: Any) -> None:
    for seed in range(10):  # ONNX Runtime has float32 only
        call = _drawn(operator, seed)
        small, large = (
            replace(call, operands=tuple(_cast(value, dtype, to) for value in call.operands))
            for to in (dtype, np.float64)
        )
        for one, other in zip(small.defined(), large.defined(), strict=True):
            assert one.dtype == dtype
            np.testing.assert_array_equal(one, other.astype(dtype))


def _cast(value: Array | None, through: Any, to: Any) -> Array | None:
    return value if value is None or value.dtype == np.int32 else value.astype(through).astype(to)


ORDERS = {"RNN": (0,), "GRU": (1, 0, 2), "LSTM": (0, 2, 3, 1)}
"""The places of torch's gates among those of ONNX."""


@pytest.mark.parametrize("operator", OPERATORS)
def test_float64_has_the_results_of_torch(operator: str) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed here")
    steps, size, hidden, lengths = 5, 3, 4, np.array([5, 2, 3], np.int32)
    torch.manual_seed(0)
    layer = getattr(torch.nn, operator)(size, hidden, bidirectional=True, batch_first=True, dtype=torch.float64)
    x = torch.randn(len(lengths), steps, size, dtype=torch.float64)
    packed = torch.nn.utils.rnn.pack_padded_sequence(
        x, torch.tensor(lengths, dtype=torch.int64), batch_first=True, enforce_sorted=False
    )
    with torch.no_grad():
        made, last = layer(packed)
        y, _ = torch.nn.utils.rnn.pad_packed_sequence(made, batch_first=True, total_length=steps)
    states = last if operator == "LSTM" else (last,)
    weights = (_stacked(layer, f"weight_{kind}", operator) for kind in ("ih", "hh"))
    bias = np.concatenate([_stacked(layer, f"bias_{kind}", operator) for kind in ("ih", "hh")], axis=1)
    attributes = {"direction": "bidirectional", "layout": 1}
    if operator == "GRU":
        attributes |= {"linear_before_reset": 1}
    call = Call(operator, (x.numpy(), *weights, bias, lengths), attributes, ("Y", "Y_h", "Y_c")[: len(states) + 1])
    found = call.defined()
    np.testing.assert_allclose(found[0], y.numpy().reshape(found[0].shape), rtol=0, atol=1e-14)
    for one, state in zip(found[1:], states, strict=True):
        np.testing.assert_allclose(one, state.numpy().swapaxes(0, 1), rtol=0, atol=1e-14)


def _stacked(layer: Any, name: str, operator: str) -> Array:
    """Return a parameter of both directions with the gates in the order of ONNX."""
    both = [getattr(layer, f"{name}_l0{suffix}").detach().numpy() for suffix in ("", "_reverse")]
    order = np.argsort(ORDERS[operator])
    return np.stack([np.concatenate([np.split(one, GATES[operator])[gate] for gate in order]) for one in both])


def _once(function: str, x: Sequence[float], **attributes: Any) -> Array:
    """Return a function of `x`, as an RNN of one step that passes each element on to it."""
    column = np.array(x, np.float32).reshape(1, -1, 1)
    weights = np.ones((1, 1, 1), np.float32)
    call = Call("RNN", (column, weights, 0 * weights), {"activations": [function], **attributes}, ("Y",))
    return call.defined()[0].reshape(-1)


POINTS = (-30.0, -3.1, -1.0, -0.2, 0.0, 0.4, 0.9, 1.1, 2.7, 40.0)


@pytest.mark.parametrize("function", [*PLAIN, *DEFAULTED, "ThresholdedRelu"])
def test_a_function_is_the_operator_of_its_name_with_the_same_defaults(function: str) -> None:
    x = np.array(POINTS, np.float32)
    info = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, x.shape) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node(function, ["x"], ["y"])], "function", info[:1], info[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(_once(function.lower(), POINTS), session.run(None, {"x": x})[0], rtol=1e-6, atol=1e-6)


def test_functions_without_an_operator_have_no_defaults() -> None:
    x = np.array(POINTS)
    given: dict[str, Any] = {"activation_alpha": [0.5], "activation_beta": [2.0]}
    np.testing.assert_allclose(_once("Affine", POINTS, **given), 0.5 * x + 2, rtol=1e-6)
    np.testing.assert_allclose(_once("ScaledTanh", POINTS, **given), 0.5 * np.tanh(2 * x), rtol=1e-6)
    for function in ("Affine", "ScaledTanh"):
        with pytest.raises(ValueError, match="by default"):  # ONNX Runtime takes zeros
            _once(function, POINTS, activation_alpha=[0.5])


def test_thresholded_relu_keeps_the_threshold() -> None:
    # ONNX Runtime's RNN makes it zero, as the operator ThresholdedRelu does.
    np.testing.assert_array_equal(_once("ThresholdedRelu", [1.0, 0.75], activation_alpha=[1.0]), [1.0, 0.0])


def test_clip_bounds_the_input_of_each_function_of_lstm() -> None:
    # ONNX Runtime does not clip the cell before the function h.
    x, w, r = np.zeros((1, 1, 1)), np.zeros((1, 4, 1)), np.zeros((1, 4, 1))
    state, bias = np.full((1, 1, 1), 3.0), np.array([[9.0, 9.0, 9.0, -9.0, 0.0, 0.0, 0.0, 0.0]])
    call = Call("LSTM", (x, w, r, bias, None, None, state), {"clip": 0.5}, ("Y", "Y_h", "Y_c"))
    gate = 1 / (1 + np.exp(-0.5))
    cell = gate * 3 + gate * np.tanh(-0.5)
    y, hidden, last = call.defined()
    np.testing.assert_allclose(last.item(), cell, rtol=1e-14)
    np.testing.assert_allclose([y.item(), hidden.item()], gate * np.tanh(0.5), rtol=1e-14)


@pytest.mark.parametrize("direction", ["forward", "reverse"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_an_entry_without_steps_keeps_its_initial_state(operator: str, direction: str) -> None:
    # ONNX Runtime returns zeros for its last states; the page does not say.
    rng = np.random.default_rng(0)
    x, state = rng.uniform(size=(2, 2, 1)), rng.uniform(size=(1, 2, 1))
    weights = np.ones((1, GATES[operator], 1))
    lengths = np.array([0, 1], np.int32)
    states = (state, 2 * state)[: 2 if operator == "LSTM" else 1]
    call = Call(
        operator,
        (x, weights, weights, None, lengths, *states),
        {"direction": direction},
        ("Y", "Y_h", "Y_c")[: 1 + len(states)],
    )
    y, *last = call.defined()
    assert not y[:, :, 0].any()
    assert not y[1].any()
    np.testing.assert_array_equal(last[0][:, 1], y[0, :, 1])
    for one, initial in zip(last, states, strict=True):
        np.testing.assert_array_equal(one[:, 0], initial[:, 0])


@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize(("steps", "batch"), [(0, 2), (3, 0), (0, 0)])
def test_sizes_of_zero(operator: str, layout: int, steps: int, batch: int) -> None:
    # Without an evaluator or ONNX Runtime, whose GRU and LSTM abort the process on a batch of none.
    x = np.ones((batch, steps, 2) if layout else (steps, batch, 2), np.float32)
    w, r = (np.ones((2, 3 * GATES[operator], size), np.float32) for size in (2, 3))
    given = EvaluatedCall((x, w, r), {"direction": "bidirectional", "layout": layout}, 22, (True, True))
    found = OPERATORS[operator](given)
    shapes = [(batch, steps, 2, 3), (batch, 2, 3)] if layout else [(steps, 2, batch, 3), (2, batch, 3)]
    assert [one.shape for one in found] == shapes
    assert not found[1].any()


def test_values_that_overflow_warn_of_nothing() -> None:
    np.testing.assert_array_equal(_once("Sigmoid", [-np.inf, np.inf, np.nan]), np.array([0, 1, np.nan]))
    x, weights = np.full((1, 1, 1), 6e4, np.float16), np.full((1, 1, 1), 2, np.float16)
    call = Call("RNN", (x, weights, weights), {"activations": ["Relu"]}, ("Y",))
    np.testing.assert_array_equal(call.defined()[0].reshape(-1), [np.inf])


@pytest.mark.parametrize(
    ("attributes", "lengths", "error"),
    [
        ({"clip": -1.0}, [1], ValueError),  # ONNX Runtime's RNN takes it as no clip, and its GRU and LSTM refuse it
        ({"direction": "bidirectional", "activations": ["Tanh"]}, [1], ValueError),
        ({"activations": ["Gelu"]}, [1], KeyError),
        ({"direction": "backward"}, [1], KeyError),
        ({}, [3], ValueError),
        ({}, [-1], ValueError),
        ({}, [1, 1], ValueError),
    ],
)
def test_what_the_page_does_not_allow_is_refused(
    attributes: dict[str, Any], lengths: list[int], error: type[Exception]
) -> None:
    x, weights = np.ones((2, 1, 1), np.float32), np.ones((2, 1, 1), np.float32)
    given = EvaluatedCall((x, weights, weights, None, np.array(lengths, np.int32)), attributes, 22, (True,))
    with pytest.raises(error):
        recurrent.rnn(given)
