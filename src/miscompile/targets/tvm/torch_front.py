"""TVM's front end for programs of torch: `torch.export`, and the importer of its programs into Relax.

TVM's adapter makes torch look absent where nobody has imported it yet: so the importer, which needs it, comes first.
"""

import functools
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

os.environ.setdefault("TVM_FFI_DISABLE_TORCH_C_DLPACK", "1")  # a faster exchange of tensors, which would be compiled

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

_LEVELS = {"full": "default"}
"""Level full is what `tvm.compile` does. The graph passes that the compiler's own level adds are for inference: one
takes the statistics of a batch, which torch's operators can ask for, for those that were given."""

_ITEM = "getitem"
"""What the importer's table calls the choice of one of several results, which converts nothing."""


class TorchTvm:
    """Exports and imports a program of torch, and builds it as TVM's adapter builds models."""

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
        level = _LEVELS.get(build.level, build.level)
        executable = self._tvm.compiled(translator.from_exported_program(graph), replace(build, level=level))
        device = tvm.cpu()
        session: Session = TvmSession(relax.VirtualMachine(executable, device), device)
        return checked(session, program, graph)

    def passes(self) -> tuple[str, ...]:
        """None: with programs of torch it is the front end that is looked at."""
        return ()

    def fired(self, log: str) -> tuple[str, ...]:
        """Names of the importer's functions that converted the operators of the program, in order."""
        del log
        return self._conversions.seen()


def _watch(conversions: Conversions) -> None:
    """Have every function of the importer's table told to `conversions` when it is called."""
    importer = translator.ExportedProgramImporter
    original: Callable[[Any], dict[Any, Any]] = importer.create_convert_map

    @functools.wraps(original)
    def create(self: Any) -> dict[Any, Any]:  # noqa: ANN401 - TVM's class
        table = original(self)
        watched = {key: conversions.watched(one, name_of(one, str(key))) for key, one in table.items()}
        return {**watched, _ITEM: table[_ITEM]}

    importer.create_convert_map = create
