"""The nodes of a Ray cluster. No other module imports Ray, which is an optional extra.

Ray places one actor on each node, notices when a node or an actor dies, and keeps the logs. The actor starts each
shard as a process (`engine.distributed.shard`), because compilers must not be forked from an actor, and passes the
lines of that process on.
"""

import json
import logging
import math
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from miscompile import __version__
from miscompile.base.child import Conversation
from miscompile.base.errors import UsageError
from miscompile.engine.distributed.head import NodeEvent, NodeJoined, NodeLost, NodeSaid, NodeUnfit

OBJECT_STORE = 80 << 20
"""Bytes of the object store of a local cluster; only short messages pass through it."""

_LOOK_EVERY = 3.0
"""Seconds between two looks for nodes that have joined the cluster."""

_LISTEN_SECONDS = 10.0
"""Seconds in which the first machine of a cluster must accept a connection."""

_CAUSE = 200
"""Characters of an error that a notice shows at most."""


class NodeActor:
    """The actor of one node: runs one shard at a time. `stop` may be called while `run` goes on."""

    def __init__(self, cpus: int) -> None:
        self._environment = dict(os.environ)
        if self._environment.get("OMP_NUM_THREADS") == str(cpus):
            # Ray sets it for actors. Compilers must run under the same settings as on a single machine.
            del self._environment["OMP_NUM_THREADS"]
        self._shard: Conversation | None = None
        self._stopped = False

    def version(self) -> str:
        """Return the version of this package on the node."""
        return __version__

    def run(self, orders: str) -> Iterator[bytes]:
        """Run a shard; yield the lines of its process and, when it has ended, its `status`."""
        # Without a function between fork and exec, because this process has threads; the shard binds itself.
        words = [sys.executable, "-m", "miscompile.engine.distributed.shard", str(os.getpid())]
        self._shard = shard = Conversation(words, errors=2, environment=self._environment, bound=False)
        try:
            shard.write(orders.encode() + b"\n")
            if self._stopped:
                shard.terminate()
            while (lines := shard.lines()) is not None:
                yield from (line for line in lines)  # Ray sends into it, which a list's iterator does not allow
        finally:
            status = shard.end(patience=5.0)
        yield json.dumps({"status": status}).encode()

    def stop(self) -> None:
        """Ask the shard to stop and to report."""
        self._stopped = True
        if self._shard is not None:
            self._shard.terminate()


@dataclass(slots=True)
class _Member:
    """A node with its actor; `waited` is the answer of the actor that is waited for next."""

    name: str
    cpus: int
    actor: Any
    waited: Any
    joined: bool = False


class RayNodes:
    """The nodes of the cluster to which this process is connected. `ray` is the module."""

    def __init__(self, ray: Any, python: str | None, *, gpus: bool) -> None:  # noqa: ANN401 - a module
        self._ray, self._python, self._gpus = ray, python, gpus
        self._members: dict[str, _Member] = {}
        self._looked = self._lost = -math.inf
        self._stopping = False

    @property
    def joining(self) -> bool:
        """Tell whether a node may join soon: its actor starts, or starts again."""
        soon = time.monotonic() - self._lost < 2 * _LOOK_EVERY
        return soon or any(not member.joined and member.waited is not None for member in self._members.values())

    def events(self, timeout: float) -> Iterator[NodeEvent]:
        """Yield what happened, waiting up to `timeout` seconds for the first."""
        if not self._stopping and time.monotonic() - self._looked > _LOOK_EVERY:
            self._look()
        waited = {member.waited: key for key, member in self._members.items() if member.waited is not None}
        if not waited:
            time.sleep(timeout)
            return
        ready, _ = self._ray.wait(list(waited), num_returns=1, timeout=timeout)
        for answer in ready:
            yield from self._received(waited[answer])

    def give(self, node: str, orders: str) -> None:
        """Start the shard with these orders on a node that has none."""
        member = self._named(node)
        member.waited = member.actor.run.options(num_returns="streaming").remote(orders)

    def stop(self) -> None:
        """Ask the shards on all nodes to stop and to report."""
        self._stopping = True
        for member in self._members.values():
            member.actor.stop.remote()

    def kill(self) -> None:
        """End all actors, and with them their shards."""
        for member in self._members.values():
            with suppress(self._ray.exceptions.RayError):
                self._ray.kill(member.actor)
        self._members.clear()

    def _named(self, name: str) -> _Member:
        return next(member for member in self._members.values() if member.name == name)

    def _look(self) -> None:
        """Place an actor on every node that has none. It waits there until the CPUs are free."""
        self._looked = time.monotonic()
        for node in self._ray.nodes():
            key, cpus = node["NodeID"], int(node["Resources"].get("CPU", 0))
            if node["Alive"] and cpus and key not in self._members:
                actor = self._place(key, cpus, node["Resources"].get("GPU", 0) if self._gpus else 0)
                name = f"node {node['NodeManagerHostname']}/{key[:8]}"
                self._members[key] = _Member(name, cpus, actor, actor.version.remote())

    def _place(self, key: str, cpus: int, gpus: float) -> Any:  # noqa: ANN401 - a handle of Ray
        there = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(key, soft=False)
        options: dict[str, Any] = {"num_cpus": cpus, "num_gpus": gpus, "max_concurrency": 2}
        if self._python is not None:
            options["runtime_env"] = {"py_executable": self._python}
        return self._ray.remote(NodeActor).options(scheduling_strategy=there, **options).remote(cpus)

    def _received(self, key: str) -> Iterator[NodeEvent]:
        """Yield the event behind the next answer of a member's actor."""
        member = self._members[key]
        try:
            answer = self._ray.get(next(member.waited) if member.joined else member.waited)
        except StopIteration:
            member.waited = None
        except self._ray.exceptions.RayError as error:
            # Most often the actor or its node died. After any other error nothing is known of the shard either.
            del self._members[key]
            self._lost = time.monotonic()
            with suppress(self._ray.exceptions.RayError):
                self._ray.kill(member.actor)
            yield NodeLost(member.name, _cause(error))
        else:
            yield from self._heard(member, answer)

    def _heard(self, member: _Member, answer: str | bytes) -> Iterator[NodeEvent]:
        if member.joined:
            message: Mapping[str, Any] = json.loads(answer)
            if "status" in message:
                member.waited = None
            yield NodeSaid(member.name, message)
        elif answer != __version__:
            member.waited = None
            yield NodeUnfit(member.name, f"it has miscompile {answer!s}, and this machine has {__version__}")
        else:
            member.joined, member.waited = True, None
            yield NodeJoined(member.name, member.cpus)


