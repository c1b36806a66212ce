"""PyTorch in the worker as the reference: operators are called eagerly."""

import torch

from miscompile.core.case import Feed, Program
from miscompile.core.run import Build
from miscompile.core.tensor import Tensor
from miscompile.targets.torch.modules import OperatorModule, module_of, tensors_of
from miscompile.targets.torch.values import to_torch


def quiet() -> None:
    """Configure torch for one thread, without warnings about kernels that this processor lacks."""
    torch.set_num_threads(1)
    torch.backends.nnpack.set_flags(False)


class Torch:
    """Calls operators without optimisation."""

    def __init__(self) -> None:
        quiet()

    def build(self, program: Program, build: Build) -> "EagerTorch":
        """Construct the operator's module. Raises OutsideTorchError, NotImplementedError, and what torch raises."""
        del build
        return EagerTorch(program.payload)

    def fired(self, log: str) -> tuple[str, ...]:
        """Nothing fires."""
        del log
        return ()


class EagerTorch:
    """A module that is called eagerly; runs differ only in the seed, which is the number of the run.

    It is constructed again for each run, because an operator may write to its buffers, and a module may have state.
    """

    def __init__(self, payload: bytes) -> None:
        self._payload = payload
        self._next: OperatorModule | None = module_of(payload)
        self._runs = 0

    def run(self, feed: Feed) -> tuple[Tensor | None, ...]:
        """Run once on `feed`. Raises NotImplementedError for a result that is not a tensor, and torch's exceptions."""
        module = self._next if self._next is not None else module_of(self._payload)
        self._next = None
        torch.manual_seed(self._runs)
        self._runs += 1
        with torch.no_grad():
            return tensors_of(module(*map(to_torch, feed)))
