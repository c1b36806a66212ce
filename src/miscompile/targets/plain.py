"""A base class for adapters of compilers that read a serialised model and run on numpy arrays by name."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from onnx import defs

from miscompile.core.case import Feed, Program
from miscompile.core.run import Build
from miscompile.core.tensor import Array, Tensor
from miscompile.graph.foreign import from_foreign, to_foreign

defs.has("Identity")  # onnx registers its schemas at the first question, in 15 ms: the zygote asks, for all workers

ByName = Callable[[Mapping[str, Array]], Sequence[Array | None]]
"""Runs a compiled program: takes arrays by the names of the inputs, returns the outputs in the program's order.

A missing output is None. Element types that numpy lacks are those of ml_dtypes.
"""


@dataclass(frozen=True, slots=True)
class NamedSession:
    """A compiled program whose inputs are passed by name."""

    program: Program
    call: ByName

    def run(self, feed: Feed) -> tuple[Tensor | None, ...]:
        """Run once; the compiler gets copies, because it may write to its inputs.

        A model may have outputs after those of the program, which a transform has added. They are omitted.
        """
        named = {port.name: to_foreign(value).copy() for port, value in zip(self.program.inputs, feed, strict=True)}
        found = self.call(named)[: len(self.program.outputs)]
        return tuple(None if one is None else from_foreign(np.asarray(one)) for one in found)


class PlainAdapter(ABC):
    """An adapter that consists of one function, `compile`, which derived classes define."""

    def __init__(self) -> None:
        self._fired: tuple[str, ...] = ()

    @abstractmethod
    def compile(self, model: bytes, build: Build) -> tuple[ByName, Sequence[str]]:
        """Compile by the settings of `build`; return a function that runs the result, and the passes that changed
        the program.

        Raises whatever the compiler raises.
        """

    def build(self, program: Program, build: Build) -> NamedSession:
        """Compile a program, and store the passes that changed it."""
        self._fired = ()
        call, fired = self.compile(program.payload, build)
        self._fired = tuple(fired)
        return NamedSession(program, call)

    def fired(self, log: str) -> tuple[str, ...]:
        """Return the passes that changed the last program, which `compile` returned; `log` is ignored."""
        del log
        return self._fired
