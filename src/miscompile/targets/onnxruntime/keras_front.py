"""ONNX Runtime for models that Keras exports to ONNX through TensorFlow; the export is the front end."""

import functools
import warnings
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

import onnx

from miscompile.base.dtypes import BY_CODE
from miscompile.core.case import Feed, Port, Program
from miscompile.core.run import Build
from miscompile.core.tensor import Tensor
from miscompile.targets.keras import weights
from miscompile.targets.keras.environment import load
from miscompile.targets.keras.graphs import BACKEND, SILENT, graph_of, still
from miscompile.targets.keras.layers import operator_of
from miscompile.targets.onnxruntime.adapter import OnnxRuntime, OnnxSession
from miscompile.targets.onnxruntime.keras_runner import export_model
from miscompile.targets.scratch import scratch


class KerasOnnxRuntime(OnnxRuntime):
    """Exports a model of Keras and builds a session for the exported model."""

    def __init__(self) -> None:
        load(BACKEND)
        still()
        weights.install()
        super().__init__()
        self._seen: dict[str, None] = {}
        self._watch()

    def build(self, program: Program, build: Build) -> "ExportedKerasSession":  # type: ignore[override]
        """Export and compile `program`. Raises NotSymbolicError when Keras or TensorFlow makes no graph of it."""
        self._seen.clear()
        operator = operator_of(program)
        model = operator.model()
        graph_of(operator, model)  # an error of TensorFlow is not caused by the export
        names = [symbol.name for symbol in model.inputs]
        dtypes = [port.dtype for port in program.inputs]
        payload = _exported(model)
        return ExportedKerasSession(super().build, payload, (names, dtypes), replace(build, observe=False))

    def passes(self) -> tuple[str, ...]:
        """None, because programs of Keras test the export."""
        return ()

    def fired(self, log: str) -> tuple[str, ...]:
        """The handlers that converted TensorFlow's operations, in order."""
        del log
        return tuple(self._seen)

    def _watch(self) -> None:
        """Record the handlers that the converter uses, as `file:class`."""
        handler = import_module("tf2onnx.handler")
        original = handler.tf_op.create_mapping
        seen = self._seen

        def create_mapping(*args: Any) -> Any:  # noqa: ANN401 - the converter's own
            return {kind: _noting(kind, entry[0], entry[1], seen) for kind, entry in original(*args).items()}

        handler.tf_op.create_mapping = staticmethod(create_mapping)


def _noting(kind: str, function: Any, options: Any, seen: dict[str, None]) -> tuple[Any, Any]:  # noqa: ANN401
    """Return an entry of the converter's table whose function records its name before it converts."""
    owner = getattr(function, "__self__", None)
    file = function.__module__.rpartition(".")[2]
    name = ".".join(part for part in (getattr(owner, "__name__", ""), function.__name__) if part)

    @functools.wraps(function)
    def convert(graph: Any, node: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - the converter's own
        if kind not in SILENT:
            seen.setdefault(f"{file}.py:{name}")
        return function(graph, node, **kwargs)

    return convert, options


def _exported(model: Any) -> bytes:  # noqa: ANN401 - a model of Keras
    with scratch() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return export_model(model, str(folder / "model.onnx"))


Ports = tuple[Sequence[str], Sequence[str]]
"""The names and element types of a model's inputs."""


class ExportedKerasSession:
    """A session for an exported model, which is fed only the inputs that the export has kept."""

    def __init__(self, compile_model: Any, payload: bytes, ports: "Ports", build: Build) -> None:  # noqa: ANN401
        names, dtypes = ports
        graph = onnx.load_model_from_string(payload).graph
        inputs = [_port(value) for value in graph.input]
        outputs = [_port(value) for value in graph.output]
        self._places = [names.index(port.name) for port in inputs]
        for place, port in zip(self._places, inputs, strict=True):
            if port.dtype != dtypes[place]:
                raise NotImplementedError(f"the export takes {port.dtype} in place of {dtypes[place]}")
        self._session: OnnxSession = compile_model(Program("onnx", payload, tuple(inputs), tuple(outputs)), build)

    def run(self, feed: Feed) -> tuple[Tensor | None, ...]:
        """Run on one feed."""
        return self._session.run(tuple(feed[place] for place in self._places))


def _port(value: onnx.ValueInfoProto) -> Port:
    return Port(value.name, BY_CODE[value.type.tensor_type.elem_type].name, None)
