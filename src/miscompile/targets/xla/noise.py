"""A function in which noise moves the inputs and the results of primitives, for the sensitivity of derivatives."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from miscompile.targets.directions import FLOATS
from miscompile.targets.rounding import EPS, SHIFTS, ULPS, signs
from miscompile.targets.xla.isolated_build import OLDER, atoms_of, compile_older, is_narrow, run_parted

_STEPS, _PERIOD = 131, 1009
"""Each value takes its signs from another place of one drawn vector."""


def noisy(
    function: Callable[..., Sequence[jax.Array]], inputs: Sequence[Any]
) -> Callable[[Sequence[jax.Array], int], Sequence[jax.Array]]:
    """Return `function`, compiled for `inputs` (shapes and types) with barriers between all primitives, with noise.

    The returned function takes the values of the inputs, and the number of the noise (`rounding.signs`).
    """
    traced = jax.make_jaxpr(lambda *values: function(*values))(*inputs)
    sizes = [math.prod(atom.aval.shape) for atom in (*atoms_of(traced.jaxpr), *traced.jaxpr.outvars)]
    length = max(sizes, default=1) + _PERIOD

    def run(drawn: jax.Array, *values: jax.Array) -> list[Any]:
        places = itertools.count()
        factors = {name: (1 + ULPS * EPS[name] * drawn).astype(name) for name in FLOATS}
        shifts = {name: (SHIFTS[name] * drawn).astype(name) for name in FLOATS}

        def move(value: Any) -> Any:  # noqa: ANN401 - an array or a number
            if jnp.result_type(value).name not in FLOATS:
                return value
            value = jnp.asarray(value)
            start = next(places) * _STEPS % _PERIOD
            end = start + math.prod(value.shape)
            factor, shift = (vectors[value.dtype.name][start:end] for vectors in (factors, shifts))
            return value * lax.reshape(factor, value.shape) + lax.reshape(shift, value.shape)

        return run_parted(traced, list(map(move, values)), move)

    vector = jax.ShapeDtypeStruct((length,), np.float64)
    narrow = any(is_narrow(atom) for atom in atoms_of(traced.jaxpr))
    compiled = compile_older(jax.jit(run).lower(vector, *inputs), {} if narrow else OLDER)

    def call(values: Sequence[jax.Array], number: int) -> Sequence[jax.Array]:
        return compiled(signs(length, number), *values)

    return call
