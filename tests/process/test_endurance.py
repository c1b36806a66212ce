"""A campaign that goes on for long: lanes are replaced, and the size of its folder is bounded."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from campaigns import Start, all_gone

from miscompile.base.child import Conversation
from miscompile.engine import supervisor
from miscompile.engine.lane import RETIRED, Orders
from miscompile.engine.plan import Plan
from miscompile.engine.supervisor import LaneSupervisor

pytestmark = pytest.mark.process


def test_a_retired_lane_is_continued_where_it_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []

    class Scripted(Conversation):
        """A lane that tests two cases and retires; the third in a row has reached its quota."""

        def __init__(self, command: object, **_: object) -> None:
            status = RETIRED if len(begun) < 2 else 0
            super().__init__(["sh", "-c", f"read orders; echo '{{\"next\": {2 * len(begun) + 2}}}'; exit {status}"])

        def offer(self, data: bytes) -> bool:
            if data:  # without new data, the rest of earlier offers is written
                begun.append(first_of(data))
            return super().offer(data)

    monkeypatch.setattr(supervisor, "Conversation", Scripted)
    lanes = LaneSupervisor(tmp_path / "lanes.log")
    lanes.start(Orders(Plan("toy"), (), 0, 0, 0, None))
    said: list[Mapping[str, Any]] = []
    while lanes.working:
        said += lanes.messages(10.0)
    lanes.kill()
    assert begun == [0, 2, 4]
    assert [message["next"] for message in said] == [2, 4, 6]
    assert lanes.deaths == 0


def first_of(orders: bytes) -> int:
    """The first case of these orders."""
    return int(orders.partition(b'"first": ')[2].partition(b",")[0])


def test_a_lane_that_says_nothing_is_killed_and_restarted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []

    class Scripted(Conversation):
        """A lane that hangs; the one after it ends."""

        def __init__(self, command: object, **_: object) -> None:
            begun.append(len(begun))
            super().__init__(["sh", "-c", "read orders; exec sleep 60" if len(begun) == 1 else "read orders"])

    monkeypatch.setattr(supervisor, "Conversation", Scripted)
    monkeypatch.setattr(supervisor, "LONGEST_SILENCE", 0.2)
    lanes = LaneSupervisor(tmp_path / "lanes.log")
    lanes.start(Orders(Plan("toy"), (), 0, 0, 0, None))
    said: list[Mapping[str, Any]] = []
    while lanes.working:
        said += lanes.messages(0.5)
    lanes.kill()
    assert len(begun) == 2
    assert "died (status -9) and was restarted" in said[0]["notice"]


@pytest.mark.slow  # a campaign that fills its folder
def test_a_folder_above_its_limit_ends_the_campaign(tmp_path: Path, start: Start) -> None:
    campaign = start(tmp_path, "toy", "--time", "1500", "--workers", "1", "--limit-disk", "1K")
    campaign.until(lambda: bool(campaign.lanes))
    family = campaign.family
    code, _, stderr = campaign.end()
    assert code in (0, 4), stderr  # 4 if it ends before the first test
    assert "more than --limit-disk" in stderr
    assert " MB" in stderr
    all_gone(family)
