"""Functions of JAX: `jax.jit` against the function itself, operator by operator.

JAX is imported by the test that has the function, so this module takes it from `sys.modules` when it is called.
"""

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from miscompile.base.errors import UsageError
from miscompile.core.tensor import Array
from miscompile.testing.closeness import difference, drawn

TARGET = "xla"


def assert_alike(function: Callable[..., Any], inputs: Sequence[Any], budget: int, seed: int) -> None:
    """Raise AssertionError when `jax.jit(function)` differs from `function` on one of `budget` inputs.

    The function itself runs under `jax.disable_jit`, so that each of its operators is compiled alone. Raises UsageError
    when there are no example inputs.
    """
    jax: Any = sys.modules["jax"]
    if not inputs:
        raise UsageError("a function of JAX needs example inputs: inputs=(array, ...), the positional arguments")
    examples = [np.array(one) for one in inputs]
    rng = np.random.default_rng(seed)
    compiled = jax.jit(function)

    def plain(arrays: Sequence[Array]) -> list[Array]:
        with jax.disable_jit():
            return [np.asarray(one) for one in jax.tree_util.tree_leaves(function(*map(jax.numpy.asarray, arrays)))]

    for index in range(budget):
        arrays = examples if index == 0 else drawn(examples, rng)
        got = [np.asarray(one) for one in jax.tree_util.tree_leaves(compiled(*map(jax.numpy.asarray, arrays)))]
        if told := difference(plain, arrays, got, rng):
            raise AssertionError(f"test {index}: jax.jit differs from the function: {told}")
