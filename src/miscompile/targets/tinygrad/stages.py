"""The optimisations of tinygrad that are functions, not rules: wrapped once, to be watched and to be left out.

Two of them have a switch of tinygrad's own (NOOPT, NO_MEMORY_PLANNER); the third, the joining of neighbouring loads
and stores into vectors, has an environment variable that is read once a process, so its wrapper leaves it out.
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
"""Module where the caller finds the function, its name, and whether it changed its first argument."""


class Stages:
    """Wraps the functions when it is made; then each does what it always does, unless it is off."""

    def __init__(self) -> None:
        self.fired: dict[str, None] = {}
        self._off: frozenset[str] = frozenset()
        self._observe = False
        for module, name, changed in _WRAPPED:
            setattr(module, name, self._wrap(name, getattr(module, name), changed))

    def set(self, off: frozenset[str], observe: bool) -> None:
        """From now on leave out the stages `off`; forget what fired, and note it anew if `observe`."""
        self._off, self._observe, self.fired = off, observe, {}

    @staticmethod
    def context(off: frozenset[str]) -> dict[str, int]:
        """Return tinygrad's own switches for the stages `off`."""
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
