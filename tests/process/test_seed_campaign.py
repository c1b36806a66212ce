"""Campaigns that begin from a user's models: slices are cut once and kept, bad files are said, bugs are found."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from campaigns import COMMAND, Start, counters

from miscompile.findings import folder
from miscompile.graph.emit import emit
from miscompile.graph.text.parser import parse_model
from miscompile.producers.slices.collection import kept

pytestmark = pytest.mark.process

TARGET = "toy{bugs=sub_commutes}"

MODEL = """ir 10 opset 21 graph g(%x: float32["batch", 3], %m: float32["batch", 3]) -> (%y: float32["batch", 3]) {
  init %w: float32[3] = [0.5, -0.25, 0.75]
  %s = Sigmoid(%x)
  %d = Sub(%m, %s)
  %p = Mul(%d, %w)
  %r = Relu(%p)
  %y = Add(%r, %x)
}"""


def models(place: Path) -> Path:
    place.mkdir()
    (place / "gate.onnx").write_bytes(emit(parse_model(MODEL)))
    (place / "broken.onnx").write_bytes(b"no model")
    return place


def sources(out: Path) -> set[str]:
    stored = [folder.load(out, identifier) for identifier in folder.identifiers(out)]
    recipes = [(one.original or one.finding.case).recipe for one in stored]
    return {str(recipe.get("slice", "")).partition("/")[0] for recipe in recipes}


@pytest.mark.slow
def test_a_campaign_finds_bugs_in_slices_and_keeps_them(tmp_path: Path, start: Start) -> None:
    place, out = models(tmp_path / "models"), tmp_path / "out"
    words = ("--seed-models", str(place), "--producer", "seeded", "--slice-nodes", "2..4")
    code, _, stderr = start(out, TARGET, *words, "--tests", "60", "--seed", "4", "--workers", "1").end(120)
    assert code == 1, stderr
    assert "broken.onnx is skipped" in stderr
    assert "slices of 1 model, with" in stderr
    assert sources(out) == {"gate.onnx"}
    before = kept(out / "slices")
    assert all(2 <= len(seed.operators) <= 4 for seed in before.seeds)
    shutil.rmtree(place)
    resumed = start(out, TARGET, "--resume", "--tests", "20", "--workers", "1")
    assert resumed.end(120)[0] == 1
    assert counters(out)["tests"] == 80
    assert [seed.source for seed in kept(out / "slices").seeds] == [seed.source for seed in before.seeds]


@pytest.mark.slow
def test_a_folder_without_usable_models_ends_at_once(tmp_path: Path, start: Start) -> None:
    place, out = models(tmp_path / "models"), tmp_path / "out"
    (place / "gate.onnx").unlink()
    code, _, stderr = start(out, TARGET, "--seed-models", str(place), "--tests", "5").end()
    assert code == 2
    assert "none of the models can be used: broken.onnx is skipped" in stderr
    assert not out.exists()


@pytest.mark.slow
def test_check_tests_the_model_and_its_slices(tmp_path: Path, cache: Path) -> None:
    place, out = models(tmp_path / "models"), tmp_path / "out"
    words = ["check", str(place / "gate.onnx"), "--target", "toy", "--tests", "40", "--seed", "1", "--json"]
    done = subprocess.run(
        [*COMMAND, *words, "--workers", "1", "--out", str(out)],
        env={**os.environ, "XDG_CACHE_HOME": str(cache)},
        capture_output=True, text=True, check=False, timeout=180,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["tests"] == 40
    assert len(kept(out / "slices").seeds) > 2
