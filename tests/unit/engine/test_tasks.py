"""The tasks of lanes: all pairs exactly as often as stated, over two lanes and a resumed session."""

from collections import Counter
from pathlib import Path

import pytest

from miscompile.api.plans import fuzz_plan
from miscompile.base.errors import UsageError
from miscompile.engine.plan import Plan
from miscompile.engine.tasks import LaneTasks, tasks_of
from miscompile.engine.wiring import make_producer
from miscompile.findings.tasks import MADE, TASKS, TaskLog
from miscompile.ops.support import Support
from miscompile.producers.combined import Assigned, Choosing, finite_part
from miscompile.producers.pairs import ROUNDS, Pairs

OPEN = Support(open=True)
OPS = ("Add", "Relu", "Transpose")
GIVEN = {
    "targets": ("toy",), "seconds": None, "tests": None, "seed": 1, "out": None, "workers": 1, "keep_passes": False,
    "preset": None, "producers": ("pairs",), "checks": (), "nodes": None, "resume": False, "ops": OPS,
}  # fmt: skip


def a_plan(out: Path, workers: int) -> Plan:
    return Plan("toy", producers=("pairs",), ops=OPS, out=out, workers=workers)


def lane_of(plan: Plan, session: int, lane: int) -> LaneTasks:
    """Return the tasks of a lane as its process makes them."""
    found = tasks_of(plan, make_producer(plan, OPEN), session, lane)
    assert found is not None
    return found


def test_two_lanes_and_a_resumed_session_make_every_pair_as_often_as_stated(tmp_path: Path) -> None:
    plan, made = a_plan(tmp_path, 2), Counter[tuple[str, str]]()
    TaskLog(tmp_path / TASKS).expect(
        [f"{one} {other} {turn}" for one in OPS for other in OPS for turn in range(ROUNDS)]
    )
    for session, most in ((1, (5, 2)), (2, (99, 99))):
        for lane in (0, 1):
            tasks = lane_of(plan, session, lane)
            for index in range(min(most[lane], len(tasks.names))):
                tasks.begin(index)
                first, second, _ = tasks.names[index].split(" ")
                made[first, second] += 1
                tasks.finish(index, MADE)
            tasks.write()
    assert made == {(one, other): ROUNDS for one in OPS for other in OPS}
    assert [lane_of(plan, 3, lane).names for lane in (0, 1)] == [(), ()]


def test_the_index_chooses_the_pair_so_that_a_restarted_lane_goes_on(tmp_path: Path) -> None:
    plan = a_plan(tmp_path, 2)
    first, restarted = lane_of(plan, 1, 1), lane_of(plan, 1, 1)
    assert first.names == restarted.names
    restarted.begin(4)
    assert isinstance(restarted.producer, Pairs)
    assert restarted.producer._task == first.names[4]


def test_other_producers_have_no_tasks(tmp_path: Path) -> None:
    plan = Plan("toy", producers=("sweep",), out=tmp_path)
    assert tasks_of(plan, make_producer(plan, OPEN), 1, 0) is None
    assert not plan.finite


def test_pairs_are_found_behind_a_check_and_are_not_divided_among_targets() -> None:
    pairs = make_producer(Plan("toy", producers=("pairs",), ops=OPS, checks=("state",)), OPEN)
    assert isinstance(pairs, Assigned)
    assert isinstance(finite_part(pairs), Pairs)
    several = Plan("toy", ("reference",), producers=("pairs",), ops=OPS)
    assert not isinstance(make_producer(several, OPEN, OPEN), Choosing)


def test_pairs_must_be_the_only_producer() -> None:
    for producers in (("pairs", "sweep"), ("strict", "pairs{ops=Add}"), ("pairs", "pairs")):
        with pytest.raises(UsageError, match="'pairs' must be the only one"):
            Plan("toy", producers=producers).producer_specs()
    with pytest.raises(UsageError, match="must be the only one"):
        Plan("toy", producers=("pairs",), corpus=("all",)).producer_specs()


def test_without_a_limit_the_campaign_goes_on_to_its_end() -> None:
    assert fuzz_plan(GIVEN).seconds is None
    assert fuzz_plan({**GIVEN, "seconds": 60.0}).seconds == 60.0
    assert fuzz_plan({**GIVEN, "producers": ("sweep",)}).seconds == 300.0
