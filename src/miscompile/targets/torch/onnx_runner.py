"""Export of programs of torch to ONNX, in two ways; workers call these functions, and standalone scripts contain those
that they need."""

import io
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
import torch.onnx
import torch.onnx.errors
from numpy.typing import NDArray

Output: TypeAlias = NDArray[np.generic] | None

NAMES = "input_"
"""The prefix of input names, followed by their numbers, so that dropped inputs can be identified by name."""


def names_of(count: int) -> list[str]:
    """Return the names of `count` inputs."""
    return [f"{NAMES}{place}" for place in range(count)]


def place_of(name: str) -> int:
    """Return the number of an input."""
    return int(name.removeprefix(NAMES))


def export_program(graph: Any, count: int, optimize: bool = True) -> bytes:  # noqa: ANN401 - an ExportedProgram
    """Return the model of an exported program with `count` inputs. Raises the original exception if the exporter has
    wrapped one."""
    try:
        made = torch.onnx.export(graph, input_names=names_of(count), dynamo=True, verbose=False, optimize=optimize)
    except torch.onnx.errors.OnnxExporterError as error:
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        raise cause from None
    assert made is not None
    payload: bytes = made.model_proto.SerializeToString()
    return payload


def export_traced(module: torch.nn.Module, given: tuple[torch.Tensor, ...], fold: bool = True) -> bytes:
    """Return the model of a module that the exporter traces through TorchScript on the tensors `given`; constants are
    folded if `fold`."""
    file, names = io.BytesIO(), names_of(len(given))
    with torch.no_grad():
        torch.onnx.export(module, given, file, input_names=names, dynamo=False, verbose=False, do_constant_folding=fold)
    return file.getvalue()


def complex_outputs(graph: Any) -> list[bool]:  # noqa: ANN401 - an ExportedProgram
    """Tell for each output of an exported program whether it is complex."""
    kinds = {node.name: node.meta["val"].dtype for node in graph.graph.nodes if hasattr(node.meta.get("val"), "dtype")}
    return [kinds.get(name, torch.float32).is_complex for name in graph.graph_signature.user_outputs]


def to_pairs(array: NDArray[np.generic]) -> NDArray[np.generic]:
    """Return complex numbers in the exporter's form: pairs of real numbers along an additional last dimension."""
    return np.stack([array.real, array.imag], -1) if array.dtype.kind == "c" else array


def restored(outputs: Sequence[Output], complexes: Sequence[bool]) -> list[Output]:
    """Return the outputs of a model, complex where `complexes` is True; unchanged when the lengths differ."""
    if len(outputs) != len(complexes):
        return list(outputs)
    return [from_pairs(one) if pairs else one for one, pairs in zip(outputs, complexes, strict=True)]


def from_pairs(array: Output) -> Output:
    """Return the complex numbers of pairs; returns an array whose last dimension is not 2 unchanged."""
    if array is None or array.dtype.kind != "f" or array.shape[-1:] != (2,):
        return array
    return np.ascontiguousarray(array).view("c16" if array.dtype == np.float64 else "c8")[..., 0]
