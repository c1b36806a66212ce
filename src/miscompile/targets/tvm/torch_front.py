"""TVM's front end for programs of torch: `torch.export`, and the importer of its programs into Relax.

TVM's adapter hides torch if it is not imported yet. The importer, which needs torch, is therefore imported first.
"""

import functools
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

os.environ.setdefault(
    "TVM_FFI_DISABLE_TORCH_C_DLPACK", "1"
)  # a faster exchange of tensors, which would require a compilation

import tvm
from tvm import relax
from tvm.relax.frontend.torch import exported_program_translator as translator

from miscompile.core.case import Program
from miscompile.core.run import Build
from miscompile.targets.about import Session
from miscompile.targets.torch.adapter import quiet
from miscompile.targets.torch.conversions import Conversions, name_of
from miscompile.targets.torch.export import checked, examples, exported
from miscompile.targets.torch.modules import module_of
from miscompile.targets.tvm.adapter import Tvm, TvmSession
from miscompile.targets.tvm.torch_runner import LEVELS, import_exported

_ITEM = "getitem"
"""The importer's name for the selection of one of several results, which is not a conversion."""


class TorchTvm:
    """Exports and imports a program of torch, and builds it in the same way as TVM's adapter."""

    def __init__(self) -> None:
        quiet()
        self._tvm = Tvm()
        self._conversions = Conversions()
        _watch(self._conversions)

    def build(self, program: Program, build: Build) -> Session:
        """Import and compile `program`. Raises ExportRefusedError, OutsideTorchError, and what TVM raises."""
        self._conversions.begin(build)
        module = module_of(program.payload)
        graph = exported(module, examples(program, module))
        level = LEVELS.get(build.level, build.level)
        executable = self._tvm.compiled(import_exported(graph), replace(build, level=level))
        device = tvm.cpu()
        session: Session = TvmSession(relax.VirtualMachine(executable, device), device)
        return checked(session, program, graph)

    def passes(self) -> tuple[str, ...]:
        """None, because programs of torch test the front end."""
        return ()

    def fired(self, log: str) -> tuple[str, ...]:
        """Names of the importer's functions that converted the operators of the program, in order."""
        del log
        return self._conversions.seen()


def _watch(conversions: Conversions) -> None:
    """Record every call of a function in the importer's table in `conversions`."""
    importer = translator.ExportedProgramImporter
    original: Callable[[Any], dict[Any, Any]] = importer.create_convert_map

    @functools.wraps(original)
    def create(self: Any) -> dict[Any, Any]:  # noqa: ANN401 - TVM's class
        table = original(self)
        watched = {key: conversions.watched(one, name_of(one, str(key))) for key, one in table.items()}
        return {**watched, _ITEM: table[_ITEM]}

    importer.create_convert_map = create
