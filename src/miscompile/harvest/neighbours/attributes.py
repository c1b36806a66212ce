"""Steps on attributes: left out, at the default written out, at every value that is listed, and at edges."""

from collections.abc import Iterator

import numpy as np

from miscompile.core.tensor import tensor
from miscompile.harvest.constraints.generate import Constraint
from miscompile.harvest.neighbours.call import StepView, Variation, describes, is_tensor
from miscompile.instances.values import Drawn, Held, Name, Value, tensor_of
from miscompile.instances.wording import brief

_LARGE = 2**31 - 1
_SEEN = 8
"""Largest number of values of other instances that are tried."""
_LONGEST = 8
"""Greatest length of a list whose elements are changed one by one."""
_EXTREME = (0.0, 1.0, -1.0, 0.5, 1e-30, 1e30, float("inf"))
_TYPES = ("float32", "float64", "float16", "bfloat16", "int64", "int32", "int8", "uint8", "bool", "complex64")


def attributes(scene: StepView) -> Iterator[Variation]:
    """Yield the instance with each attribute at its other values."""
    for name, one in scene.constraints.items():
        if is_tensor(one):
            continue
        now = scene.values.get(name)
        if now is not None and not one.required:
            yield Variation({name: None}, f"{name} left out")
        met: set[str] = {_key(now)}
        for value, said in _values(scene, one, now):
            if _key(value) not in met:
                met.add(_key(value))
                change = f"{brief(now)} -> {brief(value)}" if now is not None else f"given as {brief(value)}"
                yield Variation({name: value}, f"{name} {change}{said}")


def _key(value: Value) -> str:
    """Return what tells values apart; 1, 1.0 and True are different, a list is its tuple."""
    return repr(tuple(value) if isinstance(value, list) else value)


def _values(scene: StepView, one: Constraint, now: Value) -> Iterator[tuple[Value, str]]:
    if one.default is not None:
        yield one.default, ", its default"
    for value in one.values:
        yield value, ""
    seen = [other.get(one.name) for other in scene.siblings]
    kept = [value for value in dict.fromkeys(map(_plain, seen)) if value is not None]
    for value in kept[:_SEEN]:
        yield value, ", as in another test"
    for kind in one.kinds:
        if kind == "int" and not one.values:
            yield from ((number, "") for number in _integers(scene, one, now))
        elif kind == "float":
            ends = [float(end) for end in (one.low, one.high) if end is not None]
            yield from ((number, "") for number in (*_EXTREME, *ends))
        elif kind == "bool":
            yield from (((True, "")), ((False, "")))
        elif kind == "dtype":
            yield from ((Name("dtype", name), "") for name in _TYPES)
        elif kind == "ints":
            yield from ((value, "") for value in integer_lists(scene, one, now))
        elif kind == "floats":
            size = len(now) if isinstance(now, tuple | list) else 1
            yield from (((number,) * size, "") for number in _EXTREME)


def _plain(value: Value) -> Value:
    """Return a plain value, None for an object."""
    if isinstance(value, list):
        value = tuple(value)
    return value if isinstance(value, bool | int | float | str | Name) or _flat(value) else None


def _flat(value: Value) -> bool:
    return isinstance(value, tuple) and all(isinstance(item, bool | int | float | str) for item in value)


def _integers(scene: StepView, one: Constraint, now: Value) -> list[int]:
    rank = scene.rank()
    if one.axis:
        return [0, -1, rank - 1, -rank, rank // 2, *((rank,) if rank else ())]
    own = [now + 1, now - 1] if isinstance(now, int) else []
    ends = [int(end) for end in (one.low, one.high) if end is not None]
    return [0, 1, -1, 2, *own, scene.largest() + 1, *ends, _LARGE]


def integer_lists(scene: StepView, one: Constraint, now: Value) -> Iterator[tuple[int, ...]]:
    """Yield lists of integers at their edges: empty, all alike, one element changed, reversed, one element repeated."""
    rank = scene.rank()
    yield ()
    given = tuple(item for item in now if isinstance(item, int)) if isinstance(now, tuple | list) else ()
    edges = [0, -1, rank - 1, -rank] if one.axis else [0, 1, -1, 2, scene.largest() + 1]
    lengths = [len(given)] if given else [1, rank] if one.axis else sorted({1, max(rank - 2, 1), 2 * max(rank - 2, 1)})
    for length in lengths:
        yield from ((number,) * length for number in edges)
    if one.axis and rank > 1:
        yield from (tuple(range(rank)), tuple(range(-rank, 0)), (0, rank - 1), (rank - 1, 0))
    yield given[::-1]
    for place, number in enumerate(given[:_LONGEST]):
        for other in dict.fromkeys([*edges, number + 1, number - 1]):
            yield (*given[:place], other, *given[place + 1 :])


def descriptions(scene: StepView) -> Iterator[Variation]:
    """Yield the instance with each operand of axes, pads, sizes and the like at the edges of such a list."""
    for name, one in scene.constraints.items():
        value = scene.values.get(name)
        if not describes(one) or not isinstance(value, Held | Drawn):
            continue
        found = tensor_of(value)
        if found.dtype not in ("int64", "int32") or found.array.ndim != 1:
            continue
        now, limits = tuple(int(item) for item in found.array[:64]), np.iinfo(found.array.dtype)
        for other in dict.fromkeys(integer_lists(scene, one, now)):
            if other != now and all(limits.min <= item <= limits.max for item in other):
                held = Held(tensor(np.array(other, found.array.dtype)))
                yield Variation({name: held}, f"{name} {brief(now)} -> {brief(other)}")
