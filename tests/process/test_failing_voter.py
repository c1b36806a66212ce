"""Where several targets are held against each other, one that fails often takes part in fewer of the tests."""

import io
import json
from collections import Counter
from pathlib import Path
from typing import cast

import pytest

from miscompile.engine.lane import TESTS_OF, Inbox, Lane, Orders
from miscompile.engine.plan import Plan
from miscompile.engine.wiring import make_pool, oracle_context
from miscompile.ops.support import Support
from miscompile.triage.attribution import Confirmer

pytestmark = pytest.mark.process

SOUND, FAULTY = "toy{bugs=none}", "toy{bugs=survivable}"


class OpenInbox:
    """Says nothing, and never ends the lane."""

    closed = False

    def lines(self) -> list[str]:
        return []


def counted(place: Path, *, steer: bool) -> Counter[str]:
    """Run a lane over 100 cases on three targets, of which one has failed often; return its counters."""
    targets = ("toy", SOUND, FAULTY)
    plan = Plan(targets[0], others=targets[1:], out=place, producers=("strict{nodes=12}",), opset=21, steer=steer)
    out = io.StringIO()
    orders = Orders(plan, tuple(Support(open=True) for _ in targets), lane=0, session=1, first=0, quota=100)
    with make_pool(plan, 2) as pool, make_pool(plan) as second:
        confirmer = Confirmer(second, oracle_context(plan), plan.seed)
        lane = Lane(orders, pool, confirmer, cast("Inbox", OpenInbox()), out)
        lane.risks.charge(FAULTY, 1e6)
        lane.run()
    counters: Counter[str] = Counter()
    for line in out.getvalue().splitlines():
        counters.update(json.loads(line).get("counters", {}))
    return counters


def test_a_voter_that_fails_often_is_heard_less_often_than_the_others(tmp_path: Path) -> None:
    counters = counted(tmp_path, steer=True)
    assert 0 < counters[f"{TESTS_OF}{FAULTY}"] < 0.5 * counters[f"{TESTS_OF}{SOUND}"]
    assert counters["tests"] == 100


def test_without_steering_every_voter_is_heard(tmp_path: Path) -> None:
    counters = counted(tmp_path, steer=False)
    assert counters[f"{TESTS_OF}{FAULTY}"] > 0.8 * counters[f"{TESTS_OF}{SOUND}"]
