"""PyTorch's exporters in the worker: torch in eager mode at level off, else the exported model in ONNX Runtime."""

import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.onnx._internal.exporter import _decomp as decomposition
from torch.onnx._internal.exporter import _registration as registration

from miscompile.base.dtypes import NUMBERS
from miscompile.base.errors import SpecError
from miscompile.core.case import Feed, Program
from miscompile.core.run import Build
from miscompile.core.tensor import Tensor, tensor
from miscompile.targets.about import Session
from miscompile.targets.torch.export import CapturedSession, exported, refused
from miscompile.targets.torch.onnx_runner import complex_outputs, export_program, export_traced, restored, to_pairs
from miscompile.targets.torch.programs import EagerSession, function_of, zeros_of
from miscompile.targets.torch.runner import FunctionModule
from miscompile.targets.torch_onnx import runner
from miscompile.targets.torch_onnx.about import ABOUT
from miscompile.targets.torch_onnx.runner import OPTIMIZED
from miscompile.targets.torch_onnx.switch_runner import (
    SEEN,
    switch_off,
    switch_passes,
    switch_rules,
    switch_traced,
)

EXPORTERS = ("dynamo", "torchscript")
RUNTIMES = ("onnxruntime", "reference")

_KNOWN = frozenset((*NUMBERS, "bool")) - {"bfloat16"}
"""Element types of inputs and outputs; ONNX Runtime has hardly a kernel for bfloat16 on the CPU."""

_WRONG = "(?s).*(will produce (an )?incorrect|will cause the ONNX model to be incorrect)"
"""Warnings by which the exporter of TorchScript says that its model computes something else."""

_UNTRACED = frozenset({"uint16", "uint32", "uint64"})
"""Element types that the exporter of TorchScript does not take."""


class TorchOnnx:
    """Exports programs. Raises SpecError for an unknown exporter or runtime."""

    def __init__(self, exporter: str = "dynamo", runtime: str = "onnxruntime") -> None:
        for name, known in ((exporter, EXPORTERS), (runtime, RUNTIMES)):
            if name not in known:
                raise SpecError(f"torch_onnx has no '{name}'; there are: {', '.join(known)}")
        runner.configure()
        _remember_tables()
        switch_rules()
        switch_passes()
        switch_traced()
        self._traces, self._start = exporter == "torchscript", _STARTS[runtime]
        self._captured: tuple[bytes, Any] = b"", None

    def build(self, program: Program, build: Build) -> Session:
        """Lower `program` to torch and export that.

        Raises UnloweredError, ExportRefusedError when torch cannot capture a graph, and the exceptions of the
        exporter and of ONNX Runtime.
        """
        switch_off(build.disabled)
        function = function_of(program, _KNOWN - _UNTRACED if self._traces else _KNOWN)
        if build.level == "off":
            return EagerSession(function)
        module = FunctionModule(function).eval()
        return self.session(program, module, lambda: function, zeros_of(program), build.level)

    def session(
        self,
        program: Program,
        module: torch.nn.Module,
        again: Callable[[], Callable[..., Any]],
        given: tuple[torch.Tensor, ...],
        level: str,
    ) -> Session:
        """Return a session of the model to which `module` is exported on the tensors `given`; `again` makes it anew."""
        if self._traces:
            traced = _traced(module, given)
            with _strict():
                model = export_traced(module, given, OPTIMIZED[level])
            return CapturedSession(ModelSession(model, self._start, ()), again, traced)
        payload, graph = self._captured
        if payload != program.payload:
            graph = exported(module, given)
            self._captured = program.payload, graph
        model = export_program(graph, len(given), OPTIMIZED[level])
        return ModelSession(model, self._start, complex_outputs(graph))

    def fired(self, log: str) -> tuple[str, ...]:
        """The rules and passes that changed the last program, in order."""
        del log
        known = frozenset(ABOUT.passes)
        return tuple(name for name in SEEN if name in known)


_STARTS: dict[str, Callable[[bytes], Any]] = {
    "onnxruntime": runner.start_runtime,
    "reference": runner.start_reference,
}


class ModelSession:
    """A session of an exported model; `complexes` tells which outputs are complex, pairs of numbers in the model."""

    def __init__(self, model: bytes, start: Callable[[bytes], Any], complexes: Sequence[bool]) -> None:
        self._session, self._names, self._complexes = start(model), runner.inputs_of(model), complexes

    def run(self, feed: Feed) -> tuple[Tensor | None, ...]:
        """Run on one feed."""
        arrays = [to_pairs(value.array) for value in feed]
        outputs = restored(list(runner.run_model(self._session, self._names, arrays)), self._complexes)
        return tuple(None if array is None else tensor(array) for array in outputs)


def _traced(module: torch.nn.Module, given: tuple[torch.Tensor, ...]) -> Any:  # noqa: ANN401 - a ScriptModule
    """Return the trace that the exporter will make. Raises ExportRefusedError when torch cannot trace the module."""
    try:
        with torch.no_grad():
            return torch.jit.trace(module, given, strict=False, check_trace=False)
    except Exception as error:  # noqa: BLE001 - tracing raises whatever the operators raise
        raise refused("tracing", error) from None


@contextmanager
def _strict() -> Iterator[None]:
    """Raise the warnings that match `_WRONG`."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", _WRONG)
        yield


def _remember_tables() -> None:
    """Compute the exporter's registry and its table of decompositions once, because they take a second.

    Both are the same for every program; torch removes entries from the table that it gets, so each gets a copy.
    """
    registry: Any = registration.ONNXRegistry
    registry.from_torchlib = staticmethod(functools.cache(registry.from_torchlib))
    made: dict[Any, Any] = {}
    original: Callable[..., Any] = decomposition.create_onnx_friendly_decomposition_table

    def table(names: set[Any]) -> dict[Any, Any]:
        if not made:
            made.update(original(names))
        return dict(made)

    decomposition.create_onnx_friendly_decomposition_table = table
