"""What `miscompile harvest` hands on: the limits that a source has when nothing is said, and those that are said."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from miscompile.cli.main import program
from miscompile.engine import coordinator
from miscompile.harvest.patterns import programs


@pytest.mark.parametrize(("words", "each"), [((), 3), (("--each", "2"), 2), (("--each", "7"), 7)])
def test_as_many_patterns_are_mined_as_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], each: int
) -> None:
    seen = mined(monkeypatch)
    told = CliRunner().invoke(program, ["harvest", "programs", "--out", str(tmp_path / "a"), "--on", "toy", *words])
    assert told.exit_code == 0, told.output
    assert seen == [each]


def mined(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let nothing be mined; return the list that gets the most patterns for each pass."""
    seen: list[int] = []

    def nothing(target: str, support: object, limit: float, passes: object, each: int, *_: object) -> list[Any]:
        seen.append(each)
        return []

    monkeypatch.setattr(programs, "mined", nothing)
    monkeypatch.setattr(coordinator, "probe_support", lambda *_: None)
    return seen
