"""Names of a front end's conversion functions, and a record of those that a build has called."""

import functools
import inspect
import os
from collections.abc import Callable
from typing import Any

from miscompile.core.run import Build


class Conversions:
    """The names of the conversion functions that the current build has called, each once, the last call last."""

    def __init__(self) -> None:
        self._observing = False
        self._seen: dict[str, None] = {}

    def begin(self, build: Build) -> None:
        """Clear the last build's names; record names from now on if the new build has `observe`."""
        self._observing = build.observe
        self._seen = {}

    def note(self, name: str) -> None:
        """Record a call, which replaces an earlier one of the same function."""
        if self._observing:
            self._seen.pop(name, None)
            self._seen[name] = None

    def seen(self) -> tuple[str, ...]:
        """Return the names."""
        return tuple(self._seen)

    def watched(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        """Return a wrapper of `function` that records its calls under `name`."""

        @functools.wraps(function)
        def call(*args: Any, **words: Any) -> Any:  # noqa: ANN401 - whatever the front end passes
            self.note(name)
            return function(*args, **words)

        return call


def name_of(function: Any, key: str = "") -> str:  # noqa: ANN401 - anything that can be called
    """Return `file:function` of a conversion function, as a traceback would show it.

    A function created by another one has the name of its creator with `key`, the operator, in brackets, because one
    creator may serve many unrelated operators.
    """
    while True:
        inner = getattr(function, "func", None) or getattr(function, "__wrapped__", None)
        if inner is None:
            break
        function = inner
    code = getattr(inspect.unwrap(function), "__code__", None)
    file = os.path.basename(code.co_filename) if code is not None else type(function).__module__.rpartition(".")[2]
    parts = getattr(function, "__qualname__", type(function).__name__).split(".<locals>.")
    name = parts[0].rpartition(".")[2]
    return f"{file}:{name}[{key}]" if len(parts) > 1 and key else f"{file}:{name}"
