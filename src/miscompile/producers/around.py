"""Cases of the user's own model: unchanged, on many feeds, and with inner values as additional outputs.

Symbolic sizes are bound anew for every case. An additional output keeps optimisers from removing an inner value, a
condition that their patterns sometimes fail to check.
"""

import random
from collections.abc import Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

from miscompile.base.dtypes import DTYPES, PLAIN, is_float
from miscompile.base.errors import ModelError, NothingTested
from miscompile.core.case import Case, Feed
from miscompile.core.outcome import Outcome
from miscompile.core.tensor import Tensor
from miscompile.core.verdict import Verdict
from miscompile.graph.check import check
from miscompile.graph.emit import to_program
from miscompile.graph.model import Model, TensorType, ValueInfo, ValueType
from miscompile.graph.read import load
from miscompile.graph.typing import value_types
from miscompile.ops.analysis import exact_outputs
from miscompile.ops.values import Style, choose_range, draw
from miscompile.producers.slices.collection import FittingInput

AROUND = "around"
"""Begin of the spec of this producer in the recipes of its cases."""

_SIZES = (1, 2, 3, 4, 7)
_FITTING_SHARE = 0.85
_INNER_SHARE = 0.5
_MOST_EXTRA = 3
_EXACT_LIMIT = 2000
"""Models with more nodes are not analysed for exactness, because the analysis would take longer than the run."""


class Around:
    """Producer of cases of one model, mostly with `inputs` that it is known to run with.

    Inputs of other sizes and elements may contradict the model, as an index that is out of range does. The recipe of
    such a case has `unproven`, so that an error of every build is no finding. `most_bytes` is the size of all inputs
    that a case may have (None: any). Raises ModelError when the model is invalid, or has an input that is no tensor or
    too large; NothingTested when it has no operator.
    """

    def __init__(self, path: Path, inputs: Sequence[FittingInput] = (), most_bytes: int | None = None) -> None:
        self.model = load(path)
        self._fitting = {one.name: one for one in inputs}
        check(self.model)
        if not self.model.graph.nodes:
            raise NothingTested(f"{path} has no operator, so there is nothing to compile and nothing was tested")
        self.spec = f"{AROUND}{{model={path.name}}}"
        self._inputs = [info for info in self.model.graph.inputs if info.name not in self.model.graph.initializers]
        for info in (*self._inputs, *self.model.graph.outputs):
            _require_plain(info)
        if most_bytes is not None:
            _require_small(self._inputs, most_bytes)
        self._inner = self._inner_values()

    def propose(self, rng: random.Random) -> Case:
        """Return the model, perhaps with more outputs, on a new feed."""
        model, extra = self._variant(rng)
        fitting = bool(self._fitting) and rng.random() < _FITTING_SHARE
        feed = self._feed(rng, fitting=fitting)
        names = [info.name for info in self._inputs]
        exact = frozenset[str]()
        if len(model.graph.nodes) <= _EXACT_LIMIT:
            exact = exact_outputs(model, dict(zip(names, feed, strict=True)))
        recipe: dict[str, Any] = {"producer": self.spec, "extra_outputs": extra}
        if not fitting and self._inputs:
            recipe["unproven"] = True
        return Case(to_program(model, exact), (feed,), recipe)

    def learn(self, case: Case, outcomes: Sequence[Outcome], verdict: Verdict) -> None:
        """Do nothing: the cases of a fixed model do not depend on outcomes."""

    def _variant(self, rng: random.Random) -> tuple[Model, list[str]]:
        if not self._inner or rng.random() > _INNER_SHARE:
            return self.model, []
        count = min(len(self._inner), 1 + int(rng.random() * _MOST_EXTRA))
        extra = rng.sample(sorted(self._inner), count)
        outputs = self.model.graph.outputs + tuple(ValueInfo(name, self._inner[name]) for name in extra)
        return replace(self.model, graph=replace(self.model.graph, outputs=outputs)), extra

    def _feed(self, rng: random.Random, *, fitting: bool) -> Feed:
        style = Style(rng.random() < 0.5, rng.random() < 0.3)
        if fitting:
            return tuple(self._fitted(rng, info, style) for info in self._inputs)
        bound: dict[str, int] = {}
        return tuple(self._tensor(rng, info, style, bound) for info in self._inputs)

    def _fitted(self, rng: random.Random, info: ValueInfo, style: Style) -> Tensor:
        """Return an input of the sizes that fit, with floats of any usual range and other elements of the known one."""
        assert isinstance(info.type, TensorType)
        dtype, known = info.type.dtype, self._fitting[info.name]
        span = choose_range(dtype, replace(style, full=False)) if is_float(dtype) else known.range
        return Tensor(dtype, draw(rng, dtype, known.shape, span))

    def _tensor(self, rng: random.Random, info: ValueInfo, style: Style, bound: dict[str, int]) -> Tensor:
        assert isinstance(info.type, TensorType)
        shape = []
        for place, size in enumerate(info.type.shape or ()):
            name = size if isinstance(size, str) else f"{info.name}.{place}"
            shape.append(size if isinstance(size, int) else bound.setdefault(name, rng.choice(_SIZES)))
        dtype = info.type.dtype
        return Tensor(dtype, draw(rng, dtype, tuple(shape), choose_range(dtype, style)))

    def _inner_values(self) -> dict[str, ValueType]:
        graph = self.model.graph
        known = value_types(self.model, strict=False)
        outer = {info.name for info in (*graph.inputs, *graph.outputs)} | set(graph.initializers)
        names = [name for node in graph.nodes for name in node.outputs if name and name not in outer]
        return {name: known[name] for name in names if _is_plain(known.get(name))}


def _is_plain(kind: ValueType | None) -> bool:
    return isinstance(kind, TensorType) and kind.dtype in PLAIN and kind.shape is not None


def _require_plain(info: ValueInfo) -> None:
    if not isinstance(info.type, TensorType) or info.type.dtype not in DTYPES:
        raise ModelError(f"'{info.name}' is no tensor; only models with tensors as inputs and outputs can be checked")
    if info.type.dtype not in PLAIN:
        raise ModelError(f"'{info.name}' is of type {info.type.dtype}, for which no inputs can be drawn")


def _require_small(inputs: Sequence[ValueInfo], most: int) -> None:
    """Raise ModelError with the largest input when all together have more than `most` bytes; symbolic sizes are 1."""
    sizes = {info.name: _least_bytes(info) for info in inputs}
    if sum(sizes.values()) > most:
        name = max(sizes, key=sizes.__getitem__)
        raise ModelError(
            f"the input '{name}' has {sizes[name]:,} bytes, and all inputs {sum(sizes.values()):,}: no worker can be"
            f" fed more than {most:,} bytes here; make it smaller, or raise --limit-memory"
        )


def _least_bytes(info: ValueInfo) -> int:
    assert isinstance(info.type, TensorType)
    elements = prod(size if isinstance(size, int) else 1 for size in info.type.shape or ())
    return elements * DTYPES[info.type.dtype].storage.itemsize
