"""Pools of several targets: opened when they are first needed, and closed together."""

from contextlib import ExitStack
from typing import Self

from miscompile.execution.limits import Limits
from miscompile.execution.pool import LocalPool


class Pools:
    """A context manager with one pool of one worker for each used target."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._stack = ExitStack()
        self._open: dict[str, LocalPool] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def pool(self, target: str) -> LocalPool:
        """Return the pool of a target; its worker stays until all are closed."""
        if target not in self._open:
            self._open[target] = self._stack.enter_context(LocalPool(target, 1, self._limits))
        return self._open[target]
