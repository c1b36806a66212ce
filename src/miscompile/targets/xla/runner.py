"""How JAX compiles a function by XLA, or runs it call by call; standalone scripts contain what they need of this."""

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from numpy.typing import NDArray

LEVELS = {"off": None, "O0": 0, "O1": 1, "full": 3}
"""Levels of code generation, of which 3 is XLA's default; None compiles nothing as a whole."""

TYPES = {
    "bfloat16": ml_dtypes.bfloat16,
    "float8e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8e5m2": ml_dtypes.float8_e5m2,
    "float8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
}
"""Types that numpy lacks and that lie in words of their own width."""

CUDA_OPTIONS = {"xla_gpu_deterministic_ops": True, "xla_gpu_autotune_level": 0}
"""Options of every compilation for CUDA: the same sums in the same order, and no race of algorithms."""

XlaFunction = Callable[..., Sequence[jax.Array]]


def configure() -> None:
    """Have JAX keep 64-bit types, and run on the CPU at once."""
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_cpu_enable_async_dispatch", False)


def tensor(words: NDArray[np.generic], dtype: str) -> jax.Array:
    """Return an array for JAX; one of a type that numpy lacks comes as words."""
    words = np.asarray(words)
    return jnp.asarray(words.view(TYPES[dtype]) if dtype in TYPES else words)


def compile_function(
    function: XlaFunction,
    values: Sequence[jax.Array | jax.ShapeDtypeStruct],
    level: str,
    disabled: Collection[str],
    further: Mapping[str, bool | int | str],
) -> XlaFunction:
    """Compile a function for such values at `level`, without the passes `disabled` and with further options."""
    options = {
        "xla_backend_optimization_level": LEVELS[level],
        "xla_disable_hlo_passes": ",".join(sorted(disabled)),  # in place of those that level `off` lacks
        **further,
    }
    compiled: XlaFunction = jax.jit(lambda *given: function(*given)).lower(*values).compile(options)
    return compiled


def eager(function: XlaFunction) -> XlaFunction:
    """Return the function that executes every primitive alone, also those inside compiled functions of JAX."""

    def call(*values: jax.Array) -> Sequence[jax.Array]:
        with jax.disable_jit():
            return function(*values)

    return call


@contextlib.contextmanager
def on_device(name: str) -> Iterator[None]:
    """Have JAX put arrays, and compile, for a device: the first one of a platform.

    On another than the CPU products are computed in the precision of their operands, not in a faster one.
    """
    if name == "cpu":
        yield
        return
    with jax.default_device(jax.devices(name)[0]), jax.default_matmul_precision("highest"):
        yield
