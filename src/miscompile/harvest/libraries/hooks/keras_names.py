"""Public names of Keras: the import paths of layers, operations and objects used as their parameters."""

# ruff: noqa: ANN401 - anything of Keras' can have a name

import inspect
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "jax")  # Keras reads it when it is imported; a choice made by tests remains

import keras as keras  # the hooks import it from here, so that the back end is chosen first

ROOMS = ("activations", "initializers", "regularizers", "constraints", "dtype_policies", "quantizers")
"""Modules with objects that layers take as parameters."""

NO_LAYERS = frozenset(
    {"Layer", "Wrapper", "InputLayer", "Lambda", "TFSMLayer", "JaxLayer", "FlaxLayer", "TorchModuleWrapper"}
)
"""Layers that compute nothing themselves, or that contain code or files."""

NO_OPERATIONS = frozenset(
    {
        *("cond", "fori_loop", "map", "scan", "associative_scan", "switch", "vectorized_map", "while_loop"),
        *("custom_gradient", "stop_gradient", "convert_to_numpy", "is_tensor", "device_scope", "device"),
        *("shape", "dtype", "standardize_dtype", "deserialize", "get", "serialize", "vjp", "jvp"),
    }
)
"""Functions that take other functions, or that have no tensor as their result."""


@dataclass(slots=True)
class KerasNames:
    """Import paths of layers, of operations (functions), and of all other objects that a parameter can be."""

    layers: dict[Any, str] = field(default_factory=dict)
    operations: dict[Any, str] = field(default_factory=dict)
    others: dict[Any, str] = field(default_factory=dict)

    def path(self, thing: Any) -> str | None:
        """Return the path of a function or class; None when it has no public one."""
        try:
            found = self.others.get(thing) or self.operations.get(thing)
        except TypeError:  # unhashable objects have no name
            return None
        return found or self.layers.get(thing)


def names() -> KerasNames:
    """Read the public names of the installed Keras."""
    found = KerasNames()
    for name, thing in _public(keras.layers):
        if inspect.isclass(thing) and issubclass(thing, keras.layers.Layer) and name not in NO_LAYERS:
            _put(found.layers, thing, f"keras.layers.{name}")
    for room, module in (("ops", keras.ops), ("ops.image", keras.ops.image), ("activations", keras.activations)):
        for name, thing in _public(module):
            if inspect.isfunction(thing) and name not in NO_OPERATIONS:
                _put(found.operations, thing, f"keras.{room}.{name}")
    for room in ROOMS:
        for name, thing in _public(getattr(keras, room)):
            if inspect.isclass(thing) or inspect.isfunction(thing):
                _put(found.others, thing, f"keras.{room}.{name}")
    return found


def _public(module: Any) -> Iterator[tuple[str, Any]]:
    return ((name, getattr(module, name)) for name in dir(module) if not name.startswith("_"))


def _put(paths: dict[Any, str], thing: Any, path: str) -> None:
    """Store a path; of several for one object the one that ends in the object's name, otherwise the first."""
    if thing not in paths or path.rpartition(".")[2] == getattr(thing, "__name__", ""):
        paths[thing] = path
