"""Subspaces of parameter values: equivalence classes of values that probably test the same (OPERA, section III-B2).

    bool, text, name, None    each value by itself, as from a limited set
    int                       (-inf, -2], [-1], [0], [1], [2, inf)
    float                     (-inf, 0), [0], (0, inf), and NaN, which is in none of these
    tensor                    element type, number of dimensions {0, 1, 2, 3, 4, 5, >= 6}, and the class of each size
    list, tuple               the class of the length, as of the number of dimensions, and those of the elements

The paper partitions tensors as lists of integers; other sequences follow from that. Of sequences longer than the last
length class, only the first elements count, so that there are finitely many classes of tensors. The remaining kinds of
values (slices, objects that the library makes, dicts) are partitioned by their parts.
"""

import math
from collections.abc import Hashable, Mapping

from miscompile.instances.instance import Instance
from miscompile.instances.sequence import layer_of
from miscompile.instances.values import Drawn, Held, Made, Name, SliceValue, Slot, Value

Subspace = Hashable
"""A class of values of one parameter, which probably test the same."""

ABSENT: Subspace = ("absent",)
"""The class of a parameter that an instance leaves at its default."""

_LONGEST = 6
"""The last length class: this many or more."""

_ELEMENT_TYPES = frozenset({"to", "dtype", "output_dtype", "stash_type", "softmax_precision"})
"""Attributes of ONNX operators that are integers, but mean an element type: values of a limited set."""


def subspace(value: Value) -> Subspace:
    """Return the subspace of `value`; every value has one."""
    match value:
        case None:
            return ("none",)
        case bool():
            return "bool", value
        case int():
            return "int", integer_class(value)
        case float():
            return "float", float_class(value)
        case complex():
            return "complex", float_class(value.real), float_class(value.imag)
        case str():
            return "text", value
        case Name(kind, name):
            return "name", kind, name
        case Held() | Drawn() | Slot():
            return _tensor(value)
        case tuple() | list():
            return "sequence", length_class(len(value)), tuple(subspace(item) for item in value[:_LONGEST])
        case dict():
            return "dict", _pairs(value)
        case SliceValue(start, stop, step):
            return "slice", subspace(start), subspace(stop), subspace(step)
        case Made(api, args, kwargs):
            return "made", api, tuple(subspace(item) for item in args), _named(kwargs)


def integer_class(value: int) -> int:
    """Return the representative of an integer's class: -2, -1, 0, 1 or 2."""
    return max(-2, min(2, value))


def float_class(value: float) -> str:
    """Return the class of a float: its sign as text, `0` or `nan`."""
    if math.isnan(value):
        return "nan"
    return "-" if value < 0 else "+" if value > 0 else "0"


def length_class(length: int) -> int:
    """Return the class of a number of dimensions or elements: 0 to 5 by themselves, 6 for all that are more."""
    return min(length, _LONGEST)


def setting(instance: Instance) -> dict[str, Subspace]:
    """Return the subspace of every parameter of an instance, by the parameter's name.

    The operator set of an ONNX node is a parameter too (`version`): front ends convert by it. With one operator set, as
    in the paper, it makes no difference to the order.
    """
    given = layer_of(instance).parameters()
    found = {name: _parameter(instance, name, value) for name, value in given.items()}
    if instance.version:
        found["version"] = ("version", instance.version)
    return found


def _parameter(instance: Instance, name: str, value: Value) -> Subspace:
    if instance.library == "onnx" and name in _ELEMENT_TYPES and isinstance(value, int):
        return "name", "dtype", value
    return subspace(value)


def _tensor(value: Held | Drawn | Slot) -> Subspace:
    dtype, shape = (value.tensor.dtype, value.tensor.shape) if isinstance(value, Held) else (value.dtype, value.shape)
    sizes = tuple(integer_class(size) for size in shape[:_LONGEST])
    return "tensor", dtype, length_class(len(shape)), sizes


def _pairs(value: Mapping[Value, Value]) -> Subspace:
    return tuple(sorted(((subspace(key), subspace(item)) for key, item in value.items()), key=repr))


def _named(value: Mapping[str, Value]) -> Subspace:
    return tuple((name, subspace(value[name])) for name in sorted(value))
