"""Noise on the float operands of every operator that torch executes, for the sensitivity of derivatives."""

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from miscompile.targets.directions import FLOATS
from miscompile.targets.rounding import EPS, SHIFTS, ULPS, signs

_POWERS = frozenset({"pow", "float_power"})
"""Operators of which the first operand alone is moved: a negative number has no power of another exponent."""


class OperandNoise(TorchDispatchMode):  # type: ignore[misc]  # without torch it is Any
    """Moves the float operands of each operator by the noise of a number; views and changes in place are left alone."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number, self._uses = number, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
        """Execute an operator on operands that have moved."""
        del types
        moved = tuple(args)
        schema = func._schema
        if not schema.is_mutable and not any(result.alias_info for result in schema.returns):
            kept = moved[1:] if func.overloadpacket.__name__ in _POWERS else ()
            first = moved[: len(moved) - len(kept)]
            moved = (*tree_map_only(torch.Tensor, self._move, first), *kept)
        return func(*moved, **(kwargs or {}))

    def _move(self, value: torch.Tensor) -> torch.Tensor:
        kind = str(value.dtype).removeprefix("torch.")
        if kind not in FLOATS:
            return value
        self._uses += 1
        drawn = torch.from_numpy(signs(value.numel(), self._number, self._uses)).reshape(value.shape)
        factor = (1 + ULPS * EPS[kind] * drawn).to(value)
        return value * factor + (SHIFTS[kind] * drawn).to(value)
