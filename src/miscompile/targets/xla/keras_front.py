"""XLA as the compiler of Keras on JAX: the model's call is one function, which is compiled as a whole, or run call
by call."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import jax

from miscompile.core.case import Program
from miscompile.core.run import Build
from miscompile.targets.keras import weights
from miscompile.targets.keras.adapter import set_width
from miscompile.targets.keras.environment import load
from miscompile.targets.keras.layers import operator_of
from miscompile.targets.keras.values import dense, flat
from miscompile.targets.xla.adapter import Xla
from miscompile.targets.xla.keras_runner import function_of
from miscompile.targets.xla.runner import XlaFunction

_CALLS = frozenset({"jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "custom_lin"})
"""Primitives that are not operations."""


class XlaKeras(Xla):
    """Builds models of Keras as functions of JAX, with the weights as constants of the program."""

    def __init__(self) -> None:
        load("jax")
        weights.install()
        super().__init__()
        self._primitives: tuple[str, ...] = ()

    def passes(self) -> tuple[str, ...]:
        """None, because programs of Keras test the front end."""
        return ()

    def fired(self, log: str) -> tuple[str, ...]:
        """The primitives of JAX in the function, in order; each has one lowering rule to XLA."""
        del log
        return self._primitives

    def _function(self, program: Program) -> XlaFunction:
        self._primitives = ()
        operator = set_width(operator_of(program))
        if not operator.slots:
            return function_of(lambda inputs, training: list(flat(operator(inputs))))
        return function_of(dense(operator.model()))

    def _compile(self, function: XlaFunction, inputs: Sequence[Any], build: Build) -> XlaFunction:
        if build.observe:
            traced = jax.make_jaxpr(lambda *values: function(*values))(*inputs)
            self._primitives = tuple(dict.fromkeys(_primitives(traced.jaxpr)))
        return super()._compile(function, inputs, replace(build, observe=False))


def _primitives(jaxpr: Any) -> Iterator[str]:  # noqa: ANN401 - an expression of JAX
    for equation in jaxpr.eqns:
        if equation.primitive.name not in _CALLS:
            yield equation.primitive.name
        for inner in jax.tree.leaves(list(equation.params.values()), is_leaf=lambda part: hasattr(part, "eqns")):
            if hasattr(inner, "eqns"):
                yield from _primitives(getattr(inner, "jaxpr", inner))
