"""The crew of a campaign after its lanes were ended: nobody works, and nobody is listened to."""

import subprocess
from pathlib import Path

import pytest

from miscompile.campaign.crew import Crew
from miscompile.campaign.lane import Orders
from miscompile.campaign.plan import Plan


def test_killed_lanes_do_not_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt that comes while the last findings are examined must find nobody to wait for."""
    orders = Orders(Plan("toy"), (), 0, 0, 0, None, {})
    sleeper = subprocess.Popen(["sleep", "60"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    monkeypatch.setattr(Crew, "_spawn", lambda self, orders: sleeper)
    crew = Crew(tmp_path / "lanes.log")
    crew.start(orders)
    assert crew.working == 1
    crew.kill()
    assert crew.working == 0
    assert sleeper.poll() is not None
