"""Reading and execution of a model by tinygrad; standalone scripts contain the functions that they need.

A model is executed lazily: kernels are generated when the outputs of the first feed are read. For further feeds the
schedule and the kernels are in tinygrad's caches.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import tinygrad.codegen
import tinygrad.engine.realize
import tinygrad.schedule
from numpy.typing import NDArray
from tinygrad import Device, Tensor, dtypes
from tinygrad.nn.onnx import OnnxRunner

from miscompile.targets.tinygrad.switches import Stages, Switch

CACHES = (
    tinygrad.codegen.to_program_cache,
    tinygrad.engine.realize.runtime_cache,
    tinygrad.engine.realize.local_size_cache,
    tinygrad.schedule.schedule_cache,
)
"""tinygrad's caches of schedules and kernels, which are cleared, because otherwise its rewriting would not run."""

REWRITES = tuple(
    getattr(import_module(module), name)
    for module, name in (
        ("tinygrad.uop.divandmod", "fold_divmod_general"),
        ("tinygrad.schedule.indexing", "_apply_reshape"),
        ("tinygrad.schedule.indexing", "apply_movement_op"),
        ("tinygrad.codegen.late.coalesce", "_drop_valid_stmts"),
    )
)
"""Functions that cache results of rewriting, which depend on the active rules."""


def switch_off(
    switch: Switch, stages: Stages, off: frozenset[str], place: str, observe: bool = False
) -> dict[str, int | str]:
    """Switch the rules and stages `off` for later compilations; return tinygrad's settings for them and `place`."""
    for cache in CACHES:
        cache.clear()
    for function in REWRITES:
        function.cache_clear()
    switch.set(off & switch.names, observe)
    stages.set(off, observe)
    return {"DEV": place, **stages.context(off)}


def read_model(payload: bytes) -> OnnxRunner:
    """Read a model from memory. Its bytes are on the device PYTHON, from which constants are read one by one, as from a
    file.

    A runner is for one feed, because it caches inputs that it has converted to constants.
    """
    return OnnxRunner(Tensor(payload, device="PYTHON"))


def call(runner: OnnxRunner, outputs: Sequence[str], feed: Mapping[str, Tensor]) -> list[Any]:
    """Compile what has not been compiled yet, and run; return tinygrad's outputs, which are tensors or other
    objects."""
    results = runner(dict(feed))
    found = [results[name] for name in outputs]
    lazy = [output for output in found if isinstance(output, Tensor)]
    if lazy:
        Tensor.realize(*lazy)
    return found


def to_tensor(words: NDArray[np.generic], is_bfloat16: bool) -> Tensor:
    """Wrap an input; bfloat16, which numpy lacks, is passed as words."""
    array = np.ascontiguousarray(words).reshape(np.shape(words))
    if is_bfloat16:
        return Tensor(array.tobytes(), dtype=dtypes.bfloat16, device="PYTHON").reshape(array.shape).to(Device.DEFAULT)
    return Tensor(array)


def from_output(output: Any) -> tuple[NDArray[np.generic], bool] | None:  # noqa: ANN401 - a tensor, a sequence, or nothing
    """Copy an output, and tell whether its words are bfloat16; raises TypeError for one that is not a tensor."""
    if output is None:
        return None
    if isinstance(output, bool | int | float):  # operators such as Size return Python numbers
        return np.asarray(output), False
    if not isinstance(output, Tensor):
        raise TypeError(f"the output is a {type(output).__name__}, not a tensor")
    if output.dtype == dtypes.bfloat16:
        return output.bitcast(dtypes.uint16).numpy().copy(), True
    return output.numpy().copy(), False
