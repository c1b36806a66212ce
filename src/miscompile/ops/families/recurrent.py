"""Recurrent layers: RNN, GRU and LSTM, with their optional operands and outputs.

Sources: the operator pages of the ONNX documentation. A series is (time, batch, features) in layout 0, and
(batch, time, features) in layout 1.
"""

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from miscompile.base.dtypes import FLOATS
from miscompile.graph.attributes import PlainValue, attributes
from miscompile.graph.model import TensorType
from miscompile.ops.facts import Bounds, Exactness
from miscompile.ops.page_rules import shape_of
from miscompile.ops.rounding import rounded
from miscompile.ops.shapes import draw_count
from miscompile.ops.spec import Call, Operand, OpSpec, Shape, Site

_FAMILY = "recurrent"
_LAYOUT_SINCE = 14
"""The opset that brings the attribute `layout`."""
_GATES = ("Sigmoid", "HardSigmoid")
"""Activations with values in [0, 1]."""
_SQUASHING = ("Tanh", "Softsign")
"""Activations with values in [-1, 1] that do not enlarge."""
_OPEN = (*_SQUASHING, "Relu", "LeakyRelu")
"""Activations that do not enlarge."""


@dataclass(frozen=True, slots=True)
class _Cell:
    """A kind of recurrent cell: number of gates, activations to choose from in order, defaults, and outputs."""

    gates: int
    activations: tuple[tuple[str, ...], ...]
    outputs: int
    cell_state: bool = False


_CELLS: Mapping[str, _Cell] = {
    "RNN": _Cell(1, ((*_OPEN, "Sigmoid"),), 2),
    "GRU": _Cell(3, (_GATES, _OPEN), 2),
    "LSTM": _Cell(4, (_GATES, _SQUASHING, _SQUASHING), 3, cell_state=True),
}


def _sample(site: Site, op: str) -> Call:
    """Draw a layer of kind `op`."""
    rng, cell = site.rng, _CELLS[op]
    batch_first = site.opset >= _LAYOUT_SINCE and rng.random() < 0.06
    x = _series(site, batch_first=batch_first)
    steps, batch, features = (x.shape[1], x.shape[0], x.shape[2]) if batch_first else x.shape
    direction = rng.choice((None, "forward", "reverse", "bidirectional"))
    ways, hidden = 2 if direction == "bidirectional" else 1, draw_count(rng, site.limits, 4)
    state = (batch, ways, hidden) if batch_first else (ways, batch, hidden)
    inputs: list[Operand | None] = [
        x,
        site.weight((ways, cell.gates * hidden, features)),
        site.weight((ways, cell.gates * hidden, hidden)),
        site.weight((ways, 2 * cell.gates * hidden)) if rng.random() < 0.6 else None,
        _lengths(site, steps, batch) if rng.random() < 0.3 else None,
        site.weight(state) if rng.random() < 0.4 else None,
    ]
    if cell.cell_state:
        inputs.append(site.weight(state) if rng.random() < 0.4 else None)
        inputs.append(site.weight((ways, 3 * hidden)) if rng.random() < 0.2 else None)
    while inputs[-1] is None:
        inputs.pop()
    found: dict[str, PlainValue | None] = {"hidden_size": hidden, "direction": direction}
    found["layout"] = 1 if batch_first else rng.choice((None, None, None, 0)) if site.opset >= _LAYOUT_SINCE else None
    if op == "RNN" and rng.random() < 0.15:
        found |= _parametric(rng, ways)
    elif rng.random() < 0.25:
        found["activations"] = [rng.choice(choices) for _ in range(ways) for choices in cell.activations]
    found["linear_before_reset"] = rng.choice((None, 0, 1, 1)) if op == "GRU" else None
    # The two are not drawn together: the page leaves open whether the coupled forget gate applies its peephole.
    found["input_forget"] = rng.choice((None, None, 0, 1)) if op == "LSTM" and len(inputs) < 8 else None
    call = Call(op, tuple(inputs), attributes(found), outputs=rng.randint(1, cell.outputs))
    if rng.random() < 0.15:
        found["clip"] = math.ceil(_least_clip(call)) + rng.choice((0.0, 2.5))
    return Call(op, call.inputs, attributes(found), outputs=call.outputs)


def _parametric(rng: random.Random, ways: int) -> dict[str, PlainValue | None]:
    """Return one activation with parameters of its own for every direction.

    Only one, because the page leaves open whether an activation without parameters takes up an entry of the lists.
    """
    name = rng.choice(("LeakyRelu", "HardSigmoid", "Affine"))
    alphas = [rng.choice((0.0, 0.25, 0.5, 1.0)) for _ in range(ways)]
    betas = [0.0 if name == "Affine" else rng.choice((0.0, 0.25, 0.75)) for _ in range(ways)]
    found: dict[str, PlainValue | None] = {"activations": [name] * ways, "activation_alpha": alphas}
    return found if name == "LeakyRelu" else {**found, "activation_beta": betas}


