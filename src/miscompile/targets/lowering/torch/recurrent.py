"""Recurrent layers, step by step."""

# ruff: noqa: ANN401 - tensors, and nested sequences of numbers

from typing import Any

import torch

from miscompile.targets.lowering.table import lowers
from miscompile.targets.lowering.torch.names import F

ACTIVATIONS = {
    "relu": F.relu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "softsign": F.softsign,
    "softplus": F.softplus,
}


def activate(x: Any, name: str, alpha: Any, beta: Any, clip: Any) -> Any:
    """Return an activation of x, after limiting x to [-clip, clip]."""
    x, name = x if clip is None else torch.clamp(x, -clip, clip), name.lower()
    if name == "leakyrelu":
        return F.leaky_relu(x, 0.01 if alpha is None else alpha)
    if name == "hardsigmoid":
        return torch.clamp((0.2 if alpha is None else alpha) * x + (0.5 if beta is None else beta), 0.0, 1.0)
    if name not in ACTIVATIONS or alpha is not None or beta is not None:
        raise NotImplementedError(f"activation {name} has no lowering")
    return ACTIVATIONS[name](x)


def run_layer(step: Any, x: Any, weights: Any, state: Any, lengths: Any, settings: Any) -> Any:
    """Run `step` over time in each direction; return all hidden states, and the last states.

    `weights` and `state` are tuples of tensors whose first axis is the direction. A sequence that has ended keeps its
    state, and its outputs are zero.
    """
    if settings["layout"]:
        x, state = x.transpose(0, 1), tuple([s.transpose(0, 1) for s in state])
    direction, count, every, last = settings["direction"], x.shape[0], [], []
    for way in range(weights[0].shape[0]):
        backward = direction == "reverse" or way == 1
        now, shown = tuple([s[way] for s in state]), [None] * count
        for t in reversed(range(count)) if backward else range(count):
            new = step(x[t], now, [w if w is None else w[way] for w in weights], settings, way)
            shown[t] = new[0]
            if lengths is not None:
                going = (t < lengths).unsqueeze(-1)
                new = tuple([torch.where(going, after, before) for after, before in zip(new, now, strict=True)])
                shown[t] = torch.where(going, shown[t], torch.zeros_like(shown[t]))
            now = new
        every.append(torch.stack(shown))
        last.append(now)
    y, ends = torch.stack(every, 1), [torch.stack(parts) for parts in zip(*last, strict=True)]
    if settings["layout"]:
        y, ends = y.permute(2, 0, 1, 3), [end.transpose(0, 1) for end in ends]
    return (y, *ends)


def start(x: Any, w: Any, given: Any, hidden: int, layout: int) -> Any:
    """Return the initial state: zero if none is given."""
    if given is not None:
        return given
    batch, ways = x.shape[0 if layout else 1], w.shape[0]
    return x.new_zeros((batch, ways, hidden) if layout else (ways, batch, hidden))


def settle(defaults: Any, w: Any, names: Any, alphas: Any, betas: Any, **settings: Any) -> Any:
    """Return the settings of a layer, with the activations of each direction as (name, alpha, beta, clip)."""
    names = names or defaults * w.shape[0]
    alphas = (*(alphas or ()), *[None] * len(names))
    betas = (*(betas or ()), *[None] * len(names))
    acts = [(name, alphas[i], betas[i], settings["clip"]) for i, name in enumerate(names)]
    count = len(defaults)
    return {**settings, "acts": [acts[way * count : (way + 1) * count] for way in range(w.shape[0])]}


def rnn_step(x: Any, state: Any, weights: Any, settings: Any, way: int) -> Any:
    """Return the next state of a simple recurrent layer."""
    w, r, b = weights
    b_in, b_out = (None, None) if b is None else b.chunk(2)
    return (activate(F.linear(x, w, b_in) + F.linear(state[0], r, b_out), *settings["acts"][way][0]),)


