"""Collections: good models are cut, bad ones said in a line, and what is kept reads back the same."""

import json
from pathlib import Path

import numpy as np
import pytest
from block_models import blocks
from observing import seen

from miscompile.base.errors import StoreError, UsageError
from miscompile.base.rng import stream
from miscompile.graph.emit import emit
from miscompile.graph.equality import difference
from miscompile.producers.slices import collection
from miscompile.producers.slices.collection import INDEX, Collection, collect, keep, kept, models_below
from miscompile.producers.slices.slices import SliceLimits, kind_of, slices


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collection, "observed", lambda model, rng, seconds: seen(model))


def small_collection() -> Collection:
    seeds = [
        s for name, model in blocks().items() for s in slices(seen(model), name, SliceLimits(3, 5), stream(0, name))
    ]
    return Collection(tuple(seeds), 3, ("bad.onnx is skipped: it is empty",), ("a note",))


def test_a_collection_is_kept_to_the_bit(tmp_path: Path) -> None:
    before = small_collection()
    keep(before, tmp_path / "slices")
    after = kept(tmp_path / "slices")
    assert (after.models, after.skipped, after.notes) == (before.models, before.skipped, before.notes)
    assert len(after.seeds) == len(before.seeds)
    for one, other in zip(before.seeds, after.seeds, strict=True):
        assert (one.source, one.opset, one.ranges) == (other.source, other.opset, other.ranges)
        assert difference(one.graph, other.graph) is None
        assert one.pinned.keys() == other.pinned.keys()
        assert all(value.same(other.pinned[name]) for name, value in one.pinned.items())


def test_a_damaged_folder_is_said(tmp_path: Path) -> None:
    keep(small_collection(), tmp_path)
    next(tmp_path.glob("*.onnx")).unlink()
    with pytest.raises(StoreError, match="damaged"):
        kept(tmp_path)
    (tmp_path / INDEX).write_text(json.dumps({"format": 0}))
    with pytest.raises(StoreError, match="another version"):
        kept(tmp_path)


def test_the_summary_counts_models_slices_and_operators() -> None:
    found = small_collection()
    assert found.summary() == f"{len(found.seeds)} slices of 3 models, with {len(found.operators)} operators"
    assert found.operators["Softmax"] > 0


def test_a_folder_without_models_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("nothing")
    with pytest.raises(UsageError, match=r"no \*\.onnx file"):
        models_below(tmp_path)


@pytest.mark.usefixtures("in_this_process")
def test_bad_files_are_skipped_with_a_line_each(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    for name, model in blocks().items():
        (tmp_path / "deep" / f"{name}.onnx").write_bytes(emit(model))
    (tmp_path / "empty.onnx").write_bytes(b"")
    (tmp_path / "noise.onnx").write_bytes(bytes(np.arange(200, dtype=np.uint8)))
    heard: list[str] = []
    found = collect(models_below(tmp_path), SliceLimits(), on_progress=heard.append)
    assert found.models == 3
    assert len(found.skipped) == 2
    assert all("\n" not in line and " is skipped: " in line for line in found.skipped)
    assert [line.partition(" ")[0] for line in found.skipped] == ["empty.onnx", "noise.onnx"]
    assert len(heard) == 5
    sources = {seed.source.partition("/")[0] for seed in found.seeds}
    assert sources == {"attention.onnx", "convolution.onnx", "cell.onnx"}


@pytest.mark.usefixtures("in_this_process")
def test_a_model_that_is_there_twice_gives_its_slices_once(tmp_path: Path) -> None:
    data = emit(blocks()["cell"])
    for name in ("a", "b"):
        (tmp_path / f"{name}.onnx").write_bytes(data)
    marks = [kind_of(seed) for seed in collect(models_below(tmp_path), SliceLimits()).seeds]
    assert len(set(marks)) == len(marks)


@pytest.mark.usefixtures("in_this_process")
def test_no_usable_model_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "empty.onnx").write_bytes(b"")
    with pytest.raises(UsageError, match=r"none of the models can be used: empty.onnx is skipped"):
        collect(models_below(tmp_path), SliceLimits())
