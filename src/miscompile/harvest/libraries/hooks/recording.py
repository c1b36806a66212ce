"""The sink of the hooks of all libraries, which stores the recorded instances.

A hook is a module with a function `start(sink) -> stop`: it hooks its library, passes every use of an operator to the
sink, and returns a function that removes the hooks. A sink must not raise exceptions into the recorded tests.

For each call, a hook

1. asks `sink.wants(api)`, which is cheap, before it looks at a value; 2. encodes the values BEFORE the call, because
the operator may change them; 3. calls the operator, and if it returns tensors, calls `sink.take(instance)`; 4. where
values have no encoding, calls `sink.leave(reason, api)`; reasons are few and name no values.
"""

import importlib
import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, cast

from miscompile.harvest.patterns.hooks.recording import PairRecorder
from miscompile.instances.code import digest_of, with_parent
from miscompile.instances.instance import Instance

LIMIT = 200
"""The most distinct instances of an operator that are kept per source."""

PATIENCE = 16
"""An operator is recorded at most this many times its limit, which bounds the cost of tests that repeat one call."""

LINES = "instances.jsonl"
"""Name of the file that a child process writes into its folder."""


class NotEncodable(Exception):  # noqa: N818 - it tells that the data model lacks a value; it is not an error
    """A value that an instance cannot contain; the message is the reason in a few words, without the value."""


class Sink(Protocol):
    """The receiver of a hook's instances."""

    def wants(self, api: str) -> bool:
        """Tell whether another instance of `api` may be kept."""
        ...

    def take(self, instance: Instance) -> None:
        """Keep an instance; the sink adds its origin."""
        ...

    def leave(self, reason: str, api: str) -> None:
        """Count a use of `api` that could not be kept."""
        ...


Stop = Callable[[], None]
Start = Callable[[Sink], Stop]

HOOKS: Mapping[str, str] = {
    "torch": "miscompile.harvest.libraries.hooks.torch_calls",
    "keras": "miscompile.harvest.libraries.hooks.keras_calls",
}
"""Modules with the hooks of a library."""


def hook_of(library: str) -> Start:
    """Return the function that hooks a library; its import imports the library."""
    return cast(Start, importlib.import_module(HOOKS[library]).start)


class Collector:
    """A sink that forwards every distinct instance, at most `limit` of each operator.

    `test` names the current test, which becomes the origin of instances. `left` counts uses that could not be kept
    since the counts were last reset.
    """

    def __init__(self, keep: Callable[[Instance], None], source: str, limit: int = LIMIT) -> None:
        self.test = ""
        self.left: Counter[str] = Counter()
        self._keep, self._source, self._limit = keep, source, limit
        self._known: set[str] = set()
        self._kept: Counter[str] = Counter()
        self._asked: Counter[str] = Counter()

    def wants(self, api: str) -> bool:
        """Tell whether the operator's limits on kept instances and on recorded calls are not reached."""
        self._asked[api] += 1
        return self._kept[api] < self._limit and self._asked[api] <= self._limit * PATIENCE

    def take(self, instance: Instance) -> None:
        """Forward the instance unless an equal one was forwarded before."""
        digest = digest_of(instance)
        if digest in self._known or self._kept[instance.api] >= self._limit:
            return
        self._known.add(digest)
        self._kept[instance.api] += 1
        self._keep(replace(instance, source=self._source, origin=self.test))

    def leave(self, reason: str, api: str) -> None:
        """Count what could not be kept, by its reason."""
        del api
        self.left[reason] += 1

    @property
    def kept(self) -> Mapping[str, int]:
        """Number of forwarded instances, by operator."""
        return self._kept


class Lines(PairRecorder):
    """Writes a child's records to its folder, each line immediately, because tests crash processes."""

    def __init__(self, out: Path) -> None:
        super().__init__(out)
        self._file = (out / LINES).open("ab", buffering=0)

    def write(self, **line: object) -> None:
        """Write one line and flush it."""
        self._file.write(json.dumps(line).encode() + b"\n")

    def instance(self, instance: Instance) -> None:
        """Write an instance."""
        self._file.write(b'{"instance":' + with_parent(instance) + b"}\n")

    def leave(self, counts: Counter[str]) -> None:
        """Write the counts since the last call, and reset them."""
        if counts:
            self.write(left=dict(counts))
            counts.clear()


def has(found: object, kinds: "type[Any] | tuple[type[Any], ...]") -> bool:
    """Tell whether a result contains an object of `kinds`, at any depth of tuples, lists and dicts."""
    if isinstance(found, kinds):
        return True
    if isinstance(found, Mapping):
        return any(has(item, kinds) for item in found.values())
    return isinstance(found, tuple | list) and any(has(item, kinds) for item in found)
