"""The site of strict generation: operands are chosen among the values that exist, or created.

This is PREINSERT of HIRFUZZ (Algorithm 1): TYPECHECK by dtype, SHAPECHECK by the sampler's demands, SELECT with a
preference for late operator results and against repeating a parent, CREATE when there are too few.
"""

import random
from collections.abc import Callable

import numpy as np

from miscompile.base.dtypes import DTYPES
from miscompile.base.errors import RejectedDraft
from miscompile.core.tensor import Array, Tensor
from miscompile.ops.registry import specs
from miscompile.ops.shapes import broadcasts, draw_partner, draw_shape
from miscompile.ops.spec import Call, Operand, OperatorLimits, Shape
from miscompile.ops.values import choose_range
from miscompile.producers.guards import guard
from miscompile.producers.scope import Scope

_NAMES = {info.storage: name for name, info in DTYPES.items() if info.storage.name == name}
"""Names of numpy's own types: cached because numpy builds the name on every access."""

_LOOKS = 6
_ATTEMPTS = 12


def insert(scope: Scope, op: str, site: "ScopeSite") -> tuple[Call, tuple[Operand, ...]]:
    """Draw a call of `op` at `site` and add it; return it with its outputs.

    Raises RejectedDraft when that fails; created operands stay, so the caller must roll back to a mark.
    """
    try:
        call = specs()[op].sample(site)
    except (ArithmeticError, ValueError) as error:  # a sampler's bounds may exceed a function's domain
        raise RejectedDraft(f"{op}: {error}") from None
    return call, scope.apply(call, drawn=True)


class ScopeSite:
    """The site of one call in `scope`. `reuse` is the probability to look for an existing operand first.

    `constants` is the probability that a created operand is a constant (weights: the complement), `pinned` that a
    structural operand is a graph input.
    """

    def __init__(
        self, scope: Scope, dtype: str, reuse: float = 0.85, constants: float = 0.15, pinned: float = 0.06
    ) -> None:
        self.scope = scope
        self.rng: random.Random = scope.rng
        self.dtype = dtype
        self.opset = scope.opset
        self.limits: OperatorLimits = scope.limits
        self._reuse = reuse
        self._constants = constants
        self._pinned = pinned
        self._taken: set[str] = set()

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
        """Select an existing value that fits, guard one that is out of range, or create one. See `Site.operand`."""
        wanted = dtype or self.dtype

        def serves(candidate: Shape) -> bool:
            if shape is not None:
                return candidate == shape
            if ranks is not None and not ranks[0] <= len(candidate) <= ranks[1]:
                return False
            return fits is None or fits(candidate)

        found = self._select(wanted, serves, within)
        if found is not None:
            return found
        chosen = shape if shape is not None else self._shape(ranks, fits, draw)
        return self._create(wanted, chosen, within, constant=self._constants)

    def partner(self, *shapes: Shape, dtype: str | None = None, within: tuple[float, float] | None = None) -> Operand:
        """Select or create a value that broadcasts with `shapes`. See `Site.partner`."""
        if not broadcasts(*shapes):
            raise RejectedDraft(f"shapes {shapes} do not broadcast")
        wanted = dtype or self.dtype
        found = self._select(wanted, lambda candidate: broadcasts(candidate, *shapes), within)
        if found is not None:
            return found
        return self._create(
            wanted, draw_partner(self.rng, self.limits, *shapes), within, constant=min(1.0, self._constants * 3)
        )

    def weight(self, shape: Shape, dtype: str | None = None, *, within: tuple[float, float] | None = None) -> Operand:
        """Create a constant of that shape, or sometimes an input. See `Site.weight`."""
        return self._create(dtype or self.dtype, shape, within, constant=1 - self._constants)

    def known(self, value: Array, dtype: str | None = None) -> Operand:
        """Create an operand with these elements: initialiser, Constant node, or pinned input. See `Site.known`."""
        name = dtype or _NAMES[value.dtype]
        constant = Tensor(name, np.asarray(value, DTYPES[name].storage))
        chance = self.rng.random()
        if chance < self._pinned:
            return self.scope.new_pinned(constant)
        return self.scope.new_constant(constant, as_node=chance < 0.15)

    def shape(self, ranks: tuple[int, int] | None = None) -> Shape:
        """Draw a shape within the limits."""
        return draw_shape(self.rng, self.limits, ranks)

    def _select(
        self, dtype: str, serves: Callable[[Shape], bool], within: tuple[float, float] | None
    ) -> Operand | None:
        pool = self.scope.pool.get(dtype)
        rng = self.rng
        if not pool or rng.random() > self._reuse:
            return None
        near: Operand | None = None
        size = len(pool)
        for _ in range(_LOOKS):
            operand = pool[max(int(rng.random() * size), int(rng.random() * size))]
            if operand.value is not None or (operand.name in self._taken and rng.random() > 0.1):
                continue
            if not serves(operand.shape):
                continue
            if within is None or operand.facts.inside(*within):
                self._taken.add(operand.name)
                return operand
            near = operand
        return self._guarded(near, within)

    def _guarded(self, operand: Operand | None, within: tuple[float, float] | None) -> Operand | None:
        if operand is None or within is None:
            return None
        try:
            guarded = guard(self.scope, operand, within)
        except RejectedDraft:
            return None
        self._taken.add(guarded.name)
        return guarded

    def _create(self, dtype: str, shape: Shape, within: tuple[float, float] | None, *, constant: float) -> Operand:
        if shape and min(shape) < 0:
            raise RejectedDraft(f"the value wanted here cannot have the shape {shape}")
        span = choose_range(dtype, self.scope.style, within)
        if self.rng.random() < constant:
            return self.scope.drawn_constant(dtype, shape, span)
        operand = self.scope.new_input(dtype, shape, span)
        self._taken.add(operand.name)
        return operand

    def _shape(
        self, ranks: tuple[int, int] | None, fits: Callable[[Shape], bool] | None, make: Callable[[], Shape] | None
    ) -> Shape:
        for _ in range(_ATTEMPTS):
            shape = make() if make else draw_shape(self.rng, self.limits, ranks)
            if fits is None or fits(shape):
                return shape
        raise RejectedDraft("no drawn shape fits")


class GivenSite(ScopeSite):
    """The site of a call whose first operand is `given`; the others, and the attributes, are drawn.

    Sampling raises RejectedDraft where the operator asks for a first operand that `given` is not.
    """

    def __init__(self, scope: Scope, given: Operand) -> None:
        super().__init__(scope, given.dtype, reuse=0.3)
        self._given: Operand | None = given

    def _select(
        self, dtype: str, serves: Callable[[Shape], bool], within: tuple[float, float] | None
    ) -> Operand | None:
        given, self._given = self._given, None
        if given is None:
            return super()._select(dtype, serves, within)
        if given.dtype != dtype or not serves(given.shape) or not (within is None or given.facts.inside(*within)):
            raise RejectedDraft("the operator takes no such operand")
        self._taken.add(given.name)
        return given
