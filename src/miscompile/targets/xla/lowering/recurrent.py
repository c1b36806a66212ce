"""Recurrent layers. Sources: the operator pages of the ONNX documentation."""

from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
from jax import lax

from miscompile.targets.lowering.table import lowers

Cell = Callable[[tuple[jax.Array, ...], jax.Array], tuple[jax.Array, ...]]
Maps = list[Callable[[jax.Array], jax.Array]]

ACTIVATIONS = {
    "Relu": lambda x, a, b: jax.nn.relu(x),
    "Tanh": lambda x, a, b: jnp.tanh(x),
    "Sigmoid": lambda x, a, b: jax.nn.sigmoid(x),
    "Affine": lambda x, a, b: (1.0 if a is None else a) * x + (0.0 if b is None else b),
    "LeakyRelu": lambda x, a, b: jnp.where(x < 0, (0.009999999776482582 if a is None else a) * x, x),
    "ThresholdedRelu": lambda x, a, b: jnp.where(x > (1.0 if a is None else a), x, 0),
    "ScaledTanh": lambda x, a, b: (1.0 if a is None else a) * jnp.tanh((1.0 if b is None else b) * x),
    "HardSigmoid": lambda x, a, b: jnp.clip(
        (0.20000000298023224 if a is None else a) * x + (0.5 if b is None else b), 0, 1
    ),
    "Elu": lambda x, a, b: jax.nn.elu(x, 1.0 if a is None else a),
    "Softsign": lambda x, a, b: jax.nn.soft_sign(x),
    "Softplus": lambda x, a, b: jax.nn.softplus(x),
}


def activations_of(
    names: tuple[str, ...], alphas: tuple[float, ...], betas: tuple[float, ...], clip: float | None
) -> Maps:
    """Return the activations, each of which limits its operand by `clip`; those with parameters take them in order."""
    first, second = iter(alphas), iter(betas)

    def make(name: str) -> Callable[[jax.Array], jax.Array]:
        a = (
            next(first, None)
            if name in ("Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu")
            else None
        )
        b = next(second, None) if name in ("Affine", "ScaledTanh", "HardSigmoid") else None
        return lambda x: ACTIVATIONS[name](x if clip is None else jnp.clip(x, -clip, clip), a, b)

    return [make(name) for name in names]


def unroll(
    cell: Cell, x: jax.Array, lengths: jax.Array | None, state: tuple[jax.Array, ...], reverse: bool
) -> tuple[tuple[jax.Array, ...], jax.Array]:
    """Return the last state of a cell and all its outputs; after the end of a sequence the state stays the same."""

    def step(state: tuple[jax.Array, ...], now: tuple[jax.Array, jax.Array]) -> tuple[tuple[jax.Array, ...], jax.Array]:
        time, values = now
        new = cell(state, values)
        if lengths is None:
            return new, new[0]
        inside = (time < lengths)[:, None]
        kept = tuple(jnp.where(inside, after, before) for after, before in zip(new, state, strict=True))
        return kept, jnp.where(inside, new[0], 0)

    last, every = lax.scan(step, state, (jnp.arange(x.shape[0]), x), reverse=reverse)
    return last, every


def layer(
    cells: Iterator[Cell],
    x: jax.Array,
    lengths: jax.Array | None,
    starts: list[jax.Array | None],
    direction: str,
    hidden: int,
    layout: int,
    outputs: int,
) -> jax.Array | tuple[jax.Array, ...]:
    """Run one cell for each direction over the sequences; return the results of all steps and of the last ones."""
    x = x.swapaxes(0, 1) if layout else x
    every, last = [], []
    for place, cell in enumerate(cells):
        blank = jnp.zeros((x.shape[1], hidden), x.dtype)
        state = tuple(blank if one is None else one[:, place] if layout else one[place] for one in starts)
        final, values = unroll(cell, x, lengths, state, direction == "reverse" or place == 1)
        every.append(values)
        last.append(final)
    y = jnp.stack(every, 1)
    finals = [jnp.stack(states, 1 if layout else 0) for states in zip(*last, strict=True)]
    y = y.transpose(2, 0, 1, 3) if layout else y
    return y if outputs == 1 else (y, *finals)[:outputs]


