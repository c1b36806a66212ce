"""The worker's part of the toy compiler: read, optimise, interpret."""

from dataclasses import dataclass

import numpy as np

from miscompile.base.errors import SpecError
from miscompile.core.case import Feed, Program
from miscompile.core.run import Build
from miscompile.core.tensor import Array, Tensor, numpy_name
from miscompile.targets.toy.bugs import parse_bugs
from miscompile.targets.toy.ir import Code, ToyError, Type
from miscompile.targets.toy.mutants import PLAIN, Optimiser, load
from miscompile.targets.toy.reader import read

LEVELS = ("off", "basic", "full")


@dataclass(frozen=True, slots=True)
class ToySession:
    """A compiled program, ready to be interpreted any number of times."""

    code: Code
    optimiser: Optimiser = PLAIN

    def run(self, feed: Feed) -> tuple[Tensor | None, ...]:
        """Interpret the program on `feed`; return fresh tensors in the order of the graph outputs.

        An output that no call defines is None. Raises ToyError when `feed` does not fit the program's inputs, and
        the exceptions of kernels.
        """
        return tuple(map(_tensor, self.optimiser.interpret(self.code, self._bind(feed))))

    def _bind(self, feed: Feed) -> tuple[Array, ...]:
        if len(feed) != len(self.code.inputs):
            raise ToyError(f"toy wants {len(self.code.inputs)} inputs, got {len(feed)}")
        for name, tensor in zip(self.code.inputs, feed, strict=True):
            wanted = self.code.types[name]
            if not _fits(tensor.array, wanted):
                raise ToyError(f"toy wants {wanted.dtype}{wanted.shape} for '{name}', got {tensor.dtype}{tensor.shape}")
        return tuple(tensor.array for tensor in feed)


def _fits(array: Array, wanted: Type) -> bool:
    if array.dtype != wanted.dtype:
        return False
    shape = wanted.shape
    return shape is None or (
        len(shape) == array.ndim and all(size in (None, given) for size, given in zip(shape, array.shape, strict=True))
    )


def _tensor(array: Array | None) -> Tensor | None:
    return None if array is None else Tensor(numpy_name(array.dtype), np.array(array, order="C"))


class ToyAdapter:
    """The toy as a target. Option `bugs` names the planted faults to switch on (`bugs.py`); none is the default.

    Option `optimiser` is `plain`, the toy's own passes, which is the default; `reference`, the larger optimiser of
    `passes/reference.py`, which also takes more operators; or the name of one of its mutants (`mutants.py`).
    """

    def __init__(self, bugs: str = "none", optimiser: str = "plain") -> None:
        self._bugs = parse_bugs(bugs)
        self._optimiser = load(optimiser)
        self._fired: tuple[str, ...] = ()

    def build(self, program: Program, build: Build) -> ToySession:
        """Compile `program`; levels are off, basic and full, `build.disabled` switches passes off by name.

        Raises ToyUnsupported and ToyError for models it lacks or cannot read, SpecError for an unknown level.
        """
        if build.level not in LEVELS:
            raise SpecError(f"toy has no level '{build.level}'; it has: {', '.join(LEVELS)}")
        self._fired = ()
        code = read(program.payload, self._optimiser.operators)
        self._fired = self._optimiser.optimise(code, build.level, build.disabled, self._bugs)
        return ToySession(code, self._optimiser)

    def fired(self, log: str) -> tuple[str, ...]:
        """The names of the passes that changed the program of the last build; the log is not needed."""
        del log
        return self._fired
