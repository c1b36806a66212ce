"""A harvest that was interrupted is never taken for the whole."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from miscompile.base.errors import UsageError
from miscompile.cli.harvesting import harvest_library
from miscompile.harvest.libraries import sources
from miscompile.instances.archive import Archive, read_archive, write_archive

WHOLE = Archive("onnx", (), {}, {"stopped": False})
PART = Archive("onnx", (), {}, {"stopped": True})


def silent(text: str) -> None:
    del text


@pytest.fixture
def harvests(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Archive], Path]:
    """Return a function that makes the harvest of onnx give an archive, and says where that is kept."""

    def give(archive: Archive) -> Path:
        place = tmp_path / "onnx.jsonl.gz"
        monkeypatch.setattr(sources, "place_of", lambda library: place)
        monkeypatch.setattr(sources, "harvest_onnx", lambda on_progress: archive)
        return place

    return give


def test_the_first_use_keeps_what_it_harvested(harvests: Callable[[Archive], Path]) -> None:
    place = harvests(WHOLE)
    assert sources.own_instances("onnx", silent) == WHOLE
    assert read_archive(place).figures == WHOLE.figures


def test_an_interrupted_first_use_keeps_nothing(harvests: Callable[[Archive], Path]) -> None:
    place = harvests(PART)
    with pytest.raises(KeyboardInterrupt):
        sources.own_instances("onnx", silent)
    assert not place.exists()
    with pytest.raises(UsageError, match="no instances"):
        read_archive(place)


def test_an_interrupted_harvest_leaves_an_older_one(harvests: Callable[[Archive], Path], tmp_path: Path) -> None:
    place = harvests(PART)
    write_archive(WHOLE, place)
    with pytest.raises(KeyboardInterrupt):
        harvest_library("onnx", "tests", None, None, 1.0, silent, as_json=True)
    assert not read_archive(place).stopped
    named = tmp_path / "part.jsonl.gz"
    assert harvest_library("onnx", "tests", None, named, 1.0, silent, as_json=True) == 0
    assert read_archive(named).stopped


def test_a_harvest_that_was_cut_short_is_used_but_not_kept(harvests: Callable[[Archive], Path]) -> None:
    cut = replace(WHOLE, figures={"files": {"died": 1}, "notes": ["the database died: killed"]})
    place = harvests(cut)
    told: list[str] = []
    assert sources.own_instances("onnx", told.append) == cut
    assert not place.exists()
    assert "the database died: killed" in told
