"""Noise on the values that torch computes, for the sensitivity of derivatives."""

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_any, tree_map_only

from miscompile.targets.directions import FLOATS
from miscompile.targets.rounding import EPS, SHIFTS, ULPS, signs

EXACT = frozenset({
    "_adaptive_max_pool2d", "abs", "amax", "amin", "cat", "clamp", "clamp_max", "clamp_min", "clone", "constant_pad_nd",
    "copy", "cummax", "cummin", "flip", "fmax", "fmin", "gather", "index", "index_put", "index_select", "masked_fill",
    "max", "max_pool2d_with_indices", "max_pool3d_with_indices", "maximum", "min", "minimum", "neg", "relu", "repeat",
    "roll", "scatter", "select_scatter", "sign", "slice_scatter", "sort", "stack", "threshold", "topk", "tril", "triu",
    "where",
})  # fmt: skip
"""Operators that select or move numbers and round nothing. Noise on the result of a maximum would also keep it from
being equal to any operand, and the derivative asks which one it is."""


def moved(value: torch.Tensor, number: int, place: int) -> torch.Tensor:
    """Return `value` moved by a noise (`rounding.signs`); other types than floats come back as they are."""
    kind = str(value.dtype).removeprefix("torch.")
    if kind not in FLOATS:
        return value
    drawn = torch.from_numpy(signs(value.numel(), number, place)).reshape(value.shape)
    return value * (1 + ULPS * EPS[kind] * drawn).to(value) + (SHIFTS[kind] * drawn).to(value)


class ResultNoise(TorchDispatchMode):  # type: ignore[misc]  # without torch it is Any
    """Moves the results of operators that round; views, and changes in place, are left alone."""

    def __init__(self, number: int, place: int = 0) -> None:
        super().__init__()
        self._number, self._place = number, place

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
        """Execute an operator and move its results."""
        del types
        given = kwargs or {}
        results = func(*args, **given)
        schema = func._schema
        if schema.is_mutable or any(result.alias_info for result in schema.returns):
            return results
        reads = tree_any(lambda one: isinstance(one, torch.Tensor), (args, given))
        if not reads or func.overloadpacket.__name__ in EXACT:
            return results
        return tree_map_only(torch.Tensor, self._move, results)

    def _move(self, value: torch.Tensor) -> torch.Tensor:
        self._place += 1
        return moved(value, self._number, self._place)
