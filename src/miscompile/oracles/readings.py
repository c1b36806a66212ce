"""Readings of a program: its values under each interpretation that IEEE 754 and the operators' pages allow.

What a standard leaves open is a named `Freedom` of the operator, or of all arithmetic. Each freedom is a reading of the
whole program, computed by onnx's reference implementation, node by node. A result is specified where all readings agree
about it; nothing else is held against a compiler.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx.reference import ReferenceEvaluator

from miscompile.base.dtypes import DTYPES
from miscompile.base.errors import ModelError
from miscompile.base.rng import array_stream
from miscompile.core.tensor import Array, Tensor
from miscompile.graph.emit import emit
from miscompile.graph.foreign import from_foreign
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.ops.definitions.evaluator import evaluator
from miscompile.ops.facts import Exactness
from miscompile.ops.registry import written
from miscompile.ops.spec import Freedom, OpSpec
from miscompile.ops.special import least_normal, native

FREEDOMS: Mapping[str, str] = {
    "as written": "IEEE 754-2019, section 5: every operation in its own type, rounded to nearest",
    "wide": "ONNX names no type for the steps inside an operator",
    "flushed": "IEEE 754-2019 has no flush to zero, but processors' modes and libraries do: subnormal numbers are zero",
    "kept": "16-bit floats may be kept in float32 between operators (GPUs, processors without such arithmetic)",
    "contracted": "C11 6.5: a product and the sum that takes it may be rounded once",
    "low": "IEEE 754-2019, 9.6, has maximum and maximumNumber; ONNX does not say which: NaN counts as least",
    "high": "the same: NaN counts as largest",
    "positive zeros": "IEEE 754-2008, 5.3.1: either zero is the maximum of both; pages give functions no sign of zero",
    "negative zeros": "the same, with the other zero",
    "converted to zero": "C11 6.3.1.4: a float out of range has no integer; this reading gives zero",
    "converted to most": "C11 6.3.1.4: a float out of range has no integer; this reading gives the largest",
    "saturated": "C11 6.5: a signed integer must not overflow; this reading saturates",
    "another order": "ONNX orders no terms: a step that overflows is infinite, and infinities of both signs are NaN",
    "noise up": "libraries and passes differ in the last places of results that are rounded: all are larger",
    "noise down": "the same: all are smaller",
    "noise in turns": "the same: the results of every other operator are larger, and the operands of functions",
    "noise against": "the same, and the operands of functions are moved the other way",
    "noise 1": "the same, at random",
    "noise 2": "the same, at random",
    "noise 3": "the same, at random",
}
"""Readings by name, with their sources. NaN's payload and sign are no reading: nothing compares them."""

CHOICES: Mapping[str, Freedom] = {
    "low": "nan", "high": "nan", "positive zeros": "zero", "negative zeros": "zero",
    "converted to zero": "conversion", "converted to most": "conversion", "saturated": "overflow",
    "another order": "order",
}  # fmt: skip
"""Readings of which every operator may follow another one, each with the freedom that it stands for."""

_UNBOUNDED = "unbounded"
"""No reading that every compiler may choose: inner results have a wider range and precision than their types."""

_NOISE = 4.0
"""Largest noise of a result, in units in the last place."""

_ROUNDED = 1e-6
"""Relative error of sums of terms of one sign, at most."""

_NARROW = frozenset({"float16", "bfloat16"})


class UnreadableError(ModelError):
    """The program has a node about which nothing is specified, or which the reference implementation cannot run."""


