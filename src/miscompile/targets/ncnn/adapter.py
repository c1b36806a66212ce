"""ncnn in the worker: a model is lowered to ncnn's layers, written in its format, and run by it."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from miscompile.core.run import Build
from miscompile.core.tensor import Array
from miscompile.graph.model import Model, TensorType, ValueInfo
from miscompile.graph.read import read
from miscompile.targets.lowering.program import UnloweredError
from miscompile.targets.lowering.table import defined
from miscompile.targets.ncnn import tensors
from miscompile.targets.ncnn.names import ACTIVATIONS
from miscompile.targets.ncnn.program import LOWERINGS, program
from miscompile.targets.ncnn.runner import network_of, run_arrays, start
from miscompile.targets.ncnn.tensors import NcnnValue, given, tensor
from miscompile.targets.plain import ByName, PlainAdapter

_SPACE = defined(LOWERINGS, {"np": np, "math": math, **vars(tensors)})
"""The names that programs use."""


class Ncnn(PlainAdapter):
    """Builds networks."""

    def compile(self, model: bytes, build: Build) -> tuple[ByName, Sequence[str]]:
        """Raises UnloweredError and NotImplementedError for what has no lowering, RuntimeError when ncnn refuses."""
        graph = read(model)
        infos = [info for info in graph.graph.inputs if info.name not in graph.graph.initializers]
        inputs = [_input(info) for info in infos]
        outputs = _function(graph)(*inputs)
        fused = build.level == "full" and ACTIVATIONS not in build.disabled
        net = start(*network_of(inputs, outputs, fused), build.level, build.disabled)

        def call(feed: Mapping[str, Array]) -> Sequence[Array | None]:
            return run_arrays(net, inputs, outputs, [feed[info.name] for info in infos])

        return call, ()


def _function(model: Model) -> Callable[..., Sequence[NcnnValue]]:
    """Return the model as a function of symbolic tensors."""
    text = program(model)
    space: dict[str, Any] = dict(_SPACE)
    for name, value in text.constants.items():
        if value.dtype not in ("float32", "int64"):
            raise UnloweredError(f"element type {value.dtype} has no lowering")
        space[name] = tensor(value.array, value.dtype)
    exec(compile(text.program, "program.py", "exec"), space)
    function: Callable[..., Sequence[NcnnValue]] = space["program"]
    return function


def _input(info: ValueInfo) -> NcnnValue:
    kind = info.type
    if not isinstance(kind, TensorType) or not kind.static or kind.dtype != "float32":
        raise UnloweredError(f"an input of type {kind} has no lowering")
    return given(tuple(int(size or 0) for size in kind.shape or ()))
