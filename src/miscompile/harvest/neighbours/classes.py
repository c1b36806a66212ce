"""The classes of an instance: what presence, type, rank, sizes and values of its parameters pairwise coverage counts.

A factor is one aspect of an instance (`X.rank`, `axis`, `type T`), and has one class in each instance. An operand that
is left out has a presence only.
"""

import math

from miscompile.base.dtypes import DTYPES
from miscompile.core.tensor import Tensor
from miscompile.harvest.constraints.generate import Constraint
from miscompile.harvest.neighbours.call import OPERANDS, OUTPUTS, StepView, describes, is_tensor
from miscompile.instances.values import Drawn, Held, Name, Value, tensor_of
from miscompile.instances.wording import class_of_elements

_RANKS = 6
_LARGE, _SMALL = 1e4, 1e-4
_WIDE = 1000
_ORDER = ("large", "below -1", "out of range", "first, negative", "-1", "negative", "0", "last", "above 1")
"""Classes of integers, the most unusual first."""


def classes(scene: StepView) -> dict[str, str]:
    """Return the class of each factor."""
    found: dict[str, str] = {}
    for name, one in scene.constraints.items():
        value = scene.values.get(name)
        if not is_tensor(one):
            found[name] = _attribute(value, one, scene.rank())
            continue
        if not one.required:
            found[name] = "absent" if value is None else "given"
        if isinstance(value, Held | Drawn):
            found.update(_operand(name, tensor_of(value), one, scene.rank()))
    outputs = scene.values.get(OUTPUTS)
    if scene.subject.node:
        named = outputs if isinstance(outputs, tuple) and outputs else tuple(not one for one in scene.subject.outputs)
        found["results"] = "".join("1" if one else "0" for one in named)
    found["operands"] = str(scene.values.get(OPERANDS) or "as migrated")
    return found


def _operand(name: str, value: Tensor, one: Constraint, rank: int) -> dict[str, str]:
    group = f"type {name}" if one.group == "T" else f"type {one.group.partition('.')[2]}"
    found = {group: value.dtype, f"{name}.rank": _rank(len(value.shape))}
    if describes(one) and value.array.ndim == 1 and DTYPES[value.dtype].kind == "int":
        numbers = tuple(int(item) for item in value.array[:64])
        return {**found, f"{name}.values": _integers(numbers, one, rank)}
    return {**found, f"{name}.sizes": _sizes(value.shape), f"{name}.values": class_of_elements(value)}


def _rank(rank: int) -> str:
    return str(rank) if rank < _RANKS else f"{_RANKS} or more"


def _sizes(shape: tuple[int, ...]) -> str:
    if 0 in shape:
        return "empty"
    if 1 in shape:
        return "all 1" if math.prod(shape) == 1 else "some 1"
    return "scalar" if not shape else "large" if max(shape) >= 16 else "plain"


def _attribute(value: Value, one: Constraint, rank: int) -> str:
    if value is None:
        return "absent"
    if one.default is not None and repr(value) == repr(one.default):
        return "default"
    if value in one.values:
        return str(value)
    match value:
        case bool() | str():
            return str(value)[:20]
        case Name(_, name):
            return name
        case int():
            return _integer(value, one, rank)
        case float():
            return _float(value)
        case tuple() | list():
            if all(isinstance(item, int) for item in value):
                return _integers(tuple(item for item in value if isinstance(item, int)), one, rank)
            return f"{min(len(value), 3)} elements"
        case _:
            return "object"


def _integer(value: int, one: Constraint, rank: int) -> str:
    if one.axis:
        ends = {0: "0", -1: "-1", rank - 1: "last", -rank: "first, negative"}
        return ends.get(value, "negative" if value < 0 else "out of range" if value >= rank else "middle")
    if -2 < value < 2:
        return str(value)
    return "below -1" if value < 0 else "large" if value > _WIDE else "above 1"


def _float(value: float) -> str:
    if not math.isfinite(value):
        return str(value)
    if value in (0.0, 1.0):
        return str(value)
    size = "huge" if abs(value) > _LARGE else "tiny" if abs(value) < _SMALL else ""
    return f"{size} negative".strip() if value < 0 else size or ("below 1" if value < 1 else "above 1")


def _integers(value: tuple[int, ...], one: Constraint, rank: int) -> str:
    """Return the class of a list: alike or mixed, and the class of its most unusual element."""
    if not value:
        return "empty"
    alike = "all" if len(set(value)) == 1 else "repeats," if len(set(value)) < len(value) and one.axis else "some"
    parts = {_integer(item, one, rank) for item in value}
    return f"{alike} {min(parts, key=_unusual)}"


def _unusual(part: str) -> int:
    return _ORDER.index(part) if part in _ORDER else len(_ORDER)
