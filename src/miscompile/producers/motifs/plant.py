"""Planting a motif into a scope, with settings mutations.

Optimisers tend to be wrong where their pattern occurs in an uncommon setting: another dtype or rank, a one-element
constant of another rank, an input instead of an initialiser, an omitted or empty optional operand, the same operand
twice, an inner result that is also a graph output, a no-op in between. They are also wrong on near misses: another axis
or order, another slice position, a broadcast operand instead of one of full shape, another value of the same type where
a pattern needs the same one, another operator of the same kind, the same operator in any other form. Axes counted from
the back change no result, but passes that compare, sort or merge axes forget them. All mutations are drawn from the
scope's random stream.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache

import numpy as np

from miscompile.base.dtypes import DTYPES, NUMBERS, is_float
from miscompile.base.errors import RejectedDraft
from miscompile.core.tensor import Tensor, tensor
from miscompile.graph.model import Attribute
from miscompile.ops.registry import having, schema, specs
from miscompile.ops.shapes import draw_shape
from miscompile.ops.spec import Call, Operand, Shape
from miscompile.ops.values import choose_range
from miscompile.patterns.language import (
    Argument,
    Full,
    Ints,
    Motif,
    MotifCall,
    MotifValue,
    Number,
    Numbers,
    Ref,
    Size,
    Weight,
)
from miscompile.producers.motifs.settings import (
    Dictionary,
    PlainSetting,
    from_the_other_end,
    near,
    nudged,
    other_value,
    wrapped,
)
from miscompile.producers.scope import CallRefused, Scope
from miscompile.producers.sites import GivenSite, insert

_COMMUTATIVE = frozenset({"Add", "Mul", "Max", "Min", "Sum", "And", "Or", "Xor", "Equal", "BitwiseAnd"})
_TWO_ALIKE = _COMMUTATIVE | {"Sub", "Div", "Pow", "MatMul", "Gemm", "Concat", "Less", "Greater", "Mod", "PRelu"}
"""Operators whose first two operands have the same type constraints, so that one value can be both."""

_KINDS = (
    ("Relu", "Sigmoid", "Tanh", "Exp", "Abs", "Neg", "Sqrt", "Log", "Sign", "Floor", "Reciprocal", "Erf"),
    ("Add", "Sub", "Mul", "Div", "Max", "Min", "Pow"),
    ("Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"),
    ("And", "Or", "Xor"),
    ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL2"),
    ("BitwiseAnd", "BitwiseOr", "BitwiseXor"),
)
_KIN = {op: tuple(other for other in kind if other != op) for kind in _KINDS for op in kind}
"""The other operators of a kind: they take the same operands, so that a pattern with one of them is a near miss."""

_COUNTED_FROM_THE_BACK = 11
"""The operator set since which operators count negative axes from the back, but for those whose trait says no."""

_ATTEMPTS = 3
_PICKS = 8
"""Number of drawn no-ops to try for an operand."""


@dataclass(frozen=True, slots=True)
class Mutations:
    """Probability of each settings mutation, for every place where it can apply."""

    dtype: float = 0.15
    constant_rank: float = 0.15
    constant_value: float = 0.04
    constant_input: float = 0.08
    weight_shape: float = 0.06
    drop_optional: float = 0.04
    empty_optional: float = 0.03
    same_operand: float = 0.05
    swap: float = 0.3
    inner_output: float = 0.1
    attribute: float = 0.06
    noop: float = 0.08
    integers: float = 0.04
    elements: float = 0.04
    broadcast: float = 0.04
    other_operand: float = 0.02
    other_operator: float = 0.02
    other_form: float = 0.06
    other_end: float = 0.15


NONE = Mutations(*[0.0] * len(fields(Mutations)))


@dataclass(slots=True)
class Planted:
    """A planted motif: its results in order, and the inner ones that shall be graph outputs."""

    results: list[Operand] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)


def plant(
    scope: Scope,
    motif: Motif,
    mutations: Mutations,
    noops: Sequence[Motif] = (),
    onto: Operand | None = None,
    dtypes: Sequence[str] | None = None,
    holes: Mapping[str, Operand] | None = None,
) -> Planted | None:
    """Plant `motif`, on `onto` as its first value if that is given; None when no operands fit.

    `holes` binds further values by their names in the motif; their types must be those that the motif requires. `noops`
    may be planted between the motif's nodes. The scope is unchanged when None is returned. Raises ValueError for a hole
    that the motif lacks.
    """
    held = _held(motif, onto, holes)
    mark = scope.mark()
    for attempt in range(_ATTEMPTS):
        try:
            planter = _Planter(scope, motif, mutations if attempt == 0 else NONE, noops, held, dtypes)
        except RejectedDraft:
            return None  # no dtype fits
        try:
            return planter.plant()
        except CallRefused:
            scope.rollback(mark)
            if not planter.mutated:  # without mutations every planting in this dtype gives the same calls
                scope.support.barren.add(_kind(scope, motif, planter.dtype))
        except RejectedDraft:
            scope.rollback(mark)
        if onto is not None and not planter.mutated:
            break  # the failure is due to the given operand, which the next attempt would use again
    return None


def _held(motif: Motif, onto: Operand | None, holes: Mapping[str, Operand] | None) -> Mapping[str, Operand]:
    """Return the given operands by the names of the motif's values."""
    if onto is None and not holes:
        return {}
    held = dict(holes or {})
    names = [statement.name for statement in motif.holes]
    unknown = [name for name in held if name not in names]
    if unknown:
        raise ValueError(f"motif {motif.name} has no value called {unknown[0]}")
    if onto is not None and names:
        held[names[0]] = onto
    return held