@dataclass(slots=True)
class ReadableProgram:
    """A program whose readings are computed: nodes with a spec that says what is specified, without bodies."""

    model: Model
    _evaluators: dict[int, ReferenceEvaluator] = field(default_factory=dict)
    _specs: dict[int, OpSpec] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = written()
        for place, node in enumerate(self.model.graph.nodes):
            spec = known.get(node.op)
            if node.op == "Constant" and "value" in node.attributes:
                continue
            if spec is None or spec.special is None or node.domain:
                raise UnreadableError(f"nothing is specified about special values in {node.op}")
            self._specs[place] = spec

    def readings(self, feed: Mapping[str, Tensor]) -> dict[str, list[Array]]:
        """Return by reading the outputs as numbers; readings that cannot differ are left out.

        Raises UnreadableError when the reference implementation fails.
        """
        names = [name for name in FREEDOMS if self._matters(name, feed)]
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                first = self._values(feed, "as written", {})
                types = {name: value.dtype for name, value in first.items()}
                found = {name: self._values(feed, name, types) for name in names if name != "as written"}
            except Exception as error:  # noqa: BLE001 - the reference implementation raises whatever numpy raises
                raise UnreadableError(f"the reference implementation fails: {error}") from None
            ends = [info.name for info in self.model.graph.outputs]
            whole = {"as written": first, **found}
            return {name: [values[end].astype(types[end]) for end in ends] for name, values in whole.items()}

    @property
    def calls(self) -> int:
        """The number of nodes that are no constants."""
        return len(self._specs)

    def as_written(self, feed: Mapping[str, Tensor]) -> list[Tensor]:
        """Return the outputs in the first reading. Raises UnreadableError when the reference implementation fails."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                values = self._values(feed, "as written", {})
            except Exception as error:  # noqa: BLE001 - the reference implementation raises whatever numpy raises
                raise UnreadableError(f"the reference implementation fails: {error}") from None
        return [from_foreign(values[info.name]) for info in self.model.graph.outputs]

    def unbounded(self, feed: Mapping[str, Tensor]) -> list[Array] | None:
        """Return the outputs as they are if inner results have a wider range: 11 bits of exponent, 15 for float64.

        None where the reference implementation cannot compute them.
        """
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                types = {name: value.dtype for name, value in self._values(feed, "as written", {}).items()}
                values = self._values(feed, _UNBOUNDED, types)
            except Exception:  # noqa: BLE001 - the reference implementation raises whatever numpy raises
                return None
            return [values[info.name].astype(types[info.name]) for info in self.model.graph.outputs]

    def _matters(self, reading: str, feed: Mapping[str, Tensor]) -> bool:
        open_here = {one for spec in self._specs.values() if spec.special for one in spec.special.freedoms}
        return reading not in CHOICES or CHOICES[reading] in open_here

    def _values(self, feed: Mapping[str, Tensor], reading: str, types: Mapping[str, Any]) -> dict[str, Array]:
        """Return every value under a reading; `types` are those of the values as they are written."""
        graph = self.model.graph
        known = {name: _numbers(value) for name, value in (*graph.initializers.items(), *feed.items())}
        known = {name: _stored_as(value, reading) for name, value in known.items()}
        wide: dict[str, Array] = {}
        for place, node in enumerate(graph.nodes):
            if place not in self._specs:
                known[node.outputs[0]] = _stored_as(_numbers(node.attributes["value"].value), reading)
                continue
            self._step(place, node, reading, known, wide, types)
        return known

    def _step(
        self, place: int, node: Node, reading: str, known: dict[str, Array], wide: dict[str, Array],
        types: Mapping[str, Any],
    ) -> None:  # fmt: skip
        """Compute one node under a reading."""
        spec = self._specs[place]
        special = spec.special
        assert special is not None
        rounds = spec.exactness is not Exactness.MOVES
        given = [known[name] if name else None for name in node.inputs]
        if special.fused == "sum" and reading == "contracted" and not wide.keys().isdisjoint(node.inputs):
            given = [value if value is None else _wider(value) for value in given]
            given = [wide.get(name, value) for name, value in zip(node.inputs, given, strict=True)]
        given = [None if value is None else _operand(value, reading, spec, place) for value in given]
        results = self._run(place, node, given)
        if "conversion" in special.freedoms and reading == "kept" and _is_float(types[node.outputs[0]]):
            results = [np.asarray(given[0])]
        for name, made in zip(node.outputs, results, strict=False):
            if not name:
                continue
            kind = types.get(name, made.dtype)
            if reading == "another order" and "order" in special.freedoms and _is_float(kind):
                made = self._ordered(place, node, given, made, kind)
            if reading == "contracted" and special.fused == "product" and _is_float(kind):
                # Rounded here for all readers but the sums.
                exact = self._run(place, node, [None if one is None else _wider(one) for one in given])[0]
                wide[name] = exact
            if reading.startswith("converted") and "conversion" in special.freedoms and given[0] is not None:
                made = _converted(made, given[0], kind, 0.0 if reading.endswith("zero") else float("inf"))
            known[name] = _result(made, kind, reading, rounds=rounds, spec=spec, place=place)

    def _ordered(self, place: int, node: Node, given: Sequence[Array | None], made: Array, kind: Any) -> Array:  # noqa: ANN401 - a dtype
        """Return `made`, the sums of a node, with NaN for each whose steps overflow in one order and not in another."""
        finite = [_floats_by(lambda one: _wider(np.where(np.isfinite(one), one, 0)), one) for one in given]
        total = self._run(place, node, finite)[0]
        most = self._run(place, node, [_floats_by(np.abs, one) for one in finite])[0]
        one_sign = (np.abs(total) >= most * (1 - _ROUNDED)) & (np.sign(total) == np.sign(made))
        return np.where((most > DTYPES[_name(kind)].high) & ~one_sign, np.asarray(np.nan, made.dtype), made)

    def _run(self, place: int, node: Node, given: Sequence[Array | None]) -> list[Array]:
        if place not in self._evaluators:
            inputs = tuple(
                ValueInfo(f"x{i}", TensorType("float32", None)) for i, name in enumerate(node.inputs) if name
            )
            names = tuple(f"x{i}" if name else "" for i, name in enumerate(node.inputs))
            outputs = tuple(f"y{i}" if name else "" for i, name in enumerate(node.outputs))
            ends = tuple(ValueInfo(name, None) for name in outputs if name)
            graph = Graph("node", inputs, ends, (Node(node.op, names, outputs, node.attributes),))
            self._evaluators[place] = evaluator(emit(Model(graph, self.model.opsets)))
        fed = {f"x{i}": value for i, value in enumerate(given) if value is not None}
        made = iter(self._evaluators[place].run(None, fed))
        return [np.asarray(next(made)) if name else np.zeros(()) for name in node.outputs]


def _floats_by(change: Callable[[Array], Array], operand: Array | None) -> Array | None:
    """Return an operand of floats changed, and another one as it is."""
    return change(operand) if operand is not None and _is_float(operand.dtype) else operand


def _noise(reading: str, place: int, shape: tuple[int, ...], kind: Any) -> Array:  # noqa: ANN401 - a dtype
    """Return the relative noise of a value in a reading; `place` is that of the node."""
    most = _NOISE * float(DTYPES[_name(kind)].eps)
    turn = 1.0 - 2.0 * (place % 2)
    turns = {"noise up": 1.0, "noise down": -1.0, "noise in turns": turn, "noise against": turn}
    if reading in turns:
        return np.full(shape, most * turns[reading])
    return most * (array_stream(place, reading).random(shape) * 2 - 1)


def _operand(value: Array, reading: str, spec: OpSpec, place: int) -> Array:
    """Return an operand of a node as a reading sees it."""
    assert spec.special is not None
    freedoms, floats, rounds = spec.special.freedoms, _is_float(value.dtype), spec.exactness is not Exactness.MOVES
    if not floats:
        if reading == "saturated" and "overflow" in freedoms and value.dtype.kind == "i":
            return value.astype(np.float64)
        return value
    if reading == "flushed" and rounds:
        return _flushed(value)
    if reading == "wide" and rounds and "conversion" not in freedoms:
        return value.astype(np.float64)
    if reading in ("low", "high") and "nan" in freedoms:
        return np.where(np.isnan(value), np.asarray(-np.inf if reading == "low" else np.inf, value.dtype), value)
    if reading.startswith("noise") and rounds and "conversion" not in freedoms:
        wide = value.astype(np.float64)
        if "rounding" not in freedoms or reading in ("noise up", "noise down"):
            return wide
        # A function may round its operand as well, such as the reduced argument of a sine.
        way = -1.0 if reading == "noise against" else 1.0
        return wide * (1 + way * _noise(reading, place, wide.shape, value.dtype))
    return value


def _result(made: Array, kind: Any, reading: str, *, rounds: bool, spec: OpSpec, place: int) -> Array:  # noqa: ANN401 - a dtype
    """Return a result of a node as a reading sees it, in the type `kind`."""
    assert spec.special is not None
    freedoms = spec.special.freedoms
    if not _is_float(kind):
        if reading == "saturated" and made.dtype.kind == "f" and np.dtype(kind).kind in "iu":
            return _saturated(made, kind)
        return made.astype(kind)
    if reading.startswith("noise") and rounds and spec.exactness is not Exactness.INDEX:
        scale = _noise(reading, place, made.shape, kind)
        wide = made.astype(np.float64)
        made = wide * (1 + scale) + (np.where(np.isfinite(wide), scale, 0) if spec.approximated else 0)
    if reading == "kept" and _name(kind) in _NARROW:
        return made.astype(np.float32)
    if reading == _UNBOUNDED:
        return made.astype(_wider(np.zeros((), kind)).dtype)
    found = made.astype(kind)
    if reading == "flushed" and rounds:
        found = _flushed(found)
    if reading.endswith("zeros") and "zero" in freedoms:
        zero = np.asarray(0.0 if reading.startswith("positive") else -0.0, found.dtype)
        found = np.where(found == 0, zero, found)
    return found


def _converted(made: Array, given: Array, kind: Any, beyond: float) -> Array:  # noqa: ANN401 - a dtype
    """Return integers that were converted from floats; those out of range become zero, or the largest integer."""
    if not _is_float(given.dtype) or np.dtype(kind).kind not in "iu":
        return made
    limits, wide = np.iinfo(kind), given.astype(np.float64)
    inside = (wide > float(limits.min) - 1) & (wide < float(limits.max) + 1)
    return np.where(inside, made, 0 if beyond == 0 else limits.max).astype(kind)


def _saturated(made: Array, kind: Any) -> Array:  # noqa: ANN401 - a dtype
    limits = np.iinfo(kind)
    inside = np.clip(np.nan_to_num(made), float(limits.min), float(limits.max))
    high, low = inside >= float(limits.max), inside <= float(limits.min)
    cut = np.where(high | low, 0, inside).astype(kind)
    return np.where(high, limits.max, np.where(low, limits.min, cut)).astype(kind)


def _numbers(value: Tensor) -> Array:
    return value.array.view(native("bfloat16")) if value.dtype == "bfloat16" else value.array


def _name(kind: Any) -> str:  # noqa: ANN401 - a dtype
    return str(np.dtype(kind).name)


def _is_float(kind: Any) -> bool:  # noqa: ANN401 - a dtype
    return _name(kind) in ("float16", "bfloat16", "float32", "float64")


def _stored_as(value: Array, reading: str) -> Array:
    """Return an input or a constant as a reading stores it."""
    if reading == _UNBOUNDED and _is_float(value.dtype):
        return _wider(value)
    return value.astype(np.float32) if reading == "kept" and _name(value.dtype) in _NARROW else value


def _wider(value: Array) -> Array:
    """Return numbers in a type that holds their products exactly, or nearly so for float64."""
    return value.astype(np.longdouble if value.dtype == np.float64 else np.float64)


def _flushed(value: Array) -> Array:
    if not _is_float(value.dtype):
        return value
    small = (np.abs(value) < np.asarray(least_normal(_name(value.dtype)), value.dtype)) & (value != 0)
    return np.where(small, np.copysign(np.zeros_like(value), value), value)
