"""Constraints on the parameters of operators, and instances generated from them, after DocTer
(https://doi.org/10.1145/3533767).

Other modules provide the constraints (schemas, signatures, documentation). Conforming instances have parameters drawn
within the constraints; boundary instances are valid ones with one parameter at an end of its range. Documentation is
often incomplete or wrong, so an instance counts only when the library runs it.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

from miscompile.base.dtypes import DTYPES
from miscompile.base.rng import stream
from miscompile.instances.archive import distinct
from miscompile.instances.instance import CallStyle, Instance, Library
from miscompile.instances.values import Drawn, Held, Name, Value

ParameterKind = Literal["tensor", "tensors", "int", "ints", "float", "floats", "bool", "text", "dtype"]

ParameterPlace = Literal["given", "called", "attribute"]
"""The place of a parameter: the call (of a module: its construction), the call of a module, or a node's attributes."""

InstanceCheck = Callable[[Instance], bool]
"""Tells whether the library runs an instance."""

BASES = 3
"""Number of valid instances from which boundary instances are made."""

_SIZES = (1, 2, 3, 4, 6, 8)
_RANKS = (1, 2, 2, 3, 3, 4, 4, 5)
_LARGE = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Constraint:
    """The constraint on one parameter.

    `kinds` are tried in their order; `values` are all allowed values, if they are listed. `dtypes` and `ranks` are
    those of a tensor, empty for any; `group` names tensors whose element types must agree. `low` and `high` bound
    numbers, `lengths` tuples of them. An `axis` counts dimensions of the first tensor: its bounds are its rank.
    """

    name: str
    kinds: tuple[ParameterKind, ...]
    required: bool = True
    default: Value = None
    values: tuple[Value, ...] = ()
    dtypes: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    low: float | None = None
    high: float | None = None
    lengths: tuple[int, ...] = ()
    axis: bool = False
    place: ParameterPlace = "given"
    group: str = "T"


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator with the constraints on its parameters, in their order."""

    library: Library
    api: str
    form: CallStyle
    parameters: tuple[Constraint, ...]
    version: int = 0


@dataclass(slots=True)
class Scene:
    """Shared choices for the parameters of one instance: the element types by group, and a shape."""

    dtypes: dict[str, str]
    shape: tuple[int, ...]
    draw: random.Random

    def dtype(self, constraint: Constraint) -> str:
        """Return the element type of a tensor, that of its group if it allows it."""
        known = self.dtypes.get(constraint.group)
        if known is None or (constraint.dtypes and known not in constraint.dtypes):
            usual = [name for name in ("float32", "int64", "bool") if name in constraint.dtypes]
            known = usual[0] if usual else constraint.dtypes[0] if constraint.dtypes else "float32"
            self.dtypes.setdefault(constraint.group, known)
        return known


def generate(
    operation: Operation, seed: int, count: int, runs: InstanceCheck, bases: Iterable[Instance] = ()
) -> Iterator[Instance | None]:
    """Yield instances that the library runs, at most `count` conforming ones and as many at boundaries.

    Yields None for each that the library rejects. `bases` are known valid instances, of library tests for example.
    Boundary instances are made from them too, which reaches operators with relations between tensors that no constraint
    expresses.
    """
    conforming: list[Instance] = []
    for attempt in range(4 * count):
        if len(conforming) == count:
            break
        made = assembled(operation, drawn(operation, stream(seed, operation.api, attempt)))
        works = runs(made)
        if works:
            conforming.append(made)
        yield replace(made, source="constraints", origin=f"conforming {attempt}") if works else None
    good = [*(one for one in bases if one.api == operation.api), *conforming][:BASES]
    ends = distinct(one for base in good for one in at_ends(operation, base))
    found = 0
    for made in islice(ends, 8 * count):
        if found == count:
            break
        works = runs(made)
        found += works
        yield replace(made, source="constraints") if works else None


def drawn(operation: Operation, draw: random.Random) -> dict[str, Value]:
    """Return parameters within their constraints, the optional ones sometimes."""
    first = next((one for one in operation.parameters if "tensor" in one.kinds), None)
    rank = draw.choice(first.ranks if first and first.ranks else _RANKS)
    shape = tuple(draw.choice(_SIZES) for _ in range(rank))
    dtypes: dict[str, str] = {}
    for one in operation.parameters:
        if "tensor" in one.kinds and one.group not in dtypes:
            choices = one.dtypes or ("float32",)
            dtypes[one.group] = "float32" if "float32" in choices and draw.random() < 0.6 else draw.choice(choices)
    scene = Scene(dtypes, shape, draw)
    return {
        one.name: conforming_value(one, scene) for one in operation.parameters if one.required or draw.random() < 0.35
    }


def conforming_value(one: Constraint, scene: Scene) -> Value:
    """Return a value within a constraint."""
    draw = scene.draw
    if one.values:
        return draw.choice(one.values)
    kind = draw.choice(one.kinds)
    if kind in ("tensor", "tensors"):
        made = _tensor(one, scene)
        return [made, replace(made, seed=made.seed + 1)] if kind == "tensors" else made
    if kind in ("ints", "floats"):
        length = draw.choice(one.lengths or (1, 2, 2, 3))
        return tuple(_number(one, scene, kind == "ints") for _ in range(length))
    if kind == "bool":
        return draw.random() < 0.5
    if kind == "dtype":
        return Name("dtype", draw.choice(("float32", "float64", "int64", "int32", "float16", "bool")))
    if kind == "text":
        return one.default if isinstance(one.default, str) else ""
    return _number(one, scene, kind == "int")


def _tensor(one: Constraint, scene: Scene) -> Drawn:
    draw, shape = scene.draw, scene.shape
    if one.ranks and len(shape) not in one.ranks:
        rank = draw.choice(one.ranks)
        shape = (shape + tuple(draw.choice(_SIZES) for _ in range(rank)))[:rank] if rank else ()
    elif draw.random() < 0.15:
        shape = shape[draw.randrange(len(shape) + 1) :]
    return tensor_drawn(scene.dtype(one), shape, draw.randrange(1000), one)


def tensor_drawn(dtype: str, shape: tuple[int, ...], seed: int, one: Constraint) -> Drawn:
    """Return a tensor within the bounds of a constraint; whole numbers are small and not negative."""
    whole = DTYPES[dtype].kind in ("int", "uint")
    low = one.low if one.low is not None else 0.0 if whole else -2.0
    high = one.high if one.high is not None else 4.0 if whole else 2.0
    return Drawn(dtype, shape, low, max(high, low), seed)


def _number(one: Constraint, scene: Scene, whole: bool) -> Value:
    draw, rank = scene.draw, len(scene.shape)
    if one.axis:
        return draw.randrange(-rank, rank) if rank else 0
    low = one.low if one.low is not None else 0 if whole else -2.0
    high = one.high if one.high is not None else low + (4 if whole else 3.0)
    return (
        draw.randint(int(low), max(int(low), int(min(high, low + 8)))) if whole else round(draw.uniform(low, high), 3)
    )


def at_ends(operation: Operation, base: Instance) -> Iterator[Instance]:
    """Yield `base` with one parameter at an end of its range; absent parameters are added."""
    values = values_of(operation, base)
    tensors = (value for value in values.values() if isinstance(value, Held | Drawn))
    shape = next((_shape(value) for value in tensors), ())
    for one in operation.parameters:
        for end in ends_of(one, values.get(one.name), shape):
            if values.get(one.name) != end or one.name not in values:
                made = assembled(operation, {**values, one.name: end})
                yield replace(made, origin=f"boundary of {one.name}")


def _shape(value: Held | Drawn) -> tuple[int, ...]:
    return value.tensor.shape if isinstance(value, Held) else value.shape


def ends_of(one: Constraint, now: Value, shape: tuple[int, ...]) -> Iterator[Value]:
    """Yield the ends of a constraint: all listed values, or 0, 1, -1 and the largest; empty and extreme tensors."""
    yield from one.values
    if one.values:
        return
    if not one.required and one.default is None and one.place == "given":
        yield None
    for kind in one.kinds:
        if kind == "tensor":
            yield from _tensor_ends(one, now, shape)
        elif kind == "bool":
            yield from (False, True)
        elif kind == "dtype":
            yield from (
                Name("dtype", name) for name in ("float64", "float16", "bfloat16", "int32", "bool", "complex64")
            )
        elif kind == "int":
            yield from _numbers(one, shape)
        elif kind == "float":
            yield from (float(number) for number in _reals(one))
        elif kind == "ints":
            length = len(now) if isinstance(now, tuple | list) else (one.lengths or (max(len(shape) - 2, 1),))[0]
            yield from ((number,) * length for number in _numbers(one, shape))


def _numbers(one: Constraint, shape: tuple[int, ...]) -> list[int]:
    rank = len(shape)
    if one.axis:
        return [0, rank - 1, -rank, -1]
    ends = [int(end) for end in (one.low, one.high) if end is not None]
    return [0, 1, -1, *ends, _LARGE]


def _reals(one: Constraint) -> list[float]:
    ends = [end for end in (one.low, one.high) if end is not None]
    return [0.0, 1.0, -1.0, *ends, 1e-6, 1e30]


def _tensor_ends(one: Constraint, now: Value, shape: tuple[int, ...]) -> Iterator[Drawn]:
    dtype = one.dtypes[0] if one.dtypes else "float32"
    if isinstance(now, Held | Drawn):
        shape = _shape(now)
        given = now.tensor.dtype if isinstance(now, Held) else now.dtype
        dtype = dtype if given == "string" else given  # texts are not generated
    for place in range(len(shape)):  # size zero, and size one, in each dimension
        for size in (0, 1):
            yield tensor_drawn(dtype, (*shape[:place], size, *shape[place + 1 :]), 7, one)
    for other in ((), (1,) * (6 - len(shape)) + shape, shape[1:]):
        yield tensor_drawn(dtype, other, 7, one)
    for name in one.dtypes:
        if name != "string":
            yield tensor_drawn(name, shape, 7, one)


def values_of(operation: Operation, instance: Instance) -> dict[str, Value]:
    """Return an instance's parameters by the operation's names for them."""
    given = [one.name for one in operation.parameters if one.place == "given"]
    called = [one.name for one in operation.parameters if one.place == "called"]
    found: dict[str, Value] = dict(zip(given, instance.args, strict=False))
    found.update(zip(called, instance.inputs, strict=False))
    names: Mapping[str, Value] = {**instance.kwargs, **instance.options}
    found.update(names)
    return {name: value for name, value in found.items() if value is not None or name in names}


def assembled(operation: Operation, values: Mapping[str, Value]) -> Instance:
    """Return the instance with these parameters: required ones by position, optional ones by name.

    Parameters without a constraint keep their names.
    """
    parameters = {one.name: one for one in operation.parameters}
    args = [
        values[name] for name, one in parameters.items() if one.place == "given" and one.required and name in values
    ]
    called = [values.get(name) for name, one in parameters.items() if one.place == "called"]
    while called and called[-1] is None:
        called.pop()
    kwargs = {
        name: value
        for name, value in values.items()
        if name not in parameters or (parameters[name].place != "called" and not _placed(parameters[name]))
    }
    return Instance(
        operation.library, operation.api, operation.form, tuple(args), kwargs, tuple(called), version=operation.version
    )


def _placed(one: Constraint) -> bool:
    return one.place == "given" and one.required
