"""Import of programs of torch into Relax; the worker calls these functions, and standalone scripts contain those that
they need."""

from typing import Any

import tvm
from tvm.relax.frontend.torch import exported_program_translator

LEVELS = {"full": "default"}
"""Level full is the default of `tvm.compile`. It omits the additional graph passes of the adapter's level, because
these are for inference: one of them replaces the statistics of a batch, which torch's operators can request, by the
given statistics."""


def import_exported(graph: Any) -> tvm.IRModule:  # noqa: ANN401 - an ExportedProgram
    """Import an exported program."""
    return exported_program_translator.from_exported_program(graph)
