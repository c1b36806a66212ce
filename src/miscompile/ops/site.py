"""A site that makes a fresh operand for every request: single-operator programs, for the sweep and the kit."""

import random
from collections.abc import Callable
from typing import Literal

import numpy as np

from miscompile.base.dtypes import DTYPES
from miscompile.base.errors import RejectedDraft
from miscompile.core.tensor import Array, Tensor
from miscompile.ops.facts import measure
from miscompile.ops.shapes import broadcasts, draw_partner, draw_shape
from miscompile.ops.spec import Operand, OperatorLimits, Shape
from miscompile.ops.values import Style, choose_range, draw

OperandRole = Literal["input", "constant", "pinned"]
"""A graph input, an initialiser, or a graph input whose fed value the output types depend on."""

_ATTEMPTS = 20


class FreshSite:
    """A site that returns a new input or constant for every request, and records its value.

    `values` holds the tensor of each operand by name, `roles` its role in the graph. `constant` is the probability that
    a weight or operand becomes a constant, `pinned` that a structural operand (axes, shape, pads) becomes a graph
    input.
    """

    def __init__(
        self,
        rng: random.Random,
        dtype: str,
        opset: int,
        limits: OperatorLimits | None = None,
        style: Style | None = None,
        constant: float = 0.3,
        pinned: float = 0.1,
    ) -> None:
        self.rng = rng
        self.dtype = dtype
        self.opset = opset
        self.limits = limits or OperatorLimits()
        self.style = style or Style()
        self.values: dict[str, Tensor] = {}
        self.roles: dict[str, OperandRole] = {}
        self._constant = constant
        self._pinned = pinned

    def operand(
        self,
        dtype: str | None = None,
        *,
        shape: Shape | None = None,
        ranks: tuple[int, int] | None = None,
        within: tuple[float, float] | None = None,
        fits: Callable[[Shape], bool] | None = None,
        draw: Callable[[], Shape] | None = None,
    ) -> Operand:
        """Return a new input, or with probability `constant` a new initialiser. See `Site.operand`."""
        chosen = shape if shape is not None else self._shape(ranks, fits, draw)
        return self._new(dtype or self.dtype, chosen, within, constant=self._constant)

    def partner(self, *shapes: Shape, dtype: str | None = None, within: tuple[float, float] | None = None) -> Operand:
        """Return a new value that broadcasts with `shapes`. See `Site.partner`."""
        if not broadcasts(*shapes):
            raise RejectedDraft(f"shapes {shapes} do not broadcast")
        shape = draw_partner(self.rng, self.limits, *shapes)
        return self._new(dtype or self.dtype, shape, within, constant=self._constant)

    def weight(self, shape: Shape, dtype: str | None = None, *, within: tuple[float, float] | None = None) -> Operand:
        """Return a new value of that shape, a constant more often than not. See `Site.weight`."""
        return self._new(dtype or self.dtype, shape, within, constant=1 - self._constant)

    def known(self, value: Array, dtype: str | None = None) -> Operand:
        """Return an operand with these elements. See `Site.known`."""
        name = dtype or value.dtype.name
        array = np.asarray(value, DTYPES[name].storage)
        role: OperandRole = "pinned" if self.rng.random() < self._pinned else "constant"
        return self._add(Tensor(name, array), role, known=True)

    def shape(self, ranks: tuple[int, int] | None = None) -> Shape:
        """Draw a shape within the limits."""
        return draw_shape(self.rng, self.limits, ranks)

    def _shape(
        self, ranks: tuple[int, int] | None, fits: Callable[[Shape], bool] | None, make: Callable[[], Shape] | None
    ) -> Shape:
        for _ in range(_ATTEMPTS):
            shape = make() if make else draw_shape(self.rng, self.limits, ranks)
            if fits is None or fits(shape):
                return shape
        raise RejectedDraft("no drawn shape fits")

    def _new(self, dtype: str, shape: Shape, within: tuple[float, float] | None, *, constant: float) -> Operand:
        span = choose_range(dtype, self.style, within)
        array = draw(self.rng, dtype, shape, span)
        role: OperandRole = "constant" if self.rng.random() < constant else "input"
        operand = self._add(Tensor(dtype, array), role, known=role == "constant")
        if role == "constant" and array.size:  # an empty tensor has no facts to measure; the range still holds
            return operand
        return Operand(operand.name, dtype, shape, span.facts(), operand.value)

    def _add(self, value: Tensor, role: OperandRole, *, known: bool) -> Operand:
        name = f"{'xcp'[('input', 'constant', 'pinned').index(role)]}{len(self.values)}"
        self.values[name] = value
        self.roles[name] = role
        return Operand(name, value.dtype, value.shape, measure(value), value.array if known else None)
