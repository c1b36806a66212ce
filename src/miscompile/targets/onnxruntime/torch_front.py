"""ONNX Runtime for programs that PyTorch exports to ONNX; the exporter is the front end."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import onnx
import onnx.checker
import onnx.shape_inference
import torch

from miscompile.base.dtypes import BY_CODE, DTYPES
from miscompile.core.case import Feed, Port, Program
from miscompile.core.run import Build
from miscompile.core.tensor import Tensor, tensor
from miscompile.targets.about import Session
from miscompile.targets.onnxruntime.adapter import OnnxRuntime, OnnxSession
from miscompile.targets.torch.adapter import quiet
from miscompile.targets.torch.conversions import Conversions
from miscompile.targets.torch.export import CapturedSession, checked, examples, exported, refused
from miscompile.targets.torch.modules import OperatorModule, module_of
from miscompile.targets.torch.onnx_runner import (
    complex_outputs,
    export_program,
    export_traced,
    place_of,
    restored,
    to_pairs,
)
from miscompile.targets.torch.onnx_watch import watch_dispatch, watch_symbolics


class TorchOnnxRuntime:
    """Exports a program through `torch.export`, and builds a session for the model."""

    def __init__(self) -> None:
        quiet()
        self._runtime = OnnxRuntime()
        self._conversions = Conversions()
        self._watch()

    def build(self, program: Program, build: Build) -> Session:
        """Export and compile `program`.

        Raises ExportRefusedError when torch cannot capture a graph, OutsideTorchError, and the exceptions of the
        exporter and of ONNX Runtime.
        """
        self._conversions.begin(build)
        module = module_of(program.payload)
        graph = exported(module, examples(program, module))
        payload, complexes = export_program(graph, len(program.inputs)), complex_outputs(graph)
        session = ExportedTorchSession(self._runtime, payload, replace(build, observe=False), complexes)
        return checked(session, program, graph)

    def fired(self, log: str) -> tuple[str, ...]:
        """The names of the exporter's functions that converted the operators of the program, in order."""
        del log
        return self._conversions.seen()

    def _watch(self) -> None:
        watch_dispatch(self._conversions)


class TracedOnnxRuntime(TorchOnnxRuntime):
    """Exports a program through TorchScript, the exporter of older releases."""

    def build(self, program: Program, build: Build) -> Session:
        """Export and compile `program`, like the other exporter."""
        self._conversions.begin(build)
        module = module_of(program.payload)
        given = examples(program, module)
        traced = _traced(module, given)
        session = ExportedTorchSession(self._runtime, export_traced(module, given), replace(build, observe=False))
        return CapturedSession(session, partial(module_of, program.payload), traced)

    def _watch(self) -> None:
        watch_symbolics(self._conversions)


def _traced(module: OperatorModule, given: tuple[torch.Tensor, ...]) -> Any:  # noqa: ANN401 - a ScriptModule
    """Return the trace that the exporter will make. Raises ExportRefusedError when torch cannot trace the module."""
    try:
        with torch.no_grad():
            return torch.jit.trace(module, given, strict=False, check_trace=False)
    except Exception as error:  # noqa: BLE001 - tracing raises whatever the operator raises
        raise refused("tracing", error) from None


class ExportedTorchSession:
    """A session for an exported model, which is fed only the inputs that the exporter has kept.

    In a model complex numbers are pairs of real ones along an additional last dimension; `complexes` tells which
    outputs have it. Raises the exceptions of ONNX Runtime; for an invalid model, the message contains the error of
    ONNX's check.
    """

    def __init__(self, runtime: OnnxRuntime, payload: bytes, build: Build, complexes: Sequence[bool] = ()) -> None:
        graph = onnx.load_model_from_string(payload).graph
        constants = {constant.name for constant in graph.initializer}
        kept = [value for value in graph.input if value.name not in constants]
        self._places = [place_of(value.name) for value in kept]
        self._complexes = complexes
        program = Program("onnx", payload, tuple(map(_port, kept)), tuple(map(_port, graph.output)))
        self._session = _valid_session(runtime, program, build)

    def run(self, feed: Feed) -> tuple[Tensor | None, ...]:
        """Run on one feed."""
        results = self._session.run(tuple(_real(feed[place]) for place in self._places))
        arrays = restored([None if one is None else one.array for one in results], self._complexes)
        return tuple(
            one if one is None or array is None or array is one.array else tensor(array)
            for one, array in zip(results, arrays, strict=True)
        )


def _valid_session(runtime: OnnxRuntime, program: Program, build: Build) -> OnnxSession:
    """Return a session. For an invalid model the error contains the reason, so that it is not mistaken for a missing
    kernel."""
    try:
        return runtime.build(program, build)
    except Exception as error:
        try:
            onnx.checker.check_model(program.payload, full_check=True)
        except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as reason:
            raise type(error)(f"the exporter made a model that is not valid: {reason}") from None
        raise


def _real(value: Tensor) -> Tensor:
    if DTYPES[value.dtype].kind != "complex":
        return value
    return tensor(to_pairs(value.array))


def _port(value: onnx.ValueInfoProto) -> Port:
    kind = value.type.tensor_type
    name = BY_CODE[kind.elem_type].name if kind.elem_type in BY_CODE else "float32"
    return Port(value.name, name, None)
