"""Conversion of programs of torch by OpenVINO, from a trace or from an exported program; workers call these functions,
and standalone scripts contain those that they need."""

from typing import Any

import torch
from openvino.frontend.pytorch.fx_decoder import TorchFXPythonDecoder
from openvino.frontend.pytorch.ts_decoder import TorchScriptPythonDecoder

from miscompile.targets.openvino.interface import ov

TAKES_DECODERS = int(ov.__version__.partition(".")[0]) >= 2024
"""Whether the converter accepts a traced module; older ones trace it themselves."""


def trace_module(module: torch.nn.Module, given: tuple[torch.Tensor, ...]) -> TorchScriptPythonDecoder:
    """Return a trace for the converter, made on the tensors `given`."""
    with torch.no_grad():
        return TorchScriptPythonDecoder(module, example_input=given)


def convert_traced(trace: TorchScriptPythonDecoder, module: torch.nn.Module, given: tuple[torch.Tensor, ...]) -> Any:  # noqa: ANN401 - an extension type
    """Convert a trace of a module."""
    return ov.convert_model(trace if TAKES_DECODERS else module, example_input=given)


def decode_exported(graph: Any) -> TorchFXPythonDecoder:  # noqa: ANN401 - an ExportedProgram
    """Return an exported program for the converter."""
    return TorchFXPythonDecoder.from_exported_program(graph)


def convert_exported(decoder: TorchFXPythonDecoder) -> Any:  # noqa: ANN401 - an extension type
    """Convert an exported program."""
    return ov.convert_model(decoder)


def kept_places(count: int, read: Any) -> list[int | None]:  # noqa: ANN401 - an extension type
    """Return for each of `count` inputs its number in the compiler's model, None if the converter dropped it."""
    return [place if place < len(read.inputs) else None for place in range(count)]
