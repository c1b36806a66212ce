"""The compiler in the worker."""

from collections.abc import Sequence

from acme_compiler import compile_model
from miscompile.core.run import Build
from miscompile.targets.plain import ByName, PlainAdapter


class Acme(PlainAdapter):
    """Builds programs with Acme."""

    def compile(self, model: bytes, build: Build) -> tuple[ByName, Sequence[str]]:
        """Compile; raises the compiler's own errors."""
        compiled = compile_model(model, build.level, build.disabled)
        return compiled.run, compiled.fired
