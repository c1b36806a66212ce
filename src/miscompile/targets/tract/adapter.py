"""tract in the worker."""

from collections.abc import Sequence
from functools import partial

from miscompile.core.run import Build
from miscompile.targets.plain import ByName, PlainAdapter
from miscompile.targets.tract.runner import evaluate, optimised


class Tract(PlainAdapter):
    """Optimises and runs models, alike at both levels."""

    def compile(self, model: bytes, build: Build) -> tuple[ByName, Sequence[str]]:
        """Read and optimise the model. Raises tract.TractError for one that tract does not read."""
        del build
        return partial(evaluate, *optimised(model)), ()
