"""The operator spec, and the site: the interface through which a sampler gets operands for its call.

A spec is a few lines: the element types, a sampler that picks operands and attributes, the bounds of the outputs,
and the exactness class. Output types come from onnx's inference, not from the spec.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from miscompile.core.tensor import Array, Tensor
from miscompile.graph.model import NO_ATTRIBUTES, Attribute, Node, TensorType
from miscompile.ops.facts import Bounds, Exactness, Facts

Shape = tuple[int, ...]


class Operand(NamedTuple):
    """A value that can be an operand. `value` is set when the elements are known (constants, pinned inputs)."""

    name: str
    dtype: str
    shape: Shape
    facts: Facts
    value: Array | None = None

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)


class Call(NamedTuple):
    """An operator call that a sampler proposes. An omitted optional input is None; `outputs` is the number of
    outputs."""

    op: str
    inputs: tuple[Operand | None, ...]
    attributes: Mapping[str, Attribute] = NO_ATTRIBUTES
    outputs: int = 1
    domain: str = ""

    def facts(self, index: int = 0) -> Facts:
        """Facts of input `index`, which must be present."""
        operand = self.inputs[index]
        assert operand is not None, f"{self.op} input {index} is absent"
        return operand.facts

    def operand(self, index: int) -> Operand:
        """Input `index`, which must be present."""
        operand = self.inputs[index]
        assert operand is not None, f"{self.op} input {index} is absent"
        return operand

    def has(self, index: int) -> bool:
        """Tell whether input `index` is present."""
        return index < len(self.inputs) and self.inputs[index] is not None

    def integer(self, name: str, default: int = 0) -> int:
        """Integer attribute `name`."""
        attribute = self.attributes.get(name)
        return default if attribute is None else int(attribute.value)

    def number(self, name: str, default: float = 0.0) -> float:
        """Float attribute `name`."""
        attribute = self.attributes.get(name)
        return default if attribute is None else float(attribute.value)

    def text(self, name: str, default: str = "") -> str:
        """String attribute `name`."""
        attribute = self.attributes.get(name)
        return default if attribute is None else str(attribute.value)

    def integers(self, name: str, default: Sequence[int] = ()) -> tuple[int, ...]:
        """Attribute `name`, a list of integers."""
        attribute = self.attributes.get(name)
        return tuple(default) if attribute is None else tuple(attribute.value)


@dataclass(frozen=True, slots=True)
class OperatorLimits:
    """Limits on the sizes of generated tensors."""

    max_rank: int = 5
    max_dim: int = 8
    max_elements: int = 2048
    zero_size: float = 0.01
    """Probability that a drawn dimension has size zero."""
    min_rank: int = 0
    """Least rank of a drawn shape, where the operator admits it."""
    boundaries: tuple[int, ...] = ()
    """Sizes around which kernels take other paths; where there are any, a share of the sizes is drawn from them."""
    least_elements: int = 0
    """Elements that a share of the drawn shapes has at least."""


class Site(Protocol):
    """The interface between a sampler and the graph under construction: operands, random stream and limits.

    Every method raises RejectedDraft when no operand fits; a sampler lets it propagate.
    """

    @property
    def rng(self) -> random.Random:
        """The random stream of this case."""
        ...

    @property
    def dtype(self) -> str:
        """Element type chosen for the operator's main type variable."""
        ...

    @property
    def opset(self) -> int:
        """Version of the standard operator set."""
        ...

    @property
    def limits(self) -> OperatorLimits:
        """Size limits."""
        ...

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
        """Return a value of `dtype` (default: the site's), existing if possible, else a new input or constant.

        `shape` requires exactly that shape; `ranks` bounds the rank, both ends included; `fits` accepts or rejects a
        shape, and `draw` then generates a shape for a new value. `within` = (lo, hi) bounds every element: an existing
        value outside it gets a guard operator (Clip, Abs, Sigmoid, ...), or is not used.
        """
        ...

    def partner(self, *shapes: Shape, dtype: str | None = None, within: tuple[float, float] | None = None) -> Operand:
        """Return a value whose shape broadcasts with all of `shapes` (ranks may differ, either side may grow)."""
        ...

    def weight(self, shape: Shape, dtype: str | None = None, *, within: tuple[float, float] | None = None) -> Operand:
        """Return a new value of exactly that shape with unknown random elements: mostly a constant, else an input."""
        ...

    def known(self, value: Array, dtype: str | None = None) -> Operand:
        """Return an operand with exactly these elements, for axes, shapes, pads, scales and the like.

        It is an initialiser, a Constant node, or a graph input that has this value in every feed.
        """
        ...

    def shape(self, ranks: tuple[int, int] | None = None) -> Shape:
        """Draw a shape within the limits."""
        ...


