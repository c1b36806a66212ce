"""Modules of torch: `torch.compile` against the module itself, and the export to ONNX for other compilers.

torch is imported by the test that has the module, so this module takes it from `sys.modules` when it is called.
"""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from miscompile.base.errors import UsageError
from miscompile.core.tensor import Array
from miscompile.testing.closeness import difference, drawn, identical

TARGET = "inductor"


def assert_alike(module: Any, inputs: Sequence[Any], budget: int, seed: int) -> None:  # noqa: ANN401 - torch.nn.Module
    """Raise AssertionError when `torch.compile(module)` differs from `module` on one of `budget` inputs.

    Raises UsageError when there are no example inputs, or the module is not deterministic.
    """
    torch: Any = sys.modules["torch"]
    examples = _examples(torch, inputs)
    module.eval()
    rng = np.random.default_rng(seed)

    def plain(arrays: Sequence[Array]) -> list[Array]:
        with torch.no_grad():
            return _arrays(torch, module(*map(torch.from_numpy, arrays)))

    if not identical(plain(examples), plain(examples)):
        raise UsageError("the module is not deterministic: two runs on the same inputs differ")
    torch.compiler.reset()
    compiled = torch.compile(module, dynamic=False)
    for index in range(budget):
        arrays = examples if index == 0 else drawn(examples, rng)
        with torch.no_grad():
            got = _arrays(torch, compiled(*map(torch.from_numpy, arrays)))
        if told := difference(plain, arrays, got, rng):
            raise AssertionError(f"test {index}: torch.compile differs from the module: {told}")


def to_onnx(module: Any, inputs: Sequence[Any]) -> bytes:  # noqa: ANN401 - torch.nn.Module
    """Return the module as an ONNX model. Raises UsageError when it cannot be exported."""
    torch: Any = sys.modules["torch"]
    _examples(torch, inputs)
    module.eval()
    with tempfile.TemporaryDirectory(prefix="miscompile-") as folder:
        path = Path(folder) / "model.onnx"
        try:
            torch.onnx.export(module, tuple(inputs), str(path), dynamo=True, external_data=False, verbose=False)
        except Exception as error:
            raise UsageError(f"the module cannot be exported to ONNX: {type(error).__name__}: {error}") from error
        return path.read_bytes()


def _examples(torch: Any, inputs: Sequence[Any]) -> list[Array]:  # noqa: ANN401 - the module
    if not inputs or not all(isinstance(one, torch.Tensor) for one in inputs):
        raise UsageError("a torch module needs example inputs: inputs=(tensor, ...), the positional arguments")
    return [np.array(one.detach().cpu().numpy()) for one in inputs]


def _arrays(torch: Any, results: Any) -> list[Array]:  # noqa: ANN401 - nested results
    """Return the tensors in nested results, bfloat16 as float32."""
    leaves, _ = torch.utils._pytree.tree_flatten(results)
    tensors = [one for one in leaves if isinstance(one, torch.Tensor)]
    return [np.array((one.float() if one.dtype == torch.bfloat16 else one).detach().cpu().numpy()) for one in tensors]
