"""The builder of quantised chains: quantisation parameters, quantised values and constants.

Sources: the pages on QuantizeLinear and DequantizeLinear of the ONNX documentation.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from miscompile.base.dtypes import DTYPES, SMALL_SINCE, is_float
from miscompile.core.tensor import Tensor, tensor
from miscompile.graph.attributes import PlainValue, attributes
from miscompile.ops.elementwise import narrow
from miscompile.ops.spec import Call, Operand, Shape
from miscompile.ops.values import choose_range
from miscompile.producers.motifs.plant import Planted
from miscompile.producers.scope import Scope

_BYTES = ("uint8", "int8")
_POWERS = (-5, -4, -3, -2, -1, 0)
_LOOKS = 6

Fits: TypeAlias = Callable[[Shape], bool]


@dataclass(frozen=True, slots=True)
class Steps:
    """Quantisation parameters of a value: type, scale, zero point (None: omitted), and attributes of both operators."""

    kind: str
    scale: Operand
    zero: Operand | None
    found: dict[str, PlainValue | None]


@dataclass(slots=True)
class QuantisedChain:
    """A chain under construction in `scope`, with its scales so far, which later parameters may share."""

    scope: Scope
    plain: bool
    """Whether only 8-bit types are used, because the target refused another one."""
    powers: bool
    planted: Planted = field(default_factory=Planted)
    scales: list[Operand] = field(default_factory=list)
    steps_of: dict[str, Operand] = field(default_factory=dict)
    """Scales of dequantised values, by name."""

    def apply(self, op: str, *inputs: Operand | None, **found: PlainValue | None) -> Operand:
        """Add a call with one output. Raises RejectedDraft."""
        result = self.scope.apply(Call(op, inputs, attributes(found)))[0]
        self.planted.results.append(result)
        return result

    def constant(self, value: Tensor) -> Operand:
        """Add known elements: a constant, or sometimes an input that is always fed them."""
        chance = self.scope.rng.random()
        if chance < 0.05:
            return self.scope.new_pinned(value)
        return self.scope.new_constant(value, as_node=chance < 0.1)

    def number(self, value: float) -> Operand:
        """Add a scalar float32 constant (rank 0)."""
        return self.constant(Tensor("float32", np.array(value, np.float32)))

    def draw_kind(self, *, weight: bool = False) -> str:
        """Draw the type to quantise to, among those that the opset has."""
        rng, opset = self.scope.rng, self.scope.opset
        chance = rng.random()
        if self.plain or chance < 0.65:
            return rng.choice(_BYTES)
        if opset >= 21 and chance < (0.9 if weight else 0.73):
            return rng.choice(("int4", "uint4"))
        if opset >= 21 and chance < 0.93:
            return rng.choice(("int16", "uint16"))
        stored = [kind for kind, since in SMALL_SINCE.items() if opset >= since]
        return rng.choice(stored) if stored else rng.choice(_BYTES)

    def numbers(self, shape: Shape) -> Tensor:
        """Draw positive scales: powers of two, or any."""
        rng, count = self.scope.rng, math.prod(shape)
        if self.powers:
            return tensor(np.array([2.0 ** rng.choice(_POWERS) for _ in range(count)]).reshape(shape), "float32")
        return tensor(np.array([narrow(rng.uniform(0.02, 0.6)) for _ in range(count)]).reshape(shape), "float32")

    def scale(self, shape: Shape = ()) -> Operand:
        """Return a scale; one for a whole tensor is often shared."""
        if not shape and self.scales and self.scope.rng.random() < 0.4:
            return self.scope.rng.choice(self.scales)
        made = self.constant(self.numbers(shape))
        if not shape:
            self.scales.append(made)
        return made

    def zero(self, kind: str, shape: Shape) -> Operand:
        """Return zero points: zero for floats, else often zero or the middle of the range, or any."""
        rng, info, count = self.scope.rng, DTYPES[kind], math.prod(shape)
        chance = 0.0 if is_float(kind) else rng.random()
        middle = 1 << (info.bits - 1) if info.kind == "uint" and chance < 0.6 else 0
        points = [middle] * count
        if chance >= 0.6:
            points = [rng.randint(int(info.low), int(info.high)) for _ in range(count)]
        return self.constant(tensor(np.array(points, np.int64).reshape(shape), kind))

    def steps(self, kind: str, shape: Shape = (), axis: int | None = None, block: int | None = None) -> Steps:
        """Return new parameters; those per tensor of 8-bit types may omit the zero point."""
        found: dict[str, PlainValue | None] = {"axis": axis, "block_size": block}
        bare = kind == "uint8" and self.scope.rng.random() < 0.15
        return Steps(kind, self.scale(shape), None if bare else self.zero(kind, shape), found)

    def quantise(self, x: Operand, steps: Steps) -> Operand:
        """Add a QuantizeLinear."""
        given = (x, steps.scale) if steps.zero is None else (x, steps.scale, steps.zero)
        return self.apply("QuantizeLinear", *given, **steps.found)

    def dequantise(self, q: Operand, steps: Steps) -> Operand:
        """Add a DequantizeLinear."""
        given = (q, steps.scale) if steps.zero is None else (q, steps.scale, steps.zero)
        result = self.apply("DequantizeLinear", *given, **steps.found)
        self.steps_of[result.name] = steps.scale
        return result

    def through(self, x: Operand, steps: Steps | None = None) -> Operand:
        """Return `x` quantised and dequantised again, per tensor; some are quantised twice."""
        known = steps or self.steps(self.draw_kind())
        result = self.dequantise(self.quantise(x, known), known)
        if self.scope.rng.random() < 0.08:
            again = known if self.scope.rng.random() < 0.5 else self.steps(self.draw_kind())
            result = self.dequantise(self.quantise(result, again), again)
        return result

    def weight(self, shape: Shape, axis: int, *, blocks: bool = False) -> tuple[Operand, Operand]:
        """Return a dequantised weight and its scale: per tensor, or per `axis`, or in blocks along axis 0.

        Half of them are stored as integers; the others are floats that the model quantises.
        """
        rng = self.scope.rng
        kind, chance = self.draw_kind(weight=True), rng.random()
        if blocks and self.scope.opset >= 21 and chance < 0.4:
            block = rng.choice([size for size in (2, 4, 16, 32) if size <= shape[0]] or [1])
            steps = self.steps(kind, (-(-shape[0] // block), *shape[1:]), 0, block)
        elif chance < 0.7:
            steps = self.steps(kind, (shape[axis],), axis)
        else:
            steps = self.steps(kind)
        if rng.random() < 0.5:
            stored = self.scope.drawn_constant(kind, shape, choose_range(kind, self.scope.style))
            return self.dequantise(stored, steps), steps.scale
        made = self.scope.drawn_constant("float32", shape, choose_range("float32", self.scope.style))
        return self.dequantise(self.quantise(made, steps), steps), steps.scale

    def bias(self, count: int, x: Operand, weight: Operand) -> Operand | None:
        """Return a bias stored as int32, of scale `x` scale times `weight` scale; None: there is none.

        The page on QLinearConv requires that scale, and integer kernels assume it in chains too. A float32 bias is not
        generated, because runtimes round it to multiples of that scale by design.
        """
        left, right = self.steps_of.get(x.name), weight.value
        if self.scope.rng.random() < 0.4 or left is None or left.value is None or right is None or right.ndim > 1:
            return None
        if left.shape:
            return None
        product = np.asarray(left.value * right, np.float32)
        scale = self.constant(Tensor("float32", product))
        stored = self.scope.drawn_constant("int32", (count,), choose_range("int32", self.scope.style))
        return self.apply("DequantizeLinear", stored, scale, axis=0 if product.ndim else None)

    def image(self) -> Operand:
        """Return a float value of rank 4 with spatial sizes of at least 3 x 3."""
        rng = self.scope.rng
        return self.value(lambda s: len(s) == 4 and min(s) > 0 and min(s[2:]) > 2, (
            rng.randint(1, 2), rng.randint(1, 4), rng.randint(3, 6), rng.randint(3, 6),
        ))  # fmt: skip

    def matrix(self) -> Operand:
        """Return a float value of rank 2 or 3 without empty axes."""
        rng = self.scope.rng
        inner = rng.choice((rng.randint(1, 7), rng.randint(1, 7), 16, 32))
        made = (rng.randint(1, 4), inner) if rng.random() < 0.7 else (rng.randint(1, 2), rng.randint(1, 4), inner)
        return self.value(lambda s: len(s) in (2, 3) and min(s) > 0, made)

    def any(self) -> Operand:
        """Return a float value of any shape with elements and at least one axis."""
        rng = self.scope.rng
        return self.value(
            lambda s: 1 <= len(s) <= 4 and min(s) > 0,
            tuple(rng.randint(1, 5) for _ in range(rng.randint(1, 4))),
        )

    def value(self, fits: Fits, shape: Shape) -> Operand:
        """Return an existing float32 value that fits, or a new input of `shape`."""
        scope, rng = self.scope, self.scope.rng
        pool = scope.pool.get("float32", ())
        for _ in range(_LOOKS if pool else 0):
            operand = pool[int(rng.random() * len(pool))]
            if operand.value is None and fits(operand.shape) and rng.random() < 0.7:
                return operand
        return scope.new_input("float32", shape, choose_range("float32", scope.style))