def plant_noop(scope: Scope, noops: Sequence[Motif], onto: Operand, mutations: Mutations = NONE) -> Planted | None:
    """Plant one of `noops` on `onto`; None when none fits. Those whose shape cannot fit are not tried."""
    rng = scope.rng
    anyhow = mutations.dtype > 0 and rng.random() < mutations.dtype
    for _ in range(_PICKS):
        motif = noops[int(rng.random() * len(noops))]
        if _kind(scope, motif, onto.dtype) in scope.support.barren:
            continue
        if (anyhow or onto.dtype in motif.dtypes) and fits(motif, onto.shape):
            return plant(scope, motif, mutations, onto=onto)
    return None


def _kind(scope: Scope, motif: Motif, dtype: str) -> tuple[str, str, int]:
    """Return the key under which the support table records that a motif needs a refused form in a dtype."""
    return motif.name, dtype, scope.opset


def untried_dtypes(scope: Scope, motif: Motif) -> tuple[str, ...]:
    """Return the dtypes of `motif` but those in which the target is known to refuse it.

    Raises RejectedDraft when there is none.
    """
    barren = scope.support.barren
    found = tuple([dtype for dtype in motif.dtypes if _kind(scope, motif, dtype) not in barren])
    if not found:
        raise RejectedDraft("the target refuses the motif in each of its dtypes")
    return found


def fits(motif: Motif, shape: Shape) -> bool:
    """Tell whether the first value of `motif` can have `shape`."""
    first = motif.statements[0]
    return not isinstance(first, MotifValue) or _matches(first, shape, {})


def _matches(statement: MotifValue, shape: Shape, bound: Mapping[str, int]) -> bool:
    """Tell whether a value of `shape` matches the statement, given the sizes in `bound`."""
    sizes = statement.sizes
    if sizes is None:
        return True
    rest = len(shape) - len(sizes)
    if rest < 0 or (rest > 0 and not statement.leading):
        return False
    for size, actual in zip(sizes, shape[rest:], strict=True):
        if actual != (bound.get(size, actual) if isinstance(size, str) else size):
            return False
    return True


def _filled(value: float, shape: Shape, dtype: str) -> Tensor:
    """Return a constant of one number, which an integer type rounds and clips; equal ones are one tensor.

    Raises RejectedDraft where the type has no such number.
    """
    return _tensor_of(value, math.copysign(1.0, value), shape, dtype)


@lru_cache(1 << 12)
def _tensor_of(value: float, sign: float, shape: Shape, dtype: str) -> Tensor:
    """Return the constant; `sign` tells the zeros apart, which are equal."""
    del sign
    if not is_float(dtype):
        info = DTYPES[dtype]
        if not math.isfinite(value):
            raise RejectedDraft(f"{dtype} has no {value}")
        value = int(min(max(round(value), info.low, -(2**31)), info.high, 2**31))
    elif math.isfinite(value) and abs(value) > DTYPES[dtype].high:
        raise RejectedDraft(f"{dtype} ends before {value}")
    return tensor(np.full(shape, value), dtype)