Sampler = Callable[[Site], Call]
BoundsOf = Callable[[Call, tuple[TensorType, ...]], tuple[Bounds, ...]]


OutputShapes = Callable[[Call], tuple[Shape, ...] | None]
"""Returns one shape for each output of a call, or None if onnx's inference must find it."""

ShapeRule = Literal["inferred", "broadcast", "first"] | OutputShapes
"""How outputs get their shapes: from onnx's inference; by broadcasting; from the first operand; by a rule."""


Fusion = Literal["elementwise", "broadcast", "injective", "reduction", "out-elementwise-fusable", "opaque"]
"""How compilers fuse an operator with its neighbours (ORTHRUS, Table I), the easiest first."""

Role = Literal["shape", "size", "control", "quantisation", "setting", "domain"]
"""Why the elements of an operand determine shapes or structure instead of being data.

`shape`: shapes, axes, pads and positions along axes, which must fit the shapes of other operands; `size`: a number
that determines how many elements a result has, or which one is selected; `control`: conditions, trip counts and
switches that disable an operator; `quantisation`: scales, zero points, and the bias whose unit is the product of
scales; `setting`: determines values only, but many compilers require a constant; `domain`: determines whether a
result is defined.
"""

Roles = Mapping[Role, tuple[int, ...]]
"""Positions of an operator's structural operands, by their role; an operand has one role."""

OperatorTrait = Literal[
    "axes-as-written", "commutative", "float32-numbers", "holds-sizes", "image-positions", "quantises", "reads-shape",
    "shape-arithmetic", "stash-type", "weights-as-inputs",
]  # fmt: skip
"""Something that other packages must know about an operator, and that holds for few operators.

`axes-as-written`: `axis` and `axes` cannot be counted from the other end of the first operand, because they are axes of
the result, or the page names no negative ones. `commutative`: the result does not depend on the order of the operands.
`float32-numbers`: numbers written in a call are float32, whatever the dtype of the data. `holds-sizes`: elements of
structural operands may be sizes, which follow a size that becomes symbolic. `image-positions`: the result depends on
positions that are defined only for images of the size for which the call was drawn. `quantises`: kernels may give the
neighbouring step, because some add the zero point before they round, others after it. `reads-shape`: the result
depends on the operand's shape alone. `shape-arithmetic`: exporters compute shapes with it, so its result on known
integers is computed while a graph is built. `stash-type`: computes in the type that the attribute `stash_type` names,
by default float32. `weights-as-inputs`: a target that takes the operator takes it with any weight as an input;
elementwise operators have this trait without saying so.
"""

CallRule = Callable[[Call], bool]
"""Tells whether a call keeps a rule; a rule holds where it would need elements that are not known."""

RunOperands = Callable[[int], Tensor | None]
"""Returns an operand of a node by its position, as it is in one run; None when it is absent or not known."""

ElementRule = Callable[[Node, RunOperands], bool]
"""Tells whether a node is defined on its operands in one run; it holds where an operand that it needs is None."""


Freedom = Literal["nan", "zero", "conversion", "overflow", "rounding", "order"]
"""What an operator's page and IEEE 754 leave open about its results on special values.

`nan`: the result where an operand is NaN. `zero`: the sign of a result that is zero. `conversion`: the integer for a
float that the integer type cannot hold. `overflow`: the result that a signed integer type cannot hold. `rounding`: the
last places of a result, and on which side of an edge a result near it lies. `order`: the order of the terms of a sum.
"""


