"""The optimisations of tinygrad that are functions, not rules, wrapped to observe them and switch them off.

tinygrad has switches for two of them (NOOPT, NO_MEMORY_PLANNER). The third, which merges adjacent loads and stores
into vectors, has an environment variable that is read once per process, so its wrapper skips it.
"""

from collections.abc import Callable
from typing import Any

import tinygrad.codegen
import tinygrad.codegen.opt.heuristic
import tinygrad.schedule

_CONTEXT = {"hand_coded_optimizations": "NOOPT", "memory_plan_rewrite": "NO_MEMORY_PLANNER"}
_WRAPPED: tuple[tuple[Any, str, Callable[[Any, Any], bool]], ...] = (
    (tinygrad.codegen.opt.heuristic, "hand_coded_optimizations", lambda _, after: bool(after.applied_opts)),
    (tinygrad.codegen, "memory_coalescing", lambda before, after: after is not before),
    (tinygrad.schedule, "memory_plan_rewrite", lambda before, after: after is not before),
)
"""The module in which the caller looks up the function, its name, and a test whether it changed its first argument."""


class Stages:
    """Wraps the functions when it is constructed; a wrapped function behaves as before unless it is off."""

    def __init__(self) -> None:
        self.fired: dict[str, None] = {}
        self._off: frozenset[str] = frozenset()
        self._observe = False
        for module, name, changed in _WRAPPED:
            setattr(module, name, self._wrap(name, getattr(module, name), changed))

    def set(self, off: frozenset[str], observe: bool) -> None:
        """Switch the stages `off`, clear the record of fired stages, and record them from now on if `observe`."""
        self._off, self._observe, self.fired = off, observe, {}

    @staticmethod
    def context(off: frozenset[str]) -> dict[str, int]:
        """Return tinygrad's switches for the stages `off`."""
        return {variable: int(name in off) for name, variable in _CONTEXT.items()}

    def _wrap(self, name: str, function: Callable[..., Any], changed: Callable[[Any, Any], bool]) -> Callable[..., Any]:
        def wrapper(subject: Any, *rest: Any, **options: Any) -> Any:  # noqa: ANN401 - tinygrad's types
            if name in self._off:
                return subject
            result = function(subject, *rest, **options)
            if self._observe and changed(subject, result):
                self.fired[name] = None
            return result

        return wrapper