def _cause(error: Exception) -> str:
    """Return an error of Ray, or the error in an actor that it stands for, in one line."""
    inner = getattr(error, "cause", None) or error
    first = (str(inner).strip().splitlines() or [""])[0]
    return f"{type(inner).__name__}: {first}"[:_CAUSE]


@contextmanager
def ray_nodes(address: str, python: str | None = None, *, cpus: int = 1, gpus: bool = False) -> Iterator[RayNodes]:
    """Connect to a Ray cluster; its nodes run shards inside this block, and nothing of it runs afterwards.

    `address` is `auto` (the cluster that this machine belongs to), HOST:PORT, or `local`: a new cluster of this machine
    alone, with `cpus` CPUs. `python` is the interpreter on the nodes (None: the one of their Ray). `gpus` gives the
    actors the nodes' GPUs. Raises UsageError when Ray is not installed, or when there is no such cluster.
    """
    if address not in ("auto", "local"):
        _require_listener(address)
    if address == "local":
        # Ray asks for a token by default from its next release on; it makes one when there is none.
        os.environ.setdefault("RAY_AUTH_MODE", "token")
    before = signal.getsignal(signal.SIGTERM)
    try:
        ray = _connected(address, cpus)
    finally:
        signal.signal(signal.SIGTERM, before)  # `ray.init` replaces it
    nodes = RayNodes(ray, python, gpus=gpus)
    try:
        yield nodes
    finally:
        nodes.kill()
        ray.shutdown()
        signal.signal(signal.SIGTERM, before)


def _require_listener(address: str) -> None:
    """Raise UsageError unless something listens at HOST:PORT, because Ray itself tries for minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or "/" in host:
        raise UsageError(f"--ray {address}: name a cluster as HOST:PORT, or auto or local")
    try:
        socket.create_connection((host, int(port)), _LISTEN_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise UsageError(f"--ray {address}: there is no cluster ({error}); `ray start --head` starts one") from None


def _connected(address: str, cpus: int) -> Any:  # noqa: ANN401 - a module
    """Return the module Ray, connected to a cluster."""
    try:
        import ray
        import ray.util.scheduling_strategies
    except ImportError:
        raise UsageError("--ray needs Ray; install it with: pip install 'miscompile[ray]'") from None
    own: dict[str, Any] = {}
    if address == "local":
        own = {"num_cpus": cpus, "include_dashboard": False, "object_store_memory": OBJECT_STORE}
    try:
        ray.init(address, log_to_driver=False, logging_level=logging.ERROR, **own)
    except (ConnectionError, ValueError, ray.exceptions.RayError) as error:
        raise UsageError(f"--ray {address}: {_cause(error)}") from None
    return ray
