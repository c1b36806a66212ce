"""Compilation of a function by JAX and XLA, or execution call by call; standalone scripts contain the functions that
they need."""

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from numpy.typing import NDArray

LEVELS = {"off": None, "O0": 0, "O1": 1, "full": 3}
"""Levels of code generation, of which 3 is XLA's default; None runs call by call."""

TYPES = {
    "bfloat16": ml_dtypes.bfloat16,
    "float8e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8e5m2": ml_dtypes.float8_e5m2,
    "float8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
}
"""Types that numpy lacks and whose elements are stored in words of their width."""

CUDA_OPTIONS = {"xla_gpu_deterministic_ops": True, "xla_gpu_autotune_level": 0}
"""Options of every compilation for CUDA: a fixed order of sums, and no selection of algorithms by their speed."""

XlaFunction = Callable[..., Sequence[jax.Array]]


def configure() -> None:
    """Configure JAX to keep 64-bit types, and to run synchronously on the CPU."""
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_cpu_enable_async_dispatch", False)


def tensor(words: NDArray[np.generic], dtype: str) -> jax.Array:
    """Return an array for JAX; `words` are integers if numpy lacks its type."""
    words = np.asarray(words)
    return jnp.asarray(words.view(TYPES[dtype]) if dtype in TYPES else words)


def compile_function(
    function: XlaFunction,
    values: Sequence[jax.Array | jax.ShapeDtypeStruct],
    level: str,
    disabled: Collection[str],
    further: Mapping[str, bool | int | str],
) -> XlaFunction:
    """Compile a function for values like these at `level`, without the passes `disabled` and with further options."""
    options = {
        "xla_backend_optimization_level": LEVELS[level],
        "xla_disable_hlo_passes": ",".join(sorted(disabled)),  # replaces the flags of level `off`
        **further,
    }
    compiled: XlaFunction = jax.jit(lambda *given: function(*given)).lower(*values).compile(options)
    return compiled


def reloaded(
    function: XlaFunction, values: Sequence[jax.Array | jax.ShapeDtypeStruct], device: str = "cpu"
) -> XlaFunction:
    """Export a function for values like these to serialised StableHLO; return the function that is read from it."""
    from jax import export

    made = export.export(jax.jit(lambda *given: function(*given)), platforms=[device])(*values)
    called: XlaFunction = export.deserialize(made.serialize()).call
    return called


def eager(function: XlaFunction) -> XlaFunction:
    """Return a function that executes every primitive separately, also those inside compiled functions of JAX."""

    def call(*values: jax.Array) -> Sequence[jax.Array]:
        with jax.disable_jit():
            return function(*values)

    return call


@contextlib.contextmanager
def on_device(name: str) -> Iterator[None]:
    """Return a context in which JAX uses the first device of a platform.

    On devices other than the CPU products are computed in the precision of their operands, not in a faster one.
    """
    if name == "cpu":
        yield
        return
    with jax.default_device(jax.devices(name)[0]), jax.default_matmul_precision("highest"):
        yield
