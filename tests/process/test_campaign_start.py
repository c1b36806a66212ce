"""A campaign writes its folder when it can start, and not before."""

from pathlib import Path

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
