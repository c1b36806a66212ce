"""The worker's part of the toy compiler: read, optimise, interpret."""

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import as_strided

from miscompile.base.errors import SpecError
from miscompile.core.case import Feed, Program
from miscompile.core.run import Build
from miscompile.core.tensor import Array, Tensor, numpy_name
from miscompile.targets.guards import Guarded, guarded, require_intact, target_of, watched
from miscompile.targets.presentations import own_transform
from miscompile.targets.toy.bugs import parse_bugs
from miscompile.targets.toy.ir import Code, ToyError, Type
from miscompile.targets.toy.mutants import PLAIN, Optimiser, load
from miscompile.targets.toy.reader import read
from miscompile.targets.toy.transforms import TRANSFORMS

LEVELS = ("off", "basic", "full")


@dataclass(frozen=True, slots=True)
class ToySession:
    """A compiled program, ready to be interpreted any number of times; `guards` says that its memory is guarded."""

    code: Code
    optimiser: Optimiser = PLAIN
    guards: Guarded | None = None

    def run(self, feed: Feed) -> tuple[Tensor | None, ...]:
        """Interpret the program on `feed`; return fresh tensors in the order of the graph outputs.

        An output that no call defines is None. Raises ToyError when `feed` does not fit the program's inputs, and
        the exceptions of kernels, OverrunError for guarded memory that was written around an output.
        """
        if self.guards is not None:
            return self._run_guarded(self._bind(feed), self.guards)
        return tuple(map(_tensor, self.optimiser.interpret(self.code, self._bind(feed))))

    def _run_guarded(self, fed: tuple[Array, ...], guards: Guarded) -> tuple[Tensor | None, ...]:
        """Run on inputs and write to outputs that lie between guard pages."""
        names = self.code.inputs
        inputs = [guarded(name, "input", array, guards.place) for name, array in zip(names, fed, strict=True)]
        with watched(inputs, guards.fill):
            values = self.optimiser.interpret(self.code, tuple(guard.array for guard in inputs))
        makers = {name: call.op for call in self.code.calls for name in call.outputs}
        made = {name: value for name, value in zip(self.code.outputs, values, strict=True) if value is not None}
        targets = {name: target_of(name, array, guards.place, guards.fill) for name, array in made.items()}
        with watched(list(targets.values()), guards.fill):
            for name, guard in targets.items():
                _write(made[name], guard.array, makers.get(name, ""))
        require_intact(list(targets.values()))
        return tuple(_tensor(targets[name].array) if name in targets else None for name in self.code.outputs)

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


def _write(value: Array, target: Array, maker: str) -> None:
    """Write an output to its memory; faults abs_writes_behind and sqrt_leaves_last."""
    count = value.size - (maker == "LeavingSqrt")
    target.reshape(-1)[:count] = value.reshape(-1)[:count]
    if maker == "WritingAbs":
        as_strided(target.reshape(-1), (value.size + 1,))[value.size] = 0


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
        return ToySession(code, self._optimiser, own_transform(build.transform, TRANSFORMS))

    def fired(self, log: str) -> tuple[str, ...]:
        """The names of the passes that changed the program of the last build; the log is not needed."""
        del log
        return self._fired
