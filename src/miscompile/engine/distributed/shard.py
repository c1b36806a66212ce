"""One shard of a campaign on several machines. Run as `python -m miscompile.engine.distributed.shard PARENT`.

PARENT is the number of the process that starts it and with which it ends. It reads its orders as one JSON line from
the standard input, runs a coordinator in a temporary folder, and writes JSON lines to the standard output: `progress`
and `notice`, the finding `found` as soon as it is announced, and at its end the findings `kept` beside them and
`ended` with all counters. SIGTERM stops it cleanly, which is an end as well. Instead of `ended` there is `usage` or
`failure` with a message when it cannot do its work.
"""

import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TextIO

from miscompile.base import child
from miscompile.base.errors import MiscompileError, UsageError
from miscompile.core.events import Event, Found, Notice, Progress
from miscompile.engine.coordinator import Portion, fuzz
from miscompile.engine.distributed.parcel import Parcel, pack, unpack
from miscompile.engine.plan import Plan, plan_from
from miscompile.environments.resolve import prepare
from miscompile.findings import folder
from miscompile.findings.store import Record, Store
from miscompile.triage.recognition import signed_predicate_from

_SAY_EVERY = 1.0


@dataclass(frozen=True, slots=True)
class ShardOrders:
    """What a shard needs: the plan of the campaign, with the limits of the shard, and its portion.

    `known` are the findings of the campaign so far by identifier. Their signatures count as duplicates here, and those
    that are pending are triaged here. `install` is the user's consent to install a compiler that the node lacks.
    """

    plan: Plan
    portion: Portion
    known: Mapping[str, Parcel]
    install: bool = False

    def as_json(self) -> str:
        """Print the orders in one line."""
        steered = [bug.as_json() for bug in self.portion.steered or ()]
        portion = {"session": self.portion.session, "first": self.portion.first, "lanes": self.portion.lanes}
        rest = {"known": dict(self.known), "install": self.install}
        return json.dumps({"plan": self.plan.as_json(), "portion": {**portion, "steered": steered}, **rest})


def shard_orders_from(text: str) -> ShardOrders:
    """Read back what `ShardOrders.as_json` printed."""
    data: dict[str, Any] = json.loads(text)
    portion = {**data["portion"], "steered": tuple(map(signed_predicate_from, data["portion"]["steered"]))}
    return ShardOrders(plan_from(data["plan"]), Portion(**portion), data["known"], data["install"])


def row_from(data: Mapping[str, Any]) -> Record:
    """Return a row of the list `rows` of the message `ended`."""
    return Record(**{**data, "culprits": tuple(data["culprits"])})


class _Speaker:
    """Writes the messages; a listener of the coordinator."""

    def __init__(self, out: TextIO, place: Path) -> None:
        self._out, self._place = out, place
        self._spoke = 0.0
        self.sent: set[str] = set()

    def on(self, event: Event) -> None:
        match event:
            case Progress(_, counters):
                if time.monotonic() - self._spoke > _SAY_EVERY:
                    self._spoke = time.monotonic()
                    self.send({"progress": dict(counters)})
            case Notice(text, detail) if not detail:
                self.send({"notice": text})
            case Found(finding, _):
                self.send_finding("found", finding.identifier)

    def send_finding(self, kind: str, identifier: str) -> None:
        self.sent.add(identifier)
        parcel = pack(folder.load(self._place, identifier))
        self.send({kind: parcel, "identifier": identifier})

    def send(self, message: Mapping[str, Any]) -> None:
        self._out.write(json.dumps(message) + "\n")
        self._out.flush()


def _work(orders: ShardOrders, place: Path, speaker: _Speaker) -> None:
    plan = replace(orders.plan, out=place, ledger=None, number=1)  # the head keeps the ledger
    for target in plan.targets:
        prepare(target, lambda text: speaker.send({"notice": text}), install=orders.install)
    place.mkdir()
    for identifier, parcel in orders.known.items():
        folder.save(place, unpack(parcel, identifier))
    try:
        fuzz(plan, [speaker], orders.portion)
    except KeyboardInterrupt:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the rest is quick, and is what the stop waits for
    finally:
        log = place / "lanes.log"
        if log.exists():
            sys.stderr.write(log.read_text("utf-8", "replace"))
    _report(orders, place, speaker)


def _report(orders: ShardOrders, place: Path, speaker: _Speaker) -> None:
    """Send what only the end decides: findings that are not announced, duplicates, counters."""
    with Store.open(place) as store:
        rows, counters, activity = store.findings(), store.counters(), store.pass_activity()
    for row in rows:
        pending = orders.known.get(row.identifier)
        if row.identifier not in speaker.sent and (pending is None or row.status == "unconfirmed"):
            speaker.send_finding("kept", row.identifier)
    ended = {"counters": counters, "activity": activity, "rows": [asdict(row) for row in rows]}
    speaker.send({"ended": ended})


def main() -> int:
    """Run the shard under the orders on standard input; return the exit status."""
    child.die_with_parent(int(sys.argv[1]))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # other output must not mix with the messages
    try:
        with tempfile.TemporaryDirectory(prefix="miscompile-shard-") as scratch:
            place = Path(scratch) / "out"
            speaker = _Speaker(out, place)
            try:
                _work(shard_orders_from(sys.stdin.readline()), place, speaker)
            except UsageError as error:
                speaker.send({"usage": str(error)})
            except MiscompileError as error:
                speaker.send({"failure": str(error)})
    except KeyboardInterrupt:
        return 0  # stopped before it began
    return 0


if __name__ == "__main__":
    sys.exit(main())