@dataclass(frozen=True, slots=True)
class SpecialValues:
    """The statement that an operator's results on NaN, infinities, zeros and the ends of its types are specified.

    `edges` are the operands around which the behaviour changes, by element type (the largest x of which exp(x) is
    finite). `freedoms` are what remains open. `fused` marks the parts of a multiplication with addition in one step.
    """

    freedoms: frozenset[Freedom] = frozenset()
    edges: Callable[[str], tuple[float, ...]] | None = None
    fused: Literal["", "product", "sum"] = ""


def always(_: Call) -> bool:
    """The guard of an operator that is defined for all operands of the right types."""
    return True


def defined_on_all(_: Node, __: RunOperands) -> bool:
    """The element rule of an operator that is defined on all elements of the right types."""
    return True


@dataclass(frozen=True, slots=True)
class OpSpec:
    """One operator: all that the other packages know about it.

    `dtypes` are the element types tried for the main type variable (the registry removes those that the schema of
    the opset forbids); `main` is the index of an input (or `~index` of an output, for
    generators such as RandomUniform) that has this type. `bounds` must hold for every operand within the guard.
    `defined` is the guard against undefined behaviour: it returns True only if no element causes undefined
    behaviour, and samplers build calls that pass it. `since` is the first opset whose signature the sampler uses. If
    `exact_when` returns False, a call has the class of rounding operators, whatever the exactness class of the
    operator. `shapes` other than "inferred" promises that the outputs have that shape, and that their dtypes follow
    from operator, opset, the attributes that name a type, and the operands' dtypes; inference then runs once instead
    of for every call. `approximated` marks a function that libraries approximate to an absolute error, so that its
    results near zero have no correct digits. `fusion` is the operator's category for optimisation barriers, unless a
    file of barrier rules overrides it.
    """

    op: str
    dtypes: tuple[str, ...]
    sample: Sampler
    bounds: BoundsOf
    exactness: Exactness
    family: str
    defined: CallRule = always
    since: int = 13
    main: int = 0
    domain: str = ""
    exact_when: CallRule = always
    shapes: ShapeRule = "inferred"
    approximated: bool = False
    fusion: Fusion = "opaque"
    well_formed: CallRule = always
    """The rules of the operator's page that onnx's checker and inference do not enforce."""
    defined_on: ElementRule = defined_on_all
    """The check against undefined behaviour on the elements of one run, which a reduction must pass. Unlike `defined`,
    which must hold for all elements within bounds, it accepts every call that these elements do not disprove."""
    structural: Roles = field(default_factory=dict)
    broadcasting: Callable[[Call], tuple[Shape, ...]] | None = None
    """The shapes that a call broadcasts against each other; None: those of all operands of an elementwise operator,
    and none of another one. A size that may be one at run time must not meet a larger one there."""
    traits: tuple[OperatorTrait, ...] = ()
    noise: int = 1
    """Factor of the noise of Monte-Carlo arithmetic, for an operator whose common algorithms lose more than a few
    bits."""
    probes: int | None = None
    """Samples for the support table for each dtype; None: the usual number. An operator whose result has one of many
    types needs more, because each of its samples asks about only one of them."""

    special: SpecialValues | None = None
    """What is specified about the results on special values; None: nothing that a check can hold a compiler to."""

    @property
    def elementwise(self) -> bool:
        """Whether the outputs have the broadcast shape of the operands, or the shape of the first operand."""
        return self.shapes in ("broadcast", "first")

    @property
    def open_to_inputs(self) -> bool:
        """Whether every target that takes the operator takes it with any of its constants as an input."""
        return self.elementwise or "weights-as-inputs" in self.traits

    def exactness_of(self, call: Call) -> Exactness:
        """Return the exactness class of one call."""
        return self.exactness if self.exact_when(call) else Exactness.ROUNDS

    def broadcast_shapes(self, call: Call) -> tuple[Shape, ...]:
        """Return the shapes that `call` broadcasts against each other, aligned at the last axis."""
        if self.broadcasting is not None:
            return self.broadcasting(call)
        return tuple(operand.shape for operand in call.inputs if operand is not None) if self.elementwise else ()
