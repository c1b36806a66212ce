"""The strategies: the kinds of barriers, and the conditions under which each applies."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from miscompile.base.dtypes import FLOATS
from miscompile.graph.model import TensorType
from miscompile.transforms.resist import barriers
from miscompile.transforms.resist.barriers import MOST_COLUMNS, WIDER
from miscompile.transforms.resist.work import GraphAdditions

BarrierExactness = Literal["bits", "rounding"]
BarrierBuilder = Callable[[GraphAdditions, str, TensorType, int], str]
"""Adds a barrier on a value of a type to the twin, and returns the name of its result; the number is unique to the
edge.
"""

MIN_OPSET = 13
"""First opset in which every operator of the barriers has the attributes and operands used here."""

NUMPY = frozenset(
    {"float32", "float64", "float16", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool"}
)
MOVED = NUMPY | {"bfloat16"}
CHOSEN = frozenset({"float32", "float64", "float16", "int64", "int32", "int8", "uint32", "uint8"})
COMPARED = CHOSEN | {"uint64"}
"""Element types for which ONNX Runtime has kernels of the operators; onnx itself allows more.

Strings are excluded, because ONNX Runtime loses short strings that reach an additional output through a barrier.
"""


@dataclass(frozen=True, slots=True)
class Strategy:
    """A barrier and its limits.

    `rounding` are the element types for which it is not exact to the bit, in some compiler at least. `category` is the
    fusion capability of its operator (1 to 6, as in Table I of ORTHRUS). `ranks` are its least and greatest rank, None
    where even the rank may be unknown. `runtime`: it needs a run-time value computed from an input, so that no compiler
    can prove its effect. `removable`: a compiler may correctly remove it, so that it only affects passes that run
    before the removal. `dynamic`: the sizes of its result are unknown to a compiler, which some compilers refuse.
    """

    name: str
    build: BarrierBuilder | None
    category: int
    dtypes: frozenset[str]
    text: str
    rounding: frozenset[str] = frozenset()
    ranks: tuple[int, int] | None = None
    runtime: bool = False
    removable: bool = False
    dynamic: bool = False
    opset: int = MIN_OPSET

    @property
    def exact(self) -> bool:
        """Tell whether it is exact to the bit for some element type."""
        return self.build is None or not self.dtypes <= self.rounding

    def fits(self, known: TensorType, opset: int, exactness: BarrierExactness) -> bool:
        """Tell whether this applies to a value of type `known` with the required exactness, inputs aside."""
        if known.dtype not in self.dtypes or opset < self.opset:
            return False
        if exactness == "bits" and known.dtype in self.rounding:
            return False
        if self.ranks is not None and (known.shape is None or not self.ranks[0] <= len(known.shape) <= self.ranks[1]):
            return False
        if self.name == "split":
            return any(isinstance(size, int) and size > 1 for size in known.shape or ())
        if self.name == "matmul" and known.shape:
            return isinstance(known.shape[-1], int) and known.shape[-1] <= MOST_COLUMNS
        return True


_ANY = (0, 64)
_FLOATS = frozenset(FLOATS)
_WIDE = frozenset({"float32", "float64"})

_ALL = (
    Strategy("where", barriers.where, 2, CHOSEN, "Where(true at run time, x, number)", _FLOATS, runtime=True),
    Strategy("gather", barriers.gather, 3, MOVED, "Gather(x, 0 1 2 ... + 0 at run time)", ranks=_ANY, runtime=True),
    Strategy("if", barriers.branch, 6, NUMPY, "If(true at run time): x, else numbers", runtime=True),
    Strategy("loop", barriers.loop, 6, NUMPY, "Loop that turns once at run time", runtime=True, dynamic=True),
    Strategy("reshape", barriers.reshape, 3, MOVED, "Reshape(x, Shape(x) + 0 at run time)", runtime=True, dynamic=True),
    Strategy("expand", barriers.expand, 2, NUMPY, "Expand(x, Shape(x) + 0 at run time)", runtime=True, dynamic=True),
    Strategy(
        "slice", barriers.window, 3, MOVED, "Slice(x, 0 at run time, end)", ranks=(1, 64), runtime=True, dynamic=True
    ),
    Strategy("transpose", barriers.transpose, 3, MOVED, "Transpose and back", ranks=(2, 64), removable=True),
    Strategy("split", barriers.split, 3, MOVED, "Concat of the parts of Split", ranks=(1, 64), removable=True),
    Strategy("cast", barriers.cast, 1, frozenset(WIDER), "Cast to a wider type and back", removable=True),
    Strategy("max", barriers.greatest, 2, COMPARED, "Max(x, x)", removable=True),
    Strategy("identity", barriers.identity, 1, MOVED, "Identity(Identity(x))", removable=True),
    Strategy(
        "matmul", barriers.product, 5, _WIDE, "MatMul(x, identity matrix at run time)", _WIDE, _ANY, runtime=True,
    ),
    Strategy("tap", None, 6, MOVED, "x becomes a further output of the graph, after its own", ranks=_ANY),
)  # fmt: skip

STRATEGIES: Mapping[str, Strategy] = {strategy.name: strategy for strategy in _ALL}
"""All strategies by name. Without `build` a strategy adds no nodes: the value itself becomes an output."""
