"""Reading and execution of a model by tinygrad; standalone scripts contain the functions that they need.

A model is executed lazily: kernels are generated when the outputs of the first feed are read. For further feeds the
schedule and the kernels are in tinygrad's caches.
"""

from collections.abc import Mapping, Sequence
from tempfile import NamedTemporaryFile
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tinygrad import Device, Tensor, dtypes

from miscompile.targets.tinygrad.releases import (
    CACHES,
    IMPORTER,
    READS_HALVES,
    REWRITES,
    on_device,
    present,
)
from miscompile.targets.tinygrad.switches import Stages, Switch


def switch_off(
    switch: Switch, stages: Stages, off: frozenset[str], place: str, observe: bool = False
) -> dict[str, int | str]:
    """Switch the rules and stages `off` for later compilations; return tinygrad's settings for them and `place`.

    Clears tinygrad's caches, because otherwise its rewriting would not run.
    """
    for cache in present(*CACHES):
        cache.clear()
    for function in present(*REWRITES):
        function.cache_clear()
    switch.set(off & switch.names, observe)
    stages.set(off, observe)
    return {**on_device(place), **stages.context(off)}


def read_model(payload: bytes) -> Any:  # noqa: ANN401 - an OnnxRunner
    """Read a model from memory. Its bytes are on the device PYTHON, from which constants are read one by one, as from a
    file; where that device lacks float16, they are in a file, which the importer maps into memory before it is deleted.

    A runner is for one feed, because it caches inputs that it has converted to constants.
    """
    if READS_HALVES:
        return IMPORTER(Tensor(payload, device="PYTHON"))
    with NamedTemporaryFile(suffix=".onnx") as file:
        file.write(payload)
        file.flush()
        return IMPORTER(file.name)


def call(
    runner: Any,  # noqa: ANN401 - an OnnxRunner
    outputs: Sequence[str],
    feed: Mapping[str, Tensor],
) -> list[Any]:
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
