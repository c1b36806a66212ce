"""The twin in the making: new nodes and constants, and values that only a run can know.

A compiler must not be able to tell that a barrier changes nothing, so its condition comes out of an input's elements:
how many of them, cast to bool and counted as 64-bit integers, are true. That is 0 or more for every input whatsoever
(NaN and infinities cast to one of the two bools, an empty input counts 0), but no compiler finds out that a sum is
never negative. Sizes would not do: where shapes are static, Shape is folded.
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
"""Element types of inputs that can give a run-time value, the best supported first."""

_SHORT = 6
"""Vectors of fewer numbers are named after them."""


def anchor_of(model: Model) -> str | None:
    """Return the input whose elements give the run-time values; None when the model has none that can.

    An input with a default does not count: a compiler may take the default for granted.
    """
    graph = model.graph
    types = {info.name: info.type for info in graph.inputs if info.name not in graph.initializers}
    for dtype in _ANCHORS:
        for name, known in types.items():
            if isinstance(known, TensorType) and known.dtype == dtype:
                return name
    return None


class GraphAdditions:
    """Collects what is added to a main graph: nodes before a place, constants, and further outputs."""

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
        """Name what is added from now on after `value`, so that names do not depend on barriers elsewhere."""
        self._value = value

    def fresh(self, base: str) -> str:
        """Return a value name that nothing in the model has."""
        return self._names.fresh(f"{self._value}_{base}")

    def take(self) -> list[Node]:
        """Return the nodes added since the last time, in their order."""
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
        """Add a constant and return its name; `written` is the same for equal tensors, and stands in the name."""
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
        """Return a bool of rank 0 that is true in every run. Raises RejectedDraft without an input to take it from."""
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
