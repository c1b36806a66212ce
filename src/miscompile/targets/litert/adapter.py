"""LiteRT in the worker: a model is lowered to LiteRT's operators, written in its format, and run by its interpreter."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from miscompile.core.run import Build
from miscompile.core.tensor import Array
from miscompile.graph.model import Model, TensorType, ValueInfo
from miscompile.graph.read import read
from miscompile.targets.litert import tensors
from miscompile.targets.litert.program import LOWERINGS, program
from miscompile.targets.litert.runner import model_of, run_arrays, start
from miscompile.targets.litert.tensors import LiteValue, tensor
from miscompile.targets.lowering.program import UnloweredError
from miscompile.targets.lowering.table import defined
from miscompile.targets.plain import ByName, PlainAdapter

_SPACE = defined(LOWERINGS, {"np": np, "math": math, **vars(tensors)})
"""The names that programs use."""

TYPES = ("float32", "float64", "int64", "int32", "int16", "int8", "uint8", "bool")
"""Element types of inputs and outputs, as far as LiteRT has kernels for them."""


class LiteRt(PlainAdapter):
    """Builds interpreters."""

    def compile(self, model: bytes, build: Build) -> tuple[ByName, Sequence[str]]:
        """Raises UnloweredError and NotImplementedError for what has no lowering, and what LiteRT raises."""
        graph = read(model)
        given = [_input(info) for info in _inputs(graph)]
        session = start(model_of(given, _function(graph)(*given)), build.level, build.disabled)
        names = [info.name for info in _inputs(graph)]

        def call(feed: Mapping[str, Array]) -> Sequence[Array | None]:
            return run_arrays(session, [feed[name] for name in names])

        return call, ()


def _inputs(model: Model) -> list[ValueInfo]:
    return [info for info in model.graph.inputs if info.name not in model.graph.initializers]


def _function(model: Model) -> Callable[..., Sequence[LiteValue]]:
    """Return the model as a function of symbolic tensors."""
    text = program(model)
    space: dict[str, Any] = dict(_SPACE)
    for name, value in text.constants.items():
        if value.dtype not in TYPES:
            raise UnloweredError(f"element type {value.dtype} has no lowering")
        space[name] = tensor(value.array, value.dtype)
    exec(compile(text.program, "program.py", "exec"), space)
    function: Callable[..., Sequence[LiteValue]] = space["program"]
    return function


def _input(info: ValueInfo) -> LiteValue:
    kind = info.type
    if not isinstance(kind, TensorType) or not kind.static or kind.dtype not in TYPES:
        raise UnloweredError(f"an input of type {kind} has no lowering")
    return LiteValue(tuple(int(size or 0) for size in kind.shape or ()), kind.dtype)
