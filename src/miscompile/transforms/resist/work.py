"""The twin under construction: new nodes and constants, and values that are only known at run time.

A compiler must not be able to prove that a barrier has no effect, so its condition is computed from an input's
elements: their number of true values after a Cast to bool, summed as 64-bit integers. That is at least 0 for every
input (NaN and infinities cast to one of the two bools, an empty input sums to 0), but no compiler proves that a sum is
never negative. Sizes are unsuitable, because compilers fold Shape where shapes are static.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import numpy as np

from miscompile.base.digest import digest_words
from miscompile.base.dtypes import DTYPES, NUMBERS
from miscompile.base.errors import RejectedDraft
from miscompile.core.tensor import Tensor, tensor
from miscompile.graph.attributes import PlainValue, attributes
from miscompile.graph.edges import all_names
from miscompile.graph.model import Model, Node, TensorType
from miscompile.graph.rename import NameSupply

_ANCHORS = ("float32", "int64", "int32", "bool", "float64", *NUMBERS)
"""Element types of inputs from which a run-time value can be computed, the best supported first."""

_SHORT = 6
"""Vectors with fewer elements are named after their elements."""


def anchor_of(model: Model) -> str | None:
    """Return the input from which the run-time values are computed; None when no input is suitable.

    An input with a default is unsuitable, because a compiler may assume the default.
    """
    graph = model.graph
    types = {info.name: info.type for info in graph.inputs if info.name not in graph.initializers}
    for dtype in _ANCHORS:
        for name, known in types.items():
            if isinstance(known, TensorType) and known.dtype == dtype:
                return name
    return None


class GraphAdditions:
    """Collects additions to a main graph: nodes before a position, constants, and additional outputs."""

    def __init__(self, model: Model, anchor: str | None) -> None:
        self.opset = model.opset
        self.constants: dict[str, Tensor] = {}
        self.prelude: list[Node] = []
        self._anchor = anchor
        self._names = NameSupply(all_names(model.graph))
        self._nodes: list[Node] = []
        self._shared: dict[str, str] = {}
        self._value = ""

    def begin(self, value: str) -> None:
        """Use `value` as prefix of new names from now on, so that names do not depend on barriers elsewhere."""
        self._value = value

    def fresh(self, base: str) -> str:
        """Return a value name that nothing in the model has."""
        return self._names.fresh(f"{self._value}_{base}")

    def take(self) -> list[Node]:
        """Return the nodes added since the last call, in order."""
        nodes, self._nodes = self._nodes, []
        return nodes

    def call(
        self, op: str, inputs: Sequence[str], given: Mapping[str, PlainValue | None] | None = None, *, count: int = 1
    ) -> tuple[str, ...]:
        """Add a node and return its outputs."""
        made = tuple(self.fresh(f"held_{op.lower()}") for _ in range(count))
        self._nodes.append(Node(op, tuple(inputs), made, attributes(given or {})))
        return made

    def constant(self, value: Tensor, written: str) -> str:
        """Add a constant and return its name; `written` is equal for equal tensors and becomes part of the name."""
        known = self._shared.get(written)
        if known is None:
            known = self._shared[written] = self._names.fresh(f"held_{written}")
            self.constants[known] = value
        return known

    def vector(self, *numbers: int) -> str:
        """Add a constant of type int64 and shape [len(numbers)]."""
        return self.constant(*_vector(numbers))

    def scalar(self, number: int, dtype: str = "int64") -> str:
        """Add a constant of rank 0."""
        return self.constant(*_scalar(number, dtype))

    def truth(self) -> str:
        """Return a bool of rank 0 that is true in every run. Raises RejectedDraft without a suitable input."""
        return self._once("truth", self._truth)

    def zero(self) -> str:
        """Return an int64 of rank 0 that is 0 in every run. Raises RejectedDraft as `truth` does."""
        return self._once("zero", lambda: self._before("Cast", self._before("Not", self.truth()), to="int64"))

    def one(self) -> str:
        """Return an int64 of rank 0 that is 1 in every run. Raises RejectedDraft as `truth` does."""
        return self._once("one", lambda: self._before("Cast", self.truth(), to="int64"))

    def _truth(self) -> str:
        if self._anchor is None:
            raise RejectedDraft("no input of the model can give a run-time value")
        flags = self._before("Cast", self._anchor, to="bool")
        count = self._before("ReduceSum", self._before("Cast", flags, to="int64"), keepdims=0)
        return self._before("Less", self.scalar(-1), count)

    def _once(self, name: str, make: Callable[[], str]) -> str:
        if name not in self._shared:
            self._shared[name] = make()
        return self._shared[name]

    def _before(self, op: str, *inputs: str, to: str = "", keepdims: int | None = None) -> str:
        """Add a node to the start of the graph."""
        made = self._names.fresh(f"runtime_{op.lower()}")
        given = attributes({"to": DTYPES[to].code if to else None, "keepdims": keepdims})
        self.prelude.append(Node(op, inputs, (made,), given))
        return made


@lru_cache(1 << 12)
def _vector(numbers: tuple[int, ...]) -> tuple[Tensor, str]:
    return tensor(np.array(numbers, np.int64)), "_".join(map(str, numbers)) if len(numbers) < _SHORT else _long(numbers)


def _long(numbers: tuple[int, ...]) -> str:
    return digest_words(*numbers).to_bytes(8, "little").hex()


@lru_cache(1 << 10)
def _scalar(number: int, dtype: str) -> tuple[Tensor, str]:
    value = np.array(number, np.float64 if DTYPES[dtype].kind == "float" else np.int64)
    return tensor(value, dtype), f"{dtype}_{number}"
