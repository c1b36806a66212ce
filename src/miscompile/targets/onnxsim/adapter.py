"""onnxsim in the worker."""

import os
import re
from collections.abc import Sequence

import onnxsim  # noqa: F401 - imported before the worker forks

from miscompile.core.case import Program
from miscompile.core.run import Build
from miscompile.targets.onnxsim import runner
from miscompile.targets.onnxsim.about import ABOUT
from miscompile.targets.optimisers.adapter import ExecutedSession, OptimiserAdapter

_COUNTS = "ONNXSIM_PROFILE_PASS_PHASES"
"""The environment variable that makes onnxsim print how often each pass has matched and rewritten."""

_ROW = re.compile(r"^(\w+) +[\d.]+ +\d+ +[\d.]+ +(\d+) +[\d.]+$", re.MULTILINE)

_PASSES = frozenset(ABOUT.passes)


class OnnxSim(OptimiserAdapter):
    """Calls onnxsim.simplify."""

    def build(self, program: Program, build: Build) -> ExecutedSession:
        """Simplify, check and load a model; onnxsim prints the counts of its passes where the build is observed."""
        if not build.observe:
            return super().build(program, build)
        os.environ[_COUNTS] = "1"
        try:
            return super().build(program, build)
        finally:
            del os.environ[_COUNTS]

    def optimise(self, model: bytes, build: Build) -> bytes:
        """Run the passes of the build's level."""
        return runner.optimise(model, build.level, build.disabled)

    def observe(self, model: bytes, build: Build) -> Sequence[str]:
        """Return nothing, because onnxsim prints what `fired` reads."""
        return ()

    def fired(self, log: str) -> tuple[str, ...]:
        """Return the passes that called for a rewrite, by onnxsim's own counts; a rewrite may still have been declined.

        Passes that do not work node by node, and constant folding, are not counted.
        """
        found = (name for name, rewrites in _ROW.findall(log) if int(rewrites) and name in _PASSES)
        return tuple(dict.fromkeys(found))
