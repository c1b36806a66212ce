"""A lane whose searches for culprits have had their share of the time leaves violations to triage."""

import io
import json
from pathlib import Path
from typing import cast

import pytest

from miscompile.engine import searches
from miscompile.engine.lane import Inbox, Lane, Orders
from miscompile.engine.plan import Plan
from miscompile.engine.wiring import make_pool, oracle_context
from miscompile.findings import folder
from miscompile.ops.support import Support
from miscompile.triage.attribution import ATTRIBUTED, Confirmer

pytestmark = pytest.mark.process

TARGET = "toy{bugs=sub_commutes+sub_self_dtype}"


class OpenInbox:
    """Says nothing, and never ends the lane."""

    closed = False

    def lines(self) -> list[str]:
        return []


def found(
    place: Path,
    tests: int,
    target: str = TARGET,
    producer: str = "strict{nodes=5, ops=Sub+Add+Mul}",
    *,
    hangs: bool = False,
) -> list[bool]:
    """Run a lane over so many cases; tell for each pending finding whether its culprits were searched for.

    No search is postponed where all violations are `hangs`.
    """
    plan, out = Plan(target, out=place, producers=(producer,), opset=21, limit_seconds=1.0), io.StringIO()
    orders = Orders(plan, (Support(open=True),), lane=0, session=1, first=0, quota=tests)
    with make_pool(plan, 2) as pool, make_pool(plan) as second:
        confirmer = Confirmer(second, oracle_context(plan), plan.seed)
        Lane(orders, pool, confirmer, cast("Inbox", OpenInbox()), out).run()
    messages = [json.loads(line) for line in out.getvalue().splitlines()]
    names = [message["finding"]["identifier"] for message in messages if "finding" in message]
    stored = [folder.load(place, name) for name in names]
    assert all(one.script for one in stored), "people can run a pending finding"
    facts = [one.finding.facts for one in stored]
    postponed = sum(message.get("counters", {}).get("searches postponed", 0) for message in messages)
    assert bool(postponed) != (hangs or all(ATTRIBUTED in one for one in facts))
    return [ATTRIBUTED in one for one in facts]


def test_culprits_are_searched_for_at_once_as_long_as_there_is_time(tmp_path: Path) -> None:
    attributed = found(tmp_path, 300)
    assert attributed
    assert all(attributed)


def test_violations_that_wait_at_the_end_are_left_to_triage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searches, "HEADSTART_US", -1)
    monkeypatch.setattr(searches, "SHARE", 0.0)
    attributed = found(tmp_path, 300)
    assert attributed
    assert not any(attributed)


def test_the_culprits_of_a_hang_are_left_to_triage(tmp_path: Path) -> None:
    attributed = found(tmp_path, 15, "toy{bugs=hang_concat_same}", "strict{nodes=6, ops=Concat}", hangs=True)
    assert attributed
    assert not any(attributed)
