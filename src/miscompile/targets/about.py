"""What is known of a target without importing its compiler, and what its adapter must do in the worker."""

from dataclasses import dataclass, field
from typing import Protocol

from miscompile.core.case import Feed, Program
from miscompile.core.run import Build
from miscompile.core.tensor import Tensor


@dataclass(frozen=True, slots=True)
class About:
    """A target's face. It never imports the compiler.

    `levels` are the build levels from `off` to `full`. `adapter` and `script` are import paths `module:name`:
    the adapter class, loaded in the worker alone, and the template of a reproducer (a string constant with
    Jinja markup). `distributions` are the PyPI names whose versions identify the target. `twins` are groups of
    pass names that stand in for each other, so that bisection must switch them together.
    """

    name: str
    title: str
    kinds: tuple[str, ...]
    levels: tuple[str, ...]
    adapter: str
    script: str
    distributions: tuple[str, ...]
    max_opset: int
    max_ir_version: int
    passes: tuple[str, ...] = ()
    twins: tuple[tuple[str, ...], ...] = ()
    options: dict[str, str] = field(default_factory=dict)
    """Names of the options a spec of this target may carry (`toy{bugs=...}`), each with a line of help."""


class Session(Protocol):
    """A compiled program."""

    def run(self, feed: Feed) -> tuple[Tensor | None, ...]:
        """Run once on `feed`; return the outputs in the order of the program's output ports.

        Raises whatever the compiler raises; the worker turns that into an outcome.
        """
        ...


class Adapter(Protocol):
    """The worker's side of a target. Constructed once a worker with the options of the target spec.

    The constructor may import and configure the compiler but must not compile anything: workers fork from a
    process in which it has run, and most compilers hang when forked after a compilation.
    """

    def build(self, program: Program, build: Build) -> Session:
        """Compile `program` as `build` says. Raises whatever the compiler raises."""
        ...

    def passes(self) -> tuple[str, ...]:
        """Names of the passes that can be switched off."""
        ...

    def fired(self, log: str) -> tuple[str, ...]:
        """Names of the passes that changed the program, read from what the compiler printed while it compiled.

        Called only when the build asked to `observe`; a target that observes by other means ignores `log`.
        """
        ...
