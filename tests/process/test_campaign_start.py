"""A campaign writes its folder when it can start, and not before."""

import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

from miscompile.base.errors import ExecutionError
from miscompile.engine import coordinator
from miscompile.engine.plan import Plan

pytestmark = pytest.mark.process


def test_a_target_that_cannot_be_probed_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> None:
        raise ExecutionError("the compiler ends at once")

    monkeypatch.setattr(coordinator, "support_of", failing)
    with pytest.raises(ExecutionError, match="ends at once"):
        coordinator.fuzz(Plan("toy", out=tmp_path / "out", tests=1, workers=1), [])
    assert not (tmp_path / "out").exists()


def test_a_probe_leaves_half_of_a_short_campaign_for_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float | None] = []

    def support_of(*words: object) -> None:
        seen.append(cast("float | None", words[-1]))
        raise ExecutionError("enough")

    monkeypatch.setattr(coordinator, "support_of", support_of)
    for seconds in (4.0, 3600.0, None):
        with pytest.raises(ExecutionError, match="enough"):
            coordinator.fuzz(Plan("toy", out=tmp_path / "out", seconds=seconds, tests=None, workers=1), [])
    assert seen == [2.0, 120.0, 120.0]


def test_a_lane_that_is_stopped_before_it_has_its_orders_ends_well() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "miscompile.engine.lane"],
        input=b'{"plan": ',
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, b"")
