"""The reference build: all primitives of a function in one compilation, none of them seen together with another.

Run call by call, every primitive is a compilation of its own, with its fixed costs. Here barriers stand between them
in place of the borders of compilations, which takes a fifth of the time. The older code generator, which XLA still has
beside the one it uses by default, is faster for single operations; and what the two share is less than all.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend import core

OLDER = {"xla_cpu_use_fusion_emitters": False}
"""Asks for the older code generator, which converts 8-bit floats wrongly (jaxlib 0.10.2: 0.46875 for 0.5)."""

_INNER = {"jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "custom_jvp_call": "call_jaxpr"}
"""Primitives that are nothing but a call, with the parameter that holds the function."""

_CONTROL = frozenset(("cond", "while", "scan"))
"""Primitives with bodies that barriers around the primitive would not part."""


def apart(
    function: Callable[..., Sequence[jax.Array]], inputs: Sequence[Any]
) -> Callable[..., Sequence[jax.Array]] | None:
    """Return `function` compiled for `inputs` (arrays, or shapes and types) with every primitive by itself.

    None for a function with control flow, whose bodies would be compiled as a whole: that must run call by call.
    Raises what tracing and compiling raise.
    """
    traced = jax.make_jaxpr(lambda *values: function(*values))(*inputs)
    equations = list(_equations(traced.jaxpr))
    if any(equation.primitive.name in _CONTROL for equation in equations):
        return None
    narrow = any(_narrow(atom) for equation in equations for atom in (*equation.invars, *equation.outvars))
    lowered = jax.jit(lambda *values: _parted(traced.jaxpr, traced.consts, values)).lower(*inputs)
    compiled: Callable[..., Sequence[jax.Array]] = lowered.compile({} if narrow else OLDER)
    return compiled


def _equations(jaxpr: Any) -> Iterator[Any]:  # noqa: ANN401 - a Jaxpr, which has no public name
    """Yield the equations, those inside calls in place of the calls."""
    for equation in jaxpr.eqns:
        if equation.primitive.name in _INNER:
            yield from _equations(_body(equation).jaxpr)
        else:
            yield equation


def _narrow(atom: Any) -> bool:  # noqa: ANN401 - a variable or a literal
    """Tell whether a value is of 8-bit floats."""
    dtype = atom.aval.dtype
    return bool(jnp.issubdtype(dtype, jnp.floating) and dtype.itemsize == 1)


def _body(equation: Any) -> Any:  # noqa: ANN401 - a JaxprEqn
    return equation.params[_INNER[equation.primitive.name]]


def _parted(jaxpr: Any, consts: Sequence[Any], values: Sequence[Any]) -> list[Any]:  # noqa: ANN401
    """Evaluate the equations in order, with a barrier behind each."""
    known = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *values), strict=True))

    def get(atom: Any) -> Any:  # noqa: ANN401
        return atom.val if isinstance(atom, core.Literal) else known[atom]

    for equation in jaxpr.eqns:
        operands = [get(atom) for atom in equation.invars]
        known.update(zip(equation.outvars, _results(equation, operands), strict=True))
    return [get(atom) for atom in jaxpr.outvars]


def _results(equation: Any, operands: Sequence[Any]) -> Sequence[Any]:  # noqa: ANN401
    primitive = equation.primitive
    if primitive.name in _INNER:
        body = _body(equation)
        return _parted(body.jaxpr, body.consts, operands)
    results = primitive.bind(*operands, **primitive.get_bind_params(equation.params))
    parted: Sequence[Any] = lax.optimization_barrier(list(results) if primitive.multiple_results else [results])
    return parted
