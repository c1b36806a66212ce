"""Definitions of the recurrent layers RNN, GRU and LSTM.

https://onnx.ai/onnx/operators/onnx__RNN.html, onnx__GRU.html, onnx__LSTM.html

onnx's evaluator ignores sequence_lens, clip and input_forget, and the activations of GRU and LSTM.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from miscompile.core.tensor import Array
from miscompile.ops.definitions.evaluated_call import EvaluatedCall, wide

_Function = Callable[[Array], Array]
_Step = Callable[["_Weights", Sequence[_Function], Array, tuple[Array, ...]], tuple[Array, ...]]
"""One step of a batch: from the weights, the activation functions, x [batch, input] and the states before the step
[batch, hidden], the hidden state first, it makes the states behind the step."""

_SEQUENCE_LENS = 4
_PEEPHOLES = 7
_HIDDEN, _CELL = 5, 6  # places of the initial states
_BACKWARD: Mapping[str, tuple[bool, ...]] = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}

# The functions of the page, and the defaults of their alpha and beta, which are those of the ONNX operators of the
# name. No operator is named Affine or ScaledTanh (ONNX Runtime takes zeros there, of which neither page speaks), so
# they have none. ThresholdedRelu keeps x = alpha here, as the pages of the layers say; its own operator does not.
_FORMULAS: Mapping[str, tuple[Callable[..., Array], Mapping[str, float | None]]] = {
    "relu": (lambda x: np.maximum(x, 0), {}),
    "tanh": (np.tanh, {}),
    "sigmoid": (lambda x: np.exp(-np.logaddexp(0, -x)), {}),  # 1 / (1 + e^-x), which never overflows
    "affine": (lambda x, alpha, beta: alpha * x + beta, {"alpha": None, "beta": None}),
    "leakyrelu": (lambda x, alpha: np.where(x >= 0, x, alpha * x), {"alpha": 0.01}),
    "thresholdedrelu": (lambda x, alpha: np.where(x >= alpha, x, 0), {"alpha": 1.0}),
    "scaledtanh": (lambda x, alpha, beta: alpha * np.tanh(beta * x), {"alpha": None, "beta": None}),
    "hardsigmoid": (lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1), {"alpha": 0.2, "beta": 0.5}),
    "elu": (lambda x, alpha: np.where(x >= 0, x, alpha * np.expm1(x)), {"alpha": 1.0}),
    "softsign": (lambda x: x / (1 + np.abs(x)), {}),
    "softplus": (lambda x: np.logaddexp(0, x), {}),
}


@dataclass(frozen=True, slots=True)
class _Weights:
    """The weights of one direction, gate by gate.

    w [gates, hidden, input], r [gates, hidden, hidden], wb and rb [gates, hidden], and the peepholes p [3, hidden], of
    the gates i, o and f.
    """

    w: Array
    r: Array
    wb: Array
    rb: Array
    p: Array

    def of_input(self, gate: int, x: Array) -> Array:
        """Return Xt*(W^T) + Wb, [batch, hidden]."""
        return np.asarray(x @ self.w[gate].T + self.wb[gate])

    def of_state(self, gate: int, hidden: Array) -> Array:
        """Return Ht-1*(R^T) + Rb, [batch, hidden]."""
        return np.asarray(hidden @ self.r[gate].T + self.rb[gate])

    def of_both(self, gate: int, x: Array, hidden: Array) -> Array:
        """Return Xt*(W^T) + Ht-1*(R^T) + Wb + Rb, [batch, hidden]."""
        return self.of_input(gate, x) + self.of_state(gate, hidden)


@dataclass(frozen=True, slots=True)
class _Layer:
    """What the three operators differ in: the number of gates, the activation functions that a direction has where
    the node names none, the places of the initial states, and the equations of one step.
    """

    gates: int
    functions: tuple[str, ...]
    states: tuple[int, ...]
    step: _Step


def rnn(given: EvaluatedCall) -> tuple[Array, ...]:
    """RNN: Y [steps, directions, batch, hidden] and Y_h [directions, batch, hidden]."""
    return _results(given, _Layer(1, ("Tanh",), (_HIDDEN,), _rnn_step))


def gru(given: EvaluatedCall) -> tuple[Array, ...]:
    """GRU: Y [steps, directions, batch, hidden] and Y_h [directions, batch, hidden]."""
    step = partial(_gru_step, given.integer("linear_before_reset", 0) != 0)
    return _results(given, _Layer(3, ("Sigmoid", "Tanh"), (_HIDDEN,), step))


def lstm(given: EvaluatedCall) -> tuple[Array, ...]:
    """LSTM: Y [steps, directions, batch, hidden], and Y_h and Y_c [directions, batch, hidden]."""
    step = partial(_lstm_step, given.integer("input_forget", 0) != 0)
    return _results(given, _Layer(4, ("Sigmoid", "Tanh", "Tanh"), (_HIDDEN, _CELL), step))


def _rnn_step(
    weights: _Weights, functions: Sequence[_Function], x: Array, states: tuple[Array, ...]
) -> tuple[Array, ...]:
    return (functions[0](weights.of_both(0, x, states[0])),)


def _gru_step(
    linear_before_reset: bool, weights: _Weights, functions: Sequence[_Function], x: Array, states: tuple[Array, ...]
) -> tuple[Array, ...]:
    (f, g), (hidden,) = functions, states
    update, reset = f(weights.of_both(0, x, hidden)), f(weights.of_both(1, x, hidden))
    carried = reset * weights.of_state(2, hidden) if linear_before_reset else weights.of_state(2, reset * hidden)
    return ((1 - update) * g(weights.of_input(2, x) + carried) + update * hidden,)


def _lstm_step(
    input_forget: bool, weights: _Weights, functions: Sequence[_Function], x: Array, states: tuple[Array, ...]
) -> tuple[Array, ...]:
    (f, g, h), (hidden, cell) = functions, states
    peep_i, peep_o, peep_f = weights.p
    i = f(weights.of_both(0, x, hidden) + peep_i * cell)
    # The page says of input_forget only that it couples the two gates. ONNX Runtime takes 1 - it for ft, which is the
    # coupled input and forget gate of Greff et al., "LSTM: A Search Space Odyssey".
    forget = 1 - i if input_forget else f(weights.of_both(2, x, hidden) + peep_f * cell)
    cell = forget * cell + i * g(weights.of_both(3, x, hidden))
    output = f(weights.of_both(1, x, hidden) + peep_o * cell)
    # The page clips "the input of activations", and calls the attribute the clip of the cell. ONNX Runtime and OpenVINO
    # clip what the gates take, and not the cell before h.
    return output * h(cell), cell


def _results(given: EvaluatedCall, layer: _Layer) -> tuple[Array, ...]:
    """Return as many results as the node lists; those between them that have no name are computed too.

    All is computed with the dimensions of layout 0, and rounded once.
    """
    batch_first = given.integer("layout", 0) == 1
    x = wide(given.operand(0)).swapaxes(0, int(batch_first))
    lengths = _lengths(given, *x.shape[:2])
    with np.errstate(all="ignore"):  # infinities and NaN are operands as any others
        runs = [_run(step, x, lengths, initial, backward) for step, initial, backward in _runs(given, layer)]
        y, *states = (np.stack(parts) for parts in zip(*runs, strict=True))
        if batch_first:  # y is [directions, steps, batch, hidden], the states are [directions, batch, hidden]
            found = [y.transpose(2, 1, 0, 3), *(state.swapaxes(0, 1) for state in states)]
        else:
            found = [y.swapaxes(0, 1), *states]
        return tuple(one.astype(given.operand(0).dtype) for one in found[: len(given.named)])


_Cell = Callable[[Array, tuple[Array, ...]], tuple[Array, ...]]
"""A step whose weights and functions are given."""


def _runs(given: EvaluatedCall, layer: _Layer) -> Iterator[tuple[_Cell, tuple[Array, ...], bool]]:
    """Yield the cell of each direction, its initial states, and whether it goes backwards."""
    directions = _BACKWARD[given.text("direction", "forward")]
    count = len(layer.functions)
    functions = _functions(given, layer.functions * len(directions))
    for place, backward in enumerate(directions):
        own = functions[place * count : (place + 1) * count]
        yield partial(layer.step, _weights(given, place, layer.gates), own), _initial(given, layer, place), backward


def _run(cell: _Cell, x: Array, lengths: Array, states: tuple[Array, ...], backward: bool) -> tuple[Array, ...]:
    """Return Y of one direction, [steps, batch, hidden], and its last states, [batch, hidden].

    Each entry of the batch has its own length. Y is zero behind it, and the states stay what they are there: those
    of an entry without steps are the initial states. The page leaves them open; ONNX Runtime returns zeros.
    """
    steps, entries = x.shape[0], np.arange(x.shape[1])
    y = np.zeros((steps, *states[0].shape), x.dtype)
    for step in range(steps):
        live = step < lengths
        places = np.where(live, lengths - 1 - step if backward else step, 0)
        found = cell(x[places, entries], states)
        states = tuple(np.where(live[:, None], new, old) for new, old in zip(found, states, strict=True))
        y[places[live], entries[live]] = states[0][live]
    return y, *states


def _lengths(given: EvaluatedCall, steps: int, batch: int) -> Array:
    """Return the steps of each entry of the batch. Raises ValueError where they are no such numbers."""
    found = given.optional(_SEQUENCE_LENS)
    lengths = np.full(batch, steps) if found is None else np.asarray(found).astype(np.int64)
    if lengths.shape != (batch,) or (lengths < 0).any() or (lengths > steps).any():
        raise ValueError(f"lengths {lengths} of {batch} sequences with {steps} steps")
    return lengths


def _weights(given: EvaluatedCall, direction: int, gates: int) -> _Weights:
    """Return the weights of one direction. The hidden size is that of R, as the attribute may be left out."""
    w, r = wide(given.operand(1))[direction], wide(given.operand(2))[direction]
    hidden = r.shape[-1]
    b, p = given.optional(3), given.optional(_PEEPHOLES)
    wb, rb = (np.zeros(2 * gates * hidden, w.dtype) if b is None else wide(b)[direction]).reshape(2, gates, hidden)
    peepholes = (np.zeros(3 * hidden, w.dtype) if p is None else wide(p)[direction]).reshape(3, hidden)
    return _Weights(w.reshape(gates, hidden, w.shape[-1]), r.reshape(gates, hidden, hidden), wb, rb, peepholes)


def _initial(given: EvaluatedCall, layer: _Layer, direction: int) -> tuple[Array, ...]:
    """Return the initial states of one direction, each [batch, hidden]: zeros where they are left out."""
    layout = given.integer("layout", 0)  # also the axis of the directions
    shape = (given.operand(0).shape[1 - layout], given.operand(2).shape[-1])
    found = (given.optional(place) for place in layer.states)
    kind = wide(given.operand(0)).dtype
    return tuple(
        np.zeros(shape, kind) if one is None else wide(one).take(direction, layout).reshape(shape) for one in found
    )


def _functions(given: EvaluatedCall, defaults: tuple[str, ...]) -> list[_Function]:
    """Return the activation functions of all directions, which clip what they take where the node says so.

    Each function takes the next alpha and the next beta, if it has them. Raises KeyError for a function that the page
    does not know, and ValueError where there are too few functions, one has no alpha or beta, or clip is negative.
    """
    names = given.attributes.get("activations") or defaults
    if len(names) < len(defaults):
        raise ValueError(f"{len(names)} activations of {len(defaults)}")
    rest = {name: iter(given.attributes.get(f"activation_{name}") or ()) for name in ("alpha", "beta")}
    clip = given.real("clip", np.inf)
    if clip < 0:
        raise ValueError(f"clip is {clip}")
    functions: list[_Function] = []
    for name in names[: len(defaults)]:  # RNN has two by default, also for one direction
        formula, parameters = _FORMULAS[str(name).lower()]
        values = {parameter: next(rest[parameter], default) for parameter, default in parameters.items()}
        if None in values.values():
            raise ValueError(f"{name} has no {' and '.join(values)} by default")
        reals = {parameter: float(np.float32(value)) for parameter, value in values.items()}
        functions.append(partial(_activation, partial(formula, **reals), clip))
    return functions


def _activation(formula: _Function, clip: float, x: Array) -> Array:
    return np.asarray(formula(np.clip(x, -clip, clip)))
