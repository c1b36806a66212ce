"""Quantised chains: values that go through QuantizeLinear and DequantizeLinear around other operators.

The text motifs hold the commonest forms with one scale each; here types, granularity, sharing and the operators in
between are drawn freely: weights quantised as constants or stored as integers, per tensor, per axis or in blocks, a
bias in int32, several layers in a row, and the forms that compute with integers (QLinearConv, MatMulInteger, ...).
Half of the chains and more have scales that are powers of two, so that every product is exact, and a step more or less
can only come from a rounding that the chain itself asks for. What differences of one step mean: see the numerics page.
"""

from miscompile.base.errors import RejectedDraft
from miscompile.ops.spec import Operand
from miscompile.producers.motifs.plant import Planted
from miscompile.producers.motifs.quantised.chain import QuantisedChain
from miscompile.producers.motifs.quantised.layers import INTEGER, LAYERS, Layer
from miscompile.producers.scope import Scope

NEEDED = frozenset({"QuantizeLinear", "DequantizeLinear"})
"""Operators without which there is no chain."""

NAME = "quantised_chain"
"""What a recipe calls it."""

_ATTEMPTS = 3
_INTEGER = 0.2
_LENGTHS = (1, 1, 1, 2, 2, 3)


def plant_chain(scope: Scope) -> Planted | None:
    """Plant a quantised chain; None when nothing comes of it, and the scope is then as it was."""
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
