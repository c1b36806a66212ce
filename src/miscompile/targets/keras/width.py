"""Instances that use 64-bit types, which JAX only supports when they are enabled."""

from miscompile.instances.instance import Instance
from miscompile.instances.values import Drawn, Held, Name, Slot, Value, leaves

WIDE = frozenset({"float64", "int64", "uint64", "complex128"})
"""Element types that JAX only supports when they are enabled; then operations without an explicit type return them
too."""


def is_wide(instance: Instance) -> bool:
    """Tell whether an instance uses a 64-bit type."""
    values = (*instance.args, *instance.kwargs.values(), *instance.inputs, *instance.options.values())
    return any(_type_of(leaf) in WIDE for value in values for leaf in leaves(value))


def _type_of(leaf: Value) -> str:
    match leaf:
        case Slot() | Drawn():
            return leaf.dtype
        case Held(tensor):
            return tensor.dtype
        case Name("dtype", name) | str(name):
            return name
        case _:
            return ""
