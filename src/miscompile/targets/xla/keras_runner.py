"""A model of Keras as a function that XLA compiles; the worker calls this function, and standalone scripts contain
it."""

from collections.abc import Callable
from typing import Any

from miscompile.targets.keras.runner import tensors_in


def function_of(model: Callable[..., Any]) -> Callable[..., list[Any]]:
    """Return the call of a model as a function of arrays, with the weights as constants of the program."""
    return lambda *values: list(tensors_in(model(list(values), training=False)))