class _Planter:
    """One attempt to plant a motif."""

    def __init__(
        self,
        scope: Scope,
        motif: Motif,
        mutations: Mutations,
        noops: Sequence[Motif],
        held: Mapping[str, Operand],
        dtypes: Sequence[str] | None,
    ) -> None:
        self.scope, self.motif, self.mutations, self.noops = scope, motif, mutations, noops
        self.rng = scope.rng
        self.held = held
        self.mutated = False
        self.given = self._given()
        self.dtype = self.given or self._dtype(dtypes)
        self.bound: dict[str, Operand] = {}
        self.sizes: dict[str, int] = {}
        self.planted = Planted()
        self.literal = self.dtype
        self.other_end: bool | None = None
        self.dictionary = Dictionary(self.dtype, self.sizes, self._size)

    def plant(self) -> Planted:
        if self.given and self.given not in self.motif.dtypes and not self._hit(self.mutations.dtype):
            raise RejectedDraft("the motif does not take this dtype")
        for hole in self.motif.holes if self.held else ():
            if hole.name in self.held and not self._bind(hole, self.held[hole.name].shape):
                raise RejectedDraft("the values given have other shapes than the motif asks for")
        for statement in self.motif.statements:
            match statement:
                case MotifValue():
                    self._value(statement)
                case Weight():
                    self.bound[statement.name] = self._weight(statement)
                case Numbers():
                    value = self.dictionary.elements(statement.elements)
                    nudge = self._hit(self.mutations.elements)
                    self.bound[statement.name] = self._fixed(nudged(self.rng, value) if nudge else value)
                case MotifCall():
                    self._apply(statement)
        return self.planted

    def _given(self) -> str:
        """Return the dtype that the given operands imply; "" when they imply none."""
        if not self.held:
            return ""
        fixed = {self.held[hole.name].dtype for hole in self.motif.holes if hole.name in self.held and not hole.dtype}
        if len(fixed) > 1:
            raise RejectedDraft("the values given differ in their dtypes")
        return next(iter(fixed), "")

    def _hit(self, probability: float) -> bool:
        """Decide on a mutation, and record that there was one."""
        if probability > 0 and self.rng.random() < probability:
            self.mutated = True
            return True
        return False

    def _dtype(self, allowed: Sequence[str] | None) -> str:
        wide = self._hit(self.mutations.dtype)
        barren, scope, motif = self.scope.support.barren, self.scope, self.motif
        options = [
            name
            for name in (NUMBERS if wide else motif.dtypes)
            if (allowed is None or name in allowed) and _kind(scope, motif, name) not in barren
        ]
        if not options:
            raise RejectedDraft("the motif does not take the dtypes in use")
        if options[0] == "float32" and self.rng.random() < 0.4:
            return "float32"
        return self.rng.choice(options)

    def _value(self, statement: MotifValue) -> None:
        dtype = statement.dtype or self.dtype
        operand = self.held.get(statement.name) or self._find(statement, dtype)
        if operand is None:
            span = choose_range(dtype, self.scope.style, statement.within)
            shape = self._new_shape(statement)
            if shape and self.bound and self._hit(self.mutations.broadcast):
                place = int(self.rng.random() * len(shape))
                self.bound[statement.name] = self.scope.new_input(dtype, (*shape[:place], 1, *shape[place + 1 :]), span)
                return
            operand = self.scope.new_input(dtype, shape, span)
        if operand.dtype != dtype:
            raise RejectedDraft("the value has another dtype than the motif asks for")
        if not self._bind(statement, operand.shape):
            raise RejectedDraft("the value has another shape than the motif asks for")
        self.bound[statement.name] = operand

    def _find(self, statement: MotifValue, dtype: str) -> Operand | None:
        """Return a value for a hole, rarely one that another hole has: on x and x most patterns are something else."""
        pool, within = self.scope.pool.get(dtype, ()), statement.within
        bound = [one.name for one in self.bound.values()] if not self._hit(self.mutations.same_operand) else []
        for _ in range(6 if pool else 0):
            operand = pool[int(self.rng.random() * len(pool))]
            if (
                operand.value is not None
                or operand.name in bound
                or (within is not None and not operand.facts.inside(*within))
            ):
                continue
            if _matches(statement, operand.shape, self.sizes):
                return operand
        return None

    def _bind(self, statement: MotifValue, shape: Shape) -> bool:
        if not _matches(statement, shape, self.sizes):
            return False
        if statement.sizes is not None:
            tail = shape[len(shape) - len(statement.sizes) :]
            for size, actual in zip(statement.sizes, tail, strict=True):
                if isinstance(size, str):
                    self.sizes[size] = actual
        return True

    def _new_shape(self, statement: MotifValue) -> Shape:
        if statement.sizes is None:
            return draw_shape(self.rng, self.scope.limits)
        tail = tuple(self._size(size) for size in statement.sizes)
        room = max(0, self.scope.limits.max_rank - len(tail))
        leading = int(self.rng.random() * min(3, room + 1)) if statement.leading else 0
        return tuple(1 + int(self.rng.random() * 4) for _ in range(leading)) + tail

    def _size(self, size: Size) -> int:
        if isinstance(size, int):
            return size
        if size not in self.sizes:
            self.sizes[size] = 1 if self.rng.random() < 0.1 else 2 + int(self.rng.random() * 5)
        return self.sizes[size]

    def _weight(self, statement: Weight) -> Operand:
        dtype = statement.dtype or self.dtype
        shape = [self._size(size) for size in statement.sizes]
        if shape and self._hit(self.mutations.weight_shape):
            shape[int(self.rng.random() * len(shape))] = 1
        if self._hit(self.mutations.weight_shape):
            shape[:0] = [1] * (1 + int(self.rng.random() * 2))
        span = choose_range(dtype, self.scope.style, statement.within)
        if self._hit(self.mutations.constant_input):
            return self.scope.new_input(dtype, tuple(shape), span)
        return self.scope.drawn_constant(dtype, tuple(shape), span)

    def _apply(self, statement: MotifCall) -> None:
        self.literal = self._literal_dtype(statement)
        arguments = [self._argument(argument) for argument in statement.arguments]
        self._mutate_arguments(statement.op, arguments)
        results = self._redrawn(statement, arguments)
        if results is None:
            attributes = self._attributes(statement, arguments)
            call = Call(self._operator(statement), tuple(arguments), attributes, len(statement.names))
            results = self.scope.apply(call)
        for name, result in zip(statement.names, results, strict=True):
            planted = self._noop(result)
            self.bound[name] = planted
            self.planted.results.append(planted)
            if self._hit(self.mutations.inner_output):
                self.planted.outputs.append(result.name)

    def _literal_dtype(self, statement: MotifCall) -> str:
        """Return the dtype of the other operand, which may differ from the motif's behind a Cast."""
        if statement.op in having("float32-numbers"):
            return "float32"
        for argument in statement.arguments:
            if isinstance(argument, Ref) and self.bound[argument.name].dtype != "bool":
                return self.bound[argument.name].dtype
        return self.dtype

    def _operator(self, statement: MotifCall) -> str:
        """Return the operator of a call, or another one of its kind."""
        if statement.op not in _KIN or statement.attributes or not self._hit(self.mutations.other_operator):
            return statement.op
        return self.rng.choice(_KIN[statement.op])

    def _redrawn(self, statement: MotifCall, arguments: Sequence[Operand | None]) -> tuple[Operand, ...] | None:
        """Add another call of the operator on the same first operand, and return its results; None for the motif's own.

        Attributes and further operands are drawn as for a call outside of motifs.
        """
        first, known = arguments[0] if arguments else None, schema(statement.op, self.scope.opset)
        if first is None or first.value is not None or known is None or statement.op not in specs():
            return None
        if not (known.attributes or known.max_input > 1) or not self._hit(self.mutations.other_form):
            return None
        mark = self.scope.mark()
        try:
            _, results = insert(self.scope, statement.op, GivenSite(self.scope, first))
        except RejectedDraft:
            results = ()
        if len(results) == len(statement.names):
            return results
        self.scope.rollback(mark)
        return None

    def _mutate_arguments(self, op: str, arguments: list[Operand | None]) -> None:
        if len(arguments) == 2 and op in _COMMUTATIVE and self._hit(self.mutations.swap):
            arguments.reverse()
        if len(arguments) > 1 and op in _TWO_ALIKE and self._hit(self.mutations.same_operand):
            arguments[1] = arguments[0]
        if len(arguments) > 1 and self._hit(self.mutations.drop_optional):
            arguments.pop()
        if self._is_optional(op, len(arguments)) and self._hit(self.mutations.empty_optional):
            arguments.append(None)  # an empty name at the end of the inputs, which says the same as no name

    def _is_optional(self, op: str, place: int) -> bool:
        known = schema(op, self.scope.opset)
        return known is not None and place < len(known.inputs) and known.inputs[place].option.name == "Optional"

    def _other(self, operand: Operand) -> Operand:
        """Return another value of the type and shape, if there is one, else a new input."""
        alike = [one for one in self.scope.pool[operand.dtype] if one.shape == operand.shape and one.value is None]
        if len(alike) > 1:
            return self.rng.choice(alike)
        return self.scope.new_input(operand.dtype, operand.shape, choose_range(operand.dtype, self.scope.style, None))

    def _noop(self, result: Operand) -> Operand:
        if not self.noops or not self._hit(self.mutations.noop):
            return result
        planted = plant_noop(self.scope, self.noops, result)
        return planted.results[-1] if planted is not None and planted.results else result

    def _argument(self, argument: Argument) -> Operand | None:
        match argument:
            case None:
                return None
            case Ref(name):
                given = self.bound[name]
                return self._other(given) if given.value is None and self._hit(self.mutations.other_operand) else given
            case Number(value):
                return self._number(self._mutated(value))
            case Full(value, sizes):
                shape = tuple([self._size(size) for size in sizes])
                return self._fixed(_filled(self._mutated(value), shape, self.literal))
            case Ints(values, scalar):
                numbers = tuple([self._size(value) for value in values])
                numbers = near(self.rng, numbers) if numbers and self._hit(self.mutations.integers) else numbers
                return self._fixed(Tensor("int64", np.asarray(numbers, np.int64).reshape(() if scalar else -1)))

    def _mutated(self, value: float) -> float:
        if self._hit(self.mutations.constant_value):
            return self.rng.choice([0.0, 1.0, 2.0, -value, value * 2, value / 2])
        return value

    def _number(self, value: float) -> Operand:
        rank = 1 + int(self.rng.random() * 3) if self._hit(self.mutations.constant_rank) else 0
        return self._fixed(_filled(value, (1,) * rank, self.literal))

    def _fixed(self, value: Tensor) -> Operand:
        if self._hit(self.mutations.constant_input):
            return self.scope.new_pinned(value)
        return self.scope.new_constant(value, as_node=self.rng.random() < 0.05)

    def _attributes(self, statement: MotifCall, arguments: list[Operand | None]) -> Mapping[str, Attribute]:
        known = schema(statement.op, self.scope.opset)
        found: dict[str, Attribute] = {}
        for name, setting in statement.attributes:
            value = self._axes(statement.op, name, self.dictionary.plain(name, setting), arguments)
            other = other_value(self.rng, name, value) if self._hit(self.mutations.attribute) else value
            if name == "axes" and known is not None and "axes" not in known.attributes:
                chosen = value if other is None else other
                arguments.append(self._fixed(Tensor("int64", np.asarray(chosen, np.int64))))
            elif other is not None:
                found[name] = wrapped(statement.op, self.scope.opset, name, other)
        return found

    def _axes(self, op: str, name: str, value: PlainSetting, arguments: Sequence[Operand | None]) -> PlainSetting:
        """Return the same axes counted from the other end, in all calls of the planting or in none.

        Axes that a motif writes as an operand stay as they are.
        """
        first = arguments[0] if arguments else None
        if name not in ("axis", "axes") or first is None or self.scope.opset < _COUNTED_FROM_THE_BACK:
            return value
        if op in having("axes-as-written"):
            return value
        if self.other_end is None:
            self.other_end = self._hit(self.mutations.other_end)
        return from_the_other_end(value, len(first.shape)) if self.other_end else value