@lowers("RNN")
def rnn(
    x: jax.Array,
    w: jax.Array,
    r: jax.Array,
    b: jax.Array | None = None,
    lengths: jax.Array | None = None,
    initial: jax.Array | None = None,
    *,
    activation_alpha: tuple[float, ...] = (),
    activation_beta: tuple[float, ...] = (),
    activations: tuple[str, ...] = ("Tanh", "Tanh"),
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int = 0,
    layout: int = 0,
    outputs: int,
) -> jax.Array | tuple[jax.Array, ...]:
    """Simple recurrent layer."""
    maps = activations_of(activations, activation_alpha, activation_beta, clip)

    def cell(place: int) -> Cell:
        wx, wh = w[place].T, r[place].T
        bias = 0 if b is None else sum(jnp.split(b[place], 2))
        return lambda state, now: (maps[place](now @ wx + state[0] @ wh + bias),)

    cells = (cell(place) for place in range(w.shape[0]))
    return layer(cells, x, lengths, [initial], direction, r.shape[-1], layout, outputs)


@lowers("GRU")
def gru(
    x: jax.Array,
    w: jax.Array,
    r: jax.Array,
    b: jax.Array | None = None,
    lengths: jax.Array | None = None,
    initial: jax.Array | None = None,
    *,
    activation_alpha: tuple[float, ...] = (),
    activation_beta: tuple[float, ...] = (),
    activations: tuple[str, ...] = ("Sigmoid", "Tanh") * 2,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int = 0,
    layout: int = 0,
    linear_before_reset: int = 0,
    outputs: int,
) -> jax.Array | tuple[jax.Array, ...]:
    """Gated recurrent unit."""
    maps = activations_of(activations, activation_alpha, activation_beta, clip)

    def cell(place: int) -> Cell:
        f, g = maps[2 * place : 2 * place + 2]
        wz, wr, wh = jnp.split(w[place].T, 3, 1)
        rz, rr, rh = jnp.split(r[place].T, 3, 1)
        biases = jnp.zeros((6, 1), x.dtype) if b is None else jnp.split(b[place], 6)
        bz, br, bh, cz, cr, ch = biases

        def step(state: tuple[jax.Array, ...], now: jax.Array) -> tuple[jax.Array, ...]:
            h = state[0]
            update = f(now @ wz + h @ rz + bz + cz)
            reset = f(now @ wr + h @ rr + br + cr)
            inner = reset * (h @ rh + ch) if linear_before_reset else (reset * h) @ rh + ch
            return ((1 - update) * g(now @ wh + inner + bh) + update * h,)

        return step

    cells = (cell(place) for place in range(w.shape[0]))
    return layer(cells, x, lengths, [initial], direction, r.shape[-1], layout, outputs)


@lowers("LSTM")
def lstm(
    x: jax.Array,
    w: jax.Array,
    r: jax.Array,
    b: jax.Array | None = None,
    lengths: jax.Array | None = None,
    initial: jax.Array | None = None,
    initial_cell: jax.Array | None = None,
    peepholes: jax.Array | None = None,
    *,
    activation_alpha: tuple[float, ...] = (),
    activation_beta: tuple[float, ...] = (),
    activations: tuple[str, ...] = ("Sigmoid", "Tanh", "Tanh") * 2,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int = 0,
    input_forget: int = 0,
    layout: int = 0,
    outputs: int,
) -> jax.Array | tuple[jax.Array, ...]:
    """Long short-term memory, with or without peepholes."""
    maps = activations_of(activations, activation_alpha, activation_beta, clip)

    def cell(place: int) -> Cell:
        f, g, h = maps[3 * place : 3 * place + 3]
        wx, wh = w[place].T, r[place].T
        bias = 0 if b is None else sum(jnp.split(b[place], 2))
        pi, po, pf = (0, 0, 0) if peepholes is None else jnp.split(peepholes[place], 3)

        def step(state: tuple[jax.Array, ...], now: jax.Array) -> tuple[jax.Array, ...]:
            before, memory = state
            i, o, forget, c = jnp.split(now @ wx + before @ wh + bias, 4, 1)
            i = f(i + pi * memory)
            forget = 1 - i if input_forget else f(forget + pf * memory)
            memory = forget * memory + i * g(c)
            return f(o + po * memory) * h(memory), memory

        return step

    cells = (cell(place) for place in range(w.shape[0]))
    return layer(cells, x, lengths, [initial, initial_cell], direction, r.shape[-1], layout, outputs)
