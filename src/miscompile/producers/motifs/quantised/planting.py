"""Planting a quantised chain: QuantizeLinear and DequantizeLinear around randomly chosen layers.

The text motifs hold the most common forms with one scale each. Here types, granularity, sharing and the layers are
drawn freely: weights quantised as constants or stored as integers, per tensor, per axis or in blocks, a bias in int32,
several layers in a row, and the forms that compute with integers (QLinearConv, MatMulInteger, ...). More than half of
the chains have scales that are powers of two. Every product is then exact, so a difference of one quantisation step can
only come from a rounding in the chain itself. The numerics page explains how such differences are judged.
"""

from miscompile.base.errors import RejectedDraft
from miscompile.ops.spec import Operand
from miscompile.producers.motifs.plant import Planted
from miscompile.producers.motifs.quantised.chain import QuantisedChain
from miscompile.producers.motifs.quantised.layers import INTEGER, LAYERS, Layer
from miscompile.producers.scope import Scope

NEEDED = frozenset({"QuantizeLinear", "DequantizeLinear"})
"""Operators that a target must support for any chain."""

NAME = "quantised_chain"
"""Name of the chain in recipes."""

_ATTEMPTS = 3
_INTEGER = 0.2
_LENGTHS = (1, 1, 1, 2, 2, 3)


def plant_chain(scope: Scope) -> Planted | None:
    """Plant a quantised chain; None, with an unchanged scope, when that fails."""
    mark, rng = scope.mark(), scope.rng
    for attempt in range(_ATTEMPTS):
        powers = rng.random() < (0.85 if scope.style.integral else 0.5)
        chain = QuantisedChain(scope, attempt > 0, powers)
        try:
            if rng.random() < _INTEGER:
                rng.choice(INTEGER)(chain)
            else:
                _grow(chain, [rng.choice(LAYERS) for _ in range(rng.choice(_LENGTHS))])
        except (RejectedDraft, ArithmeticError, ValueError):
            scope.rollback(mark)
            continue
        return chain.planted
    return None


def _grow(chain: QuantisedChain, layers: list[Layer]) -> None:
    """Plant layers one after the other, each between a DequantizeLinear and a QuantizeLinear.

    The last one may stay a float, or end as an integer; inner values may become outputs.
    """
    rng = chain.scope.rng
    x = None
    for layer in layers:
        result = layer(chain, x)
        if rng.random() < 0.35:
            result = _activated(chain, result)
        if result.dtype != "float32" or rng.random() < 0.15:
            return
        steps = chain.steps(chain.draw_kind())
        q = chain.quantise(result, steps)
        if layer is layers[-1] and rng.random() < 0.2:
            return
        x = chain.dequantise(q, steps)
        if rng.random() < 0.08:
            chain.planted.outputs.append(rng.choice((q, result)).name)


_ACTIVATIONS = ("Relu", "Relu", "Clip", "LeakyRelu", "Sigmoid", "HardSigmoid", "Tanh")


def _activated(chain: QuantisedChain, x: Operand) -> Operand:
    op = chain.scope.rng.choice(_ACTIVATIONS)
    return chain.apply(op, x, chain.number(0.0), chain.number(6.0)) if op == "Clip" else chain.apply(op, x)
