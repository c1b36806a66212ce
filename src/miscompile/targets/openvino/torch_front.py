"""OpenVINO's front ends for programs of torch: one converts a TorchScript trace, the other an exported program.

The converter reports each conversion to the vendor if `openvino_telemetry` is installed, so that package is hidden.
"""

import operator
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

_modules: dict[str, Any] = sys.modules
_modules.setdefault("openvino_telemetry", None)  # which makes importing it raise ImportError

import torch  # noqa: E402
from openvino.frontend.pytorch.ts_decoder import TorchScriptPythonDecoder  # noqa: E402

from miscompile.core.case import Program  # noqa: E402
from miscompile.core.run import Build  # noqa: E402
from miscompile.targets.about import Session  # noqa: E402
from miscompile.targets.openvino.adapter import OpenVino, OpenVinoSession  # noqa: E402
from miscompile.targets.openvino.runner import compile_read  # noqa: E402
from miscompile.targets.openvino.torch_runner import (  # noqa: E402
    convert_exported,
    convert_traced,
    decode_exported,
    kept_places,
    trace_module,
)
from miscompile.targets.torch.adapter import quiet  # noqa: E402
from miscompile.targets.torch.export import CapturedSession, checked, examples, exported, refused  # noqa: E402
from miscompile.targets.torch.modules import OperatorModule, module_of  # noqa: E402

_SILENT = frozenset({"prim::Param", "prim::Return", "prim::GetAttr", "prim::Constant"})
"""Kinds of nodes that are not operators."""


class TorchOpenVino(OpenVino):
    """Traces and converts a program of torch, and compiles it in the same way as OpenVINO's adapter."""

    def __init__(self) -> None:
        quiet()
        super().__init__()
        self._kinds: tuple[str, ...] = ()

    def build(self, program: Program, build: Build) -> Session:  # type: ignore[override]
        """Convert and compile `program`. Raises ExportRefusedError, OutsideTorchError, and what OpenVINO raises."""
        self._kinds = ()
        if self._observer is not None:
            self._observer.begin(())
        module = module_of(program.payload)
        given = examples(program, module)
        decoder = _traced(module, given)
        if build.observe:
            kinds = dict.fromkeys(_kinds(decoder.graph_element))
            self._kinds = tuple(sorted(kinds, key=lambda kind: not kind.startswith("prim::")))
        session = self._compiled(convert_traced(decoder, module, given), program, build)
        return CapturedSession(session, partial(module_of, program.payload), decoder.pt_module)

    def fired(self, log: str) -> tuple[str, ...]:
        """The types of the converted operators, which have one translator each; types of list operators come first."""
        del log
        return self._kinds

    def _compiled(self, model: Any, program: Program, build: Build) -> OpenVinoSession:  # noqa: ANN401
        """Compile a model of OpenVINO that was converted from `program`."""
        compiled = compile_read(self._core, model, build.level, threads=build.threads)
        return OpenVinoSession(compiled, kept_places(len(program.inputs), model), len(model.outputs))


def _traced(module: OperatorModule, given: tuple[torch.Tensor, ...]) -> TorchScriptPythonDecoder:
    """Return a trace for the converter. Raises ExportRefusedError when torch cannot trace the module."""
    try:
        return trace_module(module, given)
    except RuntimeError as error:
        if not str(error).startswith("Couldn't get TorchScript module"):
            raise
        raise refused("tracing", error.__cause__) from None


class ExportedOpenVino(TorchOpenVino):
    """Converts the program that `torch.export` captures."""

    def build(self, program: Program, build: Build) -> Session:  # type: ignore[override]
        """Convert and compile `program`. Raises ExportRefusedError, OutsideTorchError, and what OpenVINO raises."""
        self._kinds = ()
        module = module_of(program.payload)
        graph = exported(module, examples(program, module))
        decoder = decode_exported(graph)
        if build.observe:
            targets = [node.target for node in decoder._nodes if node.op == "call_function"]
            self._kinds = tuple(dict.fromkeys(str(one) for one in targets if one is not operator.getitem))
        return checked(self._compiled(convert_exported(decoder), program, build), program, graph)


def _kinds(graph: Any) -> Iterator[str]:  # noqa: ANN401 - a graph or a block of TorchScript
    for node in graph.nodes():
        if node.kind() not in _SILENT:
            yield node.kind()
        for block in node.blocks():
            yield from _kinds(block)
