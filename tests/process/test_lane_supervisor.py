"""The supervisor of a campaign's lanes after they were killed: no lane works, and none is read."""

import selectors
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from miscompile.base.child import Conversation
from miscompile.base.errors import ExecutionError
from miscompile.engine.coordinator import fuzz
from miscompile.engine.lane import Orders
from miscompile.engine.plan import Plan
from miscompile.engine.supervisor import LaneSupervisor


def test_killed_lanes_do_not_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt that comes while the last findings are examined must find nobody to wait for."""
    orders = Orders(Plan("toy"), (), 0, 0, 0, None)
    sleeper = Conversation(["sleep", "60"])
    monkeypatch.setattr(LaneSupervisor, "_spawn", lambda self, orders: sleeper)
    supervisor = LaneSupervisor(tmp_path / "lanes.log")
    supervisor.start(orders)
    assert supervisor.working == 1
    supervisor.kill()
    assert supervisor.working == 0
    assert sleeper.end() == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize("limits", [{"seconds": 1.5}, {"seconds": 30.0, "tests": 20}])
def test_a_campaign_whose_lanes_do_nothing_but_die_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: dict[str, Any]
) -> None:
    """It is over before any lane has died often enough to be given up, or past the last of its tests."""

    def dying(self: LaneSupervisor, orders: Orders) -> Conversation:
        over = orders.quota is not None and orders.first >= orders.quota
        process = Conversation(["sh", "-c", f"sleep 0.2; exit {0 if over else 9}"])
        self._selector.register(process, selectors.EVENT_READ, orders.lane)
        return process

    monkeypatch.setattr(LaneSupervisor, "_spawn", dying)
    plan = Plan("toy", out=tmp_path / "out", workers=2, **limits)
    with pytest.raises(ExecutionError, match=r"the lanes died \d+ times in 0 tests; .*lanes\.log says more"):
        fuzz(plan, [])


@pytest.mark.parametrize(
    ("code", "said"), [(1, "(status 1: KeyError: 'x')"), (9, "(status 9)")], ids=["uncaught error", "other status"]
)
def test_the_notice_of_a_death_names_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, said: str
) -> None:
    log = tmp_path / "lanes.log"

    def dying(self: LaneSupervisor, orders: Orders) -> Conversation:
        log.write_text("Traceback (most recent call last):\n  ...\nKeyError: 'x'\n")
        process = Conversation(["sh", "-c", f"exit {code}"])
        self._selector.register(process, selectors.EVENT_READ, orders.lane)
        return process

    monkeypatch.setattr(LaneSupervisor, "_spawn", dying)
    supervisor = LaneSupervisor(log)
    supervisor.start(Orders(Plan("toy"), (), 0, 0, 0, None))
    notice = next(supervisor.messages(10.0))["notice"]
    assert said in notice
    assert notice.endswith(f"and was restarted; see {log}")
    supervisor.kill()


@pytest.mark.parametrize(("said", "first"), [('{"next": 5}', 9), ('{"next": 5, "lost": 1}', 6)], ids=["ahead", "alone"])
def test_a_restarted_lane_skips_the_cases_that_may_have_killed_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, first: int
) -> None:
    begun: list[int] = []

    def dying(self: LaneSupervisor, orders: Orders) -> Conversation:
        begun.append(orders.first)
        process = Conversation(["sh", "-c", f"echo '{said}'; exit 9" if len(begun) == 1 else "exit 0"])
        self._selector.register(process, selectors.EVENT_READ, orders.lane)
        return process

    monkeypatch.setattr(LaneSupervisor, "_spawn", dying)
    supervisor = LaneSupervisor(tmp_path / "lanes.log")
    supervisor.start(Orders(Plan("toy"), (), 0, 0, 0, None))
    while supervisor.working:
        list(supervisor.messages(10.0))
    supervisor.kill()
    assert begun == [0, first]


def test_a_lane_that_reads_nothing_holds_nobody_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It searches for the culprits of a hang, for example. Of all weights it then gets the first and the last."""
    reader = Conversation(["sh", "-c", "sleep 1; exec cat"])

    def reading(self: LaneSupervisor, orders: Orders) -> Conversation:
        self._selector.register(reader, selectors.EVENT_READ, orders.lane)
        return reader

    monkeypatch.setattr(LaneSupervisor, "_spawn", reading)
    supervisor = LaneSupervisor(tmp_path / "lanes.log")
    supervisor.start(Orders(Plan("toy"), (), 0, 0, 0, None))
    names, count = [f"technique-{number}/check" for number in range(5000)], 50
    begin = time.monotonic()
    for number in range(count):
        supervisor.divide(dict.fromkeys(names, float(number)))
    assert time.monotonic() - begin < 1
    heard: list[float] = []
    while not heard or heard[-1] < count - 1:
        heard += [message["weights"][names[0]] for message in supervisor.messages(0.05)]
        assert time.monotonic() - begin < 30
    assert heard == [0.0, count - 1]
    supervisor.kill()
