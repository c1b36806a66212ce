"""The crew: the lane processes of a campaign, started, heard, restarted when they die, and stopped."""

import json
import os
import selectors
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from miscompile.base.errors import ExecutionError
from miscompile.engine.lane import AHEAD, Orders

MOST_RESTARTS = 20
"""Deaths of one lane in a row, without a test in between, after which the campaign gives it up."""

Message = dict[str, Any]


@dataclass(slots=True)
class _Member:
    """A lane process and what is known of it."""

    orders: Orders
    process: "subprocess.Popen[bytes]"
    buffer: bytes = b""
    restarts: int = 0
    done: bool = False


@dataclass(slots=True)
class LaneSupervisor:
    """All lanes of a campaign. `log` gets what they print to standard error."""

    log: Path
    _members: dict[int, _Member] = field(default_factory=dict)
    _selector: selectors.DefaultSelector = field(default_factory=selectors.DefaultSelector)
    _stopping: bool = False

    def start(self, orders: Orders) -> None:
        """Start one lane."""
        self._members[orders.lane] = _Member(orders, self._spawn(orders))

    @property
    def working(self) -> int:
        """Number of lanes that have not ended."""
        return sum(not member.done for member in self._members.values())

    @property
    def fallen(self) -> bool:
        """Tell whether every lane has died, and none of them has got any further since."""
        return bool(self._members) and all(member.restarts for member in self._members.values())

    def messages(self, timeout: float) -> Iterator[Message]:
        """Yield the messages that have come in, waiting up to `timeout` seconds for the first.

        A lane that died is restarted where it had got to and a `notice` is yielded. Raises ExecutionError when a
        lane keeps dying.
        """
        for key, _ in self._selector.select(timeout):
            member = self._members[key.data]
            data = os.read(key.fd, 1 << 16)
            if not data:
                yield from self._ended(member)
                continue
            *lines, member.buffer = (member.buffer + data).split(b"\n")
            for line in lines:
                message = json.loads(line)
                if "next" in message:
                    if message["next"] > member.orders.first:
                        member.restarts = 0
                    member.orders = replace(member.orders, first=message["next"])
                if "quarantine" in message:
                    known, target = member.orders.disabled, message["target"]
                    names = tuple(sorted({*known.get(target, ()), *message["quarantine"]}))
                    member.orders = replace(member.orders, disabled={**known, target: names})
                yield message

    def stop(self) -> None:
        """Ask all lanes to finish what is ahead of them and end."""
        self._stopping = True
        for member in self._members.values():
            _close_orders(member.process)

    def kill(self) -> None:
        """End all lanes now."""
        self._stopping = True
        for member in self._members.values():
            if not member.done:
                member.process.kill()
                member.process.wait()
                member.done = True
            _close_orders(member.process)
            if member.process.stdout:
                member.process.stdout.close()
        self._selector.close()

    def _ended(self, member: _Member) -> Iterator[Message]:
        assert member.process.stdout is not None
        self._selector.unregister(member.process.stdout)
        code = member.process.wait()
        member.process.stdout.close()
        _close_orders(member.process)
        if code in (0, 2, 3):
            member.done = True
            return
        member.restarts += 1
        if self._stopping:
            member.done = True
            return
        if member.restarts > MOST_RESTARTS:
            member.done = True
            if not self.working:
                raise ExecutionError(f"all lanes keep dying (status {code}); {self.log} says more")
            yield {"notice": f"lane {member.orders.lane} keeps dying (status {code}) and is given up; see {self.log}"}
            return
        member.buffer = b""
        member.orders = replace(member.orders, first=member.orders.first + AHEAD + 1)  # past what may have killed it
        member.process = self._spawn(member.orders)
        yield {"notice": f"lane {member.orders.lane} died (status {code}) and was restarted; see {self.log}"}

    def _spawn(self, orders: Orders) -> "subprocess.Popen[bytes]":
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "miscompile.engine.lane", str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
                start_new_session=True,  # a terminal's Ctrl-C is the lead's to hear, even while this one starts
            )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(orders.as_json().encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:  # it died at once; `hear` will notice
            pass
        self._selector.register(process.stdout, selectors.EVENT_READ, orders.lane)
        return process


def _close_orders(process: "subprocess.Popen[bytes]") -> None:
    """Close a lane's standard input, which tells it to stop; what a dead lane has not read is lost."""
    if process.stdin:
        with suppress(BrokenPipeError):
            process.stdin.close()
