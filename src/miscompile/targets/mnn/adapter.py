"""MNN in the worker."""

from collections.abc import Sequence
from functools import partial

import onnx
from onnx import TensorProto, checker

from miscompile.core.run import Build
from miscompile.targets.mnn.runner import Mnn, evaluate
from miscompile.targets.plain import ByName, PlainAdapter

TAKEN = frozenset(getattr(TensorProto, name) for name in ("UNDEFINED", "FLOAT", "INT32", "INT64", "BOOL"))
"""Element types in which MNN computes, or that it stores in 32 bits; it takes others for these without a word, and has
kernels of bytes for quantised models only."""


class MnnAdapter(PlainAdapter):
    """Converts and runs models."""

    def compile(self, model: bytes, build: Build) -> tuple[ByName, Sequence[str]]:
        """Convert and load.

        Raises RuntimeError for a model that MNN refuses, TypeError for one with foreign types, and onnx's exceptions
        for an invalid one: MNN's converter detects none, so that whether it accepts one says nothing about MNN.
        """
        read = onnx.load_model_from_string(model)
        checker.check_model(read, full_check=True)
        for kind in _types(read.graph):
            if kind not in TAKEN:
                raise TypeError(f"MNN has no elements of {TensorProto.DataType.Name(kind)}")
        return partial(evaluate, Mnn(model, build.level)), ()


def _types(graph: onnx.GraphProto) -> set[int]:
    """Return the element types of inputs, outputs, constants and conversions, in bodies too."""
    found = {value.type.tensor_type.elem_type for value in (*graph.input, *graph.output, *graph.value_info)}
    found |= {tensor.data_type for tensor in graph.initializer}
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.name in ("to", "dtype", "output_dtype"):
                found.add(attribute.i)
            if attribute.HasField("t"):
                found.add(attribute.t.data_type)
            for body in (*attribute.graphs, *((attribute.g,) if attribute.HasField("g") else ())):
                found |= _types(body)
    return found
