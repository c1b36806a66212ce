"""The supervisor of a campaign's lane processes: starts them, reads their messages, restarts and stops them."""

import json
import os
import selectors
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from miscompile.base.child import Conversation
from miscompile.base.errors import ExecutionError
from miscompile.engine.lane import AHEAD, RETIRED, Orders
from miscompile.triage.recognition import SignedPredicate

MOST_RESTARTS = 20
"""Consecutive deaths of one lane, without a test in between, after which it is not restarted."""

LONGEST_SILENCE = 1800.0
"""Seconds after which a lane that says nothing is killed and restarted. It reports four times a second, but attributing
one hang can take minutes."""

Message = dict[str, Any]


@dataclass(slots=True)
class _Member:
    """A lane process and its state. `news` is what it must still be told: a lane reads nothing while it searches.

    `lost` is the number of cases, from the first one that is not judged, that a death may be due to.
    """

    orders: Orders
    process: Conversation
    restarts: int = 0
    lost: int = AHEAD + 1
    done: bool = False
    heard: float = field(default_factory=time.monotonic)
    news: Message = field(default_factory=dict)

    def send_news(self) -> None:
        """Send what is to be told if everything before was read; never wait for the lane."""
        if self.process.offer(b"") and self.news:
            self.process.offer(json.dumps(self.news).encode() + b"\n")
            self.news = {}


@dataclass(slots=True)
class LaneSupervisor:
    """All lanes of a campaign. `log` gets their standard error; `deaths` counts the unexpected ends of lanes."""

    log: Path
    deaths: int = 0
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

    def messages(self, timeout: float) -> Iterator[Message]:
        """Yield the messages of the lanes, waiting up to `timeout` seconds for the first.

        Restarts a lane that died after the cases that it had submitted, and yields a `notice`. Raises ExecutionError
        when a lane keeps dying.
        """
        self._send()
        for key, _ in self._selector.select(timeout):
            member = self._members[key.data]
            member.heard = time.monotonic()
            lines = member.process.lines()
            if lines is None:
                yield from self._ended(member)
                continue
            for line in lines:
                message = json.loads(line)
                if "next" in message:
                    if message["next"] > member.orders.first:
                        member.restarts = 0
                    member.orders = replace(member.orders, first=message["next"])
                    member.lost = message.get("lost", member.lost)
                yield message
        for member in self._members.values():
            if not member.done and time.monotonic() - member.heard > LONGEST_SILENCE:
                member.heard = time.monotonic()
                member.process.kill()  # its end is read in the next turn, and it is restarted

    def tell(self, bug: SignedPredicate) -> None:
        """Let all lanes steer past a bug, those that are restarted later as well."""
        for member in self._members.values():
            member.orders = replace(member.orders, known=(*member.orders.known, bug))
            member.news.setdefault("known", []).append(bug.as_json())
        self._send()

    def divide(self, weights: Mapping[str, float]) -> None:
        """Let all lanes draw the arms of their cases by `weights`, those that are restarted later as well."""
        for member in self._members.values():
            member.orders = replace(member.orders, weights=weights)
            member.news["weights"] = weights
        self._send()

    def stop(self) -> None:
        """Make all lanes judge their submitted cases and end."""
        self._stopping = True
        for member in self._members.values():
            member.process.close_input()

    def kill(self) -> None:
        """End all lanes now."""
        self._stopping = True
        for member in self._members.values():
            member.process.end(patience=0.0)
            member.done = True
        self._selector.close()

    def _send(self) -> None:
        for member in self._members.values():
            if not member.done and not self._stopping:
                member.send_news()

    def _ended(self, member: _Member) -> Iterator[Message]:
        self._selector.unregister(member.process)
        code = member.process.end()
        if code in (0, 2, 3) or (code == RETIRED and self._stopping):
            member.done = True
            return
        member.heard = time.monotonic()
        if code == RETIRED:
            self._continue(member)
            return
        member.restarts += 1
        self.deaths += 1
        if self._stopping:
            member.done = True
            return
        if member.restarts > MOST_RESTARTS:
            member.done = True
            if not self.working:
                raise ExecutionError(f"all lanes keep dying ({self._cause(code)}); {self.log} says more")
            cause = self._cause(code)
            yield {"notice": f"lane {member.orders.lane} keeps dying ({cause}) and is given up; see {self.log}"}
            return
        # The restarted lane skips the cases that may have killed it.
        member.orders = replace(member.orders, first=member.orders.first + member.lost)
        self._continue(member)
        yield {"notice": f"lane {member.orders.lane} died ({self._cause(code)}) and was restarted; see {self.log}"}

    def _cause(self, code: int) -> str:
        """Return the exit status; behind that of an uncaught error the last line of the log, which names the error."""
        lines = self.log.read_text("utf-8", "replace").splitlines() if code == 1 and self.log.exists() else []
        return f"status {code}: {lines[-1][:200]}" if lines else f"status {code}"

    def _continue(self, member: _Member) -> None:
        """Start another process for a lane; its orders contain all news."""
        member.process, member.news = self._spawn(member.orders), {}

    def _spawn(self, orders: Orders) -> Conversation:
        with self.log.open("ab") as log:
            words = [sys.executable, "-m", "miscompile.engine.lane"]
            process = Conversation(words, errors=log, environment={**os.environ, "PYTHONUNBUFFERED": "1"})
        process.offer(orders.as_json().encode() + b"\n")  # `_send` sends the rest, once the lane has been loaded
        self._selector.register(process, selectors.EVENT_READ, orders.lane)
        return process