def _series(site: Site, *, batch_first: bool) -> Operand:
    """Return data of shape (time, batch, features), or (batch, time, features)."""

    def draw() -> Shape:
        batch = 0 if site.rng.random() < site.limits.zero_size else site.rng.choice((1, 2, 3))
        steps, features = site.rng.choice((1, 1, 2, 3, 5)), draw_count(site.rng, site.limits, 4)
        return (batch, steps, features) if batch_first else (steps, batch, features)

    time = 1 if batch_first else 0
    return site.operand(ranks=(3, 3), fits=lambda shape: 0 < shape[time] <= 8 and shape[2] > 0, draw=draw)


def _steps(call: Call) -> int:
    """Return the number of time steps."""
    return call.operand(0).shape[1 if call.integer("layout") else 0]


def _lengths(site: Site, steps: int, batch: int) -> Operand:
    """Return known sequence lengths from one to all steps."""
    return site.known(np.array([site.rng.randint(1, steps) for _ in range(batch)], np.int32))


def _least_clip(call: Call) -> float:
    """Return a clip threshold above every LSTM state, because implementations differ on clipping the state."""
    return _state(call) + 1 if call.op == "LSTM" else 1.0


def _state(call: Call) -> float:
    """Return the largest magnitude of an LSTM's cell state: each step adds at most one."""
    return _steps(call) + (call.facts(6).magnitude if call.has(6) else 0.0)


def _start(call: Call) -> float:
    return call.facts(5).magnitude if call.has(5) else 0.0


def _gathered(call: Call, hidden: float) -> float:
    """Return the largest magnitude of an activation's argument, when that of the previous output is `hidden`."""
    features, size = call.operand(1).shape[2], call.operand(2).shape[2]
    total = features * call.facts().magnitude * call.facts(1).magnitude + size * hidden * call.facts(2).magnitude
    if call.has(3):
        total += 2 * call.facts(3).magnitude
    return total


def _largest(call: Call) -> tuple[float, float]:
    """Return the largest magnitudes of an output and of an activation's argument.

    Activations that do not enlarge, applied step by step. A GRU's output is between the previous one and the new
    candidate, so it never exceeds the larger of them.
    """
    cell, start = _CELLS[call.op], _start(call)
    names = call.attributes["activations"].value if "activations" in call.attributes else ("Tanh",)
    if call.op == "LSTM" or all(name in (*_SQUASHING, *_GATES) for name in names):
        most = max(1.0, start)
        argument = _gathered(call, most)
        if cell.cell_state and call.has(7):
            argument += call.facts(7).magnitude * _state(call)
        return most, argument
    hidden, argument = start, 0.0
    for _ in range(_steps(call)):
        argument = _gathered(call, hidden)
        hidden = max(1.0, hidden, min(argument, call.number("clip", math.inf)))
    return hidden, argument


def _bounds(call: Call, types: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    """Bounds of all outputs, then all last outputs, then the last cell states."""
    dtype = types[0].dtype
    hidden, argument = _largest(call)
    wide = rounded(dtype, -hidden, hidden, terms=16)
    found = [Bounds(wide.lo, wide.hi, partial=max(wide.hi, argument))] * min(call.outputs, 2)
    if call.outputs > 2:
        state = _state(call)
        found.append(rounded(dtype, -state, state, terms=16, partial=state))
    return tuple(found)


def _defined(call: Call) -> bool:
    """Guard: sequence lengths are known, at least one and at most the number of steps."""
    steps = _steps(call)
    if not call.has(4):
        return steps > 0
    lengths = call.operand(4).value
    return lengths is not None and bool(((lengths >= 1) & (lengths <= steps)).all())


def _layer(op: str) -> OpSpec:
    rough = Exactness.TRANSCENDENTAL
    return OpSpec(
        op,
        FLOATS,
        lambda site: _sample(site, op),
        _bounds,
        rough,
        _FAMILY,
        _defined,
        approximated=True,
        well_formed=_page_recurrent,
        structural={"setting": (4,)},
    )


def _page_recurrent(call: Call) -> bool:
    """Weights, biases, lengths and states fit the series: time, batch, features (layout 1: the batch first)."""
    x, weights, inner, gates = call.operand(0).shape, shape_of(call, 1), shape_of(call, 2), _CELLS[call.op].gates
    hidden = call.integer("hidden_size", inner[-1] if inner else 0)
    ways = 2 if call.text("direction") == "bidirectional" else 1
    if len(x) != 3:
        return False
    first = bool(call.integer("layout"))
    batch = x[0] if first else x[1]
    state: Shape = (batch, ways, hidden) if first else (ways, batch, hidden)
    wanted: tuple[Shape, ...] = ((ways, 2 * gates * hidden), (batch,), state, state, (ways, 3 * hidden))
    if weights != (ways, gates * hidden, x[2]) or inner != (ways, gates * hidden, hidden):
        return False
    return all(shape_of(call, place) in (None, shape) for place, shape in enumerate(wanted, 3))


SPECS = tuple(_layer(op) for op in _CELLS)
