"""ExecuTorch in the worker: torch in eager mode at level off, else the lowered program in ExecuTorch's runtime."""

from miscompile.base.dtypes import NUMBERS
from miscompile.core.case import Feed, Program
from miscompile.core.run import Build
from miscompile.core.tensor import Tensor
from miscompile.targets.about import Session
from miscompile.targets.executorch import runner
from miscompile.targets.executorch.runner import Loaded, lowered_bytes
from miscompile.targets.torch.export import exported
from miscompile.targets.torch.programs import EagerSession, function_of, zeros_of
from miscompile.targets.torch.runner import FunctionModule
from miscompile.targets.torch.values import from_torch, to_torch

KNOWN = frozenset((*NUMBERS, "bool")) - {"uint16", "uint32", "uint64"}
"""Element types of inputs and outputs; torch has hardly a kernel for wide unsigned integers."""


class ExecuTorch:
    """Lowers and loads programs."""

    def __init__(self) -> None:
        runner.configure()
        runner.remember_operators()

    def build(self, program: Program, build: Build) -> Session:
        """Lower `program` to torch, and that by ExecuTorch.

        Raises UnloweredError, ExportRefusedError when torch cannot capture a graph, and ExecuTorch's exceptions.
        """
        function = function_of(program, KNOWN)
        if build.level == "off":
            return EagerSession(function)
        graph = exported(FunctionModule(function).eval(), zeros_of(program))
        return LoadedSession(Loaded(lowered_bytes(graph, build.level, build.disabled)))

    def fired(self, log: str) -> tuple[str, ...]:
        """Nothing is observed."""
        del log
        return ()


class LoadedSession:
    """A loaded program."""

    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded

    def run(self, feed: Feed) -> tuple[Tensor | None, ...]:
        """Run on one feed."""
        return tuple(from_torch(value) for value in self._loaded.run([to_torch(value) for value in feed]))
