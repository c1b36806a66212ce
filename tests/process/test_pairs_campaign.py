"""A campaign of pairs: it ends by itself, and a resumed one makes the pairs that are left."""

import io
import json
from collections import Counter
from pathlib import Path
from typing import cast

import pytest
from campaigns import Start

from miscompile.engine.lane import Inbox, Lane, Orders
from miscompile.engine.plan import Plan
from miscompile.engine.wiring import make_pool, oracle_context
from miscompile.findings.tasks import TASKS, TaskLog
from miscompile.ops.support import Support
from miscompile.producers.pairs import Pairs
from miscompile.triage.attribution import Confirmer

pytestmark = pytest.mark.process

OPS = ("Add", "Relu", "Transpose", "MatMul", "Sin", "Acosh")


def finished(out: Path) -> Counter[str]:
    """Return the finished tasks of all lanes and sessions."""
    return Counter(line for path in (out / "tasks").glob("*-*") for line in path.read_text().splitlines())


class _OpenInbox:
    """Says nothing, and never ends the lane."""

    closed = False

    def lines(self) -> list[str]:
        return []


def test_the_death_of_a_lane_costs_the_task_that_it_was_at_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, out = Plan("toy", producers=("pairs",), ops=("Add", "Relu"), out=tmp_path, opset=21), io.StringIO()
    orders = Orders(plan, (Support(open=True),), lane=0, session=1, first=0, quota=None)
    begin = Pairs.begin

    def dying(self: Pairs, task: str) -> None:
        begin(self, task)
        if task == self.tasks[2]:
            raise SystemExit(9)

    monkeypatch.setattr(Pairs, "begin", dying)
    log = TaskLog(tmp_path / TASKS)
    with make_pool(plan, 2) as pool, make_pool(plan) as second:
        lane = Lane(orders, pool, Confirmer(second, oracle_context(plan), plan.seed), cast("Inbox", _OpenInbox()), out)
        assert lane.tasks is not None
        names = lane.tasks.names
        log.expect(names)
        with pytest.raises(SystemExit):
            lane.run()
    places = [(said["next"], said["lost"]) for said in map(json.loads, out.getvalue().splitlines())]
    assert places == [(0, 1), (1, 1), (2, 1)]
    assert log.left(names) == names[2:]


@pytest.mark.slow
def test_two_lanes_and_a_resumed_campaign_make_every_pair_twice(tmp_path: Path, start: Start) -> None:
    out = tmp_path / "out"
    words = ("toy", "--producer", "pairs", "--ops", ",".join(OPS), "--dtypes", "float32", "--seed", "3")
    code, _, stderr = start(out, *words, "--workers", "2", "--tests", "20").end(120)
    assert code == 0, stderr
    assert "72 of 72 tasks are left" in stderr
    assert 0 < len(finished(out)) <= 20

    code, shown, stderr = start(out, "toy", "--resume", "--workers", "2").end(120)
    assert code == 0, stderr
    ends = finished(out)
    assert set(ends.values()) == {1}
    expected = {f"{one} {other} {turn}" for one in OPS for other in OPS for turn in range(2)}
    assert {line.removeprefix("made ").removeprefix("not drawn ") for line in ends} == expected
    assert {"not drawn Sin Acosh 0", "not drawn Sin Acosh 1"} <= set(ends)
    summary = json.loads((out / "summary.json").read_text())
    made = sum(line.startswith("made ") for line in ends)
    assert summary["tasks"] == {"total": 72, "made": made, "not_drawn": 72 - made}
    assert summary["tests"] == made
    assert "none left" in shown