def gru_step(x: Any, state: Any, weights: Any, settings: Any, way: int) -> Any:
    """Return the next state of a gated recurrent layer; its gates are update, reset, hidden."""
    w, r, b = weights
    (h,), (gate, hidden) = state, settings["acts"][way]
    b_in, b_out = (None, None) if b is None else b.chunk(2)
    x_update, x_reset, x_new = F.linear(x, w, b_in).chunk(3, -1)
    r_update, r_reset, r_new = r.chunk(3)
    b_update, b_reset, b_new = (None, None, None) if b_out is None else b_out.chunk(3)
    update = activate(x_update + F.linear(h, r_update, b_update), *gate)
    reset = activate(x_reset + F.linear(h, r_reset, b_reset), *gate)
    if settings["before"]:
        new = activate(x_new + reset * F.linear(h, r_new, b_new), *hidden)
    else:
        new = activate(x_new + F.linear(reset * h, r_new, b_new), *hidden)
    return ((1 - update) * new + update * h,)


def lstm_step(x: Any, state: Any, weights: Any, settings: Any, way: int) -> Any:
    """Return the next states of a long short-term memory; its gates are input, output, forget, cell."""
    w, r, b, p = weights
    (h, c), (gate, cell, hidden) = state, settings["acts"][way]
    b_in, b_out = (None, None) if b is None else b.chunk(2)
    to_input, to_output, to_forget, to_cell = (F.linear(x, w, b_in) + F.linear(h, r, b_out)).chunk(4, -1)
    peep_input, peep_output, peep_forget = (0.0, 0.0, 0.0) if p is None else [q * 1 for q in p.chunk(3)]
    enter = activate(to_input if p is None else to_input + peep_input * c, *gate)
    keep = (
        1 - enter if settings["coupled"] else activate(to_forget if p is None else to_forget + peep_forget * c, *gate)
    )
    c = keep * c + enter * activate(to_cell, *cell)
    leave = activate(to_output if p is None else to_output + peep_output * c, *gate)
    return leave * activate(c, hidden[0], hidden[1], hidden[2], None), c


@lowers("RNN")
def rnn(
    x: Any,
    w: Any,
    r: Any,
    b: Any = None,
    lengths: Any = None,
    h: Any = None,
    *,
    activation_alpha: Any = None,
    activation_beta: Any = None,
    activations: Any = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int = 0,
    layout: int = 0,
    outputs: int,
) -> Any:
    """A simple recurrent layer: all states, and the last."""
    settings = settle(
        ("Tanh",), w, activations, activation_alpha, activation_beta, clip=clip, direction=direction, layout=layout
    )
    state = (start(x, w, h, r.shape[-1], layout),)
    results = run_layer(rnn_step, x, (w, r, b), state, lengths, settings)
    return results[:outputs] if outputs > 1 else results[0]


@lowers("GRU")
def gru(
    x: Any,
    w: Any,
    r: Any,
    b: Any = None,
    lengths: Any = None,
    h: Any = None,
    *,
    activation_alpha: Any = None,
    activation_beta: Any = None,
    activations: Any = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int = 0,
    layout: int = 0,
    linear_before_reset: int = 0,
    outputs: int,
) -> Any:
    """A gated recurrent layer: all states, and the last."""
    settings = settle(
        ("Sigmoid", "Tanh"),
        w,
        activations,
        activation_alpha,
        activation_beta,
        clip=clip,
        direction=direction,
        layout=layout,
        before=linear_before_reset,
    )
    state = (start(x, w, h, r.shape[-1], layout),)
    results = run_layer(gru_step, x, (w, r, b), state, lengths, settings)
    return results[:outputs] if outputs > 1 else results[0]


@lowers("LSTM")
def lstm(
    x: Any,
    w: Any,
    r: Any,
    b: Any = None,
    lengths: Any = None,
    h: Any = None,
    c: Any = None,
    p: Any = None,
    *,
    activation_alpha: Any = None,
    activation_beta: Any = None,
    activations: Any = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int = 0,
    input_forget: int = 0,
    layout: int = 0,
    outputs: int,
) -> Any:
    """A long short-term memory: all hidden states, the last one, and the last cell state."""
    settings = settle(
        ("Sigmoid", "Tanh", "Tanh"),
        w,
        activations,
        activation_alpha,
        activation_beta,
        clip=clip,
        direction=direction,
        layout=layout,
        coupled=input_forget,
    )
    state = (start(x, w, h, r.shape[-1], layout), start(x, w, c, r.shape[-1], layout))
    results = run_layer(lstm_step, x, (w, r, b, p), state, lengths, settings)
    return results[:outputs] if outputs > 1 else results[0]
