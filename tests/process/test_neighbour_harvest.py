"""Harvests of neighbours in child processes: of a made-up library that dies, and of onnx's own tests."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from miscompile.cli.main import program
from miscompile.core.tensor import tensor
from miscompile.harvest.neighbours import run
from miscompile.instances.archive import Archive, read_archive, write_archive
from miscompile.instances.classes import OPERATOR, classes_beside, read_classes
from miscompile.instances.code import digest_of
from miscompile.instances.instance import Instance
from miscompile.instances.values import Held

pytestmark = pytest.mark.process

LIBRARY = """
import os, sys
from dataclasses import replace
from miscompile.harvest.constraints.generate import Constraint, Operation
from miscompile.harvest.neighbours.call import Subject
from miscompile.harvest.neighbours.run import write
from miscompile.instances.values import tensor_of

X = Constraint("x", ("tensor",), True, dtypes=("float32", "int64"), place="called")
FLAG = Constraint("flag", ("int",), False, 0, values=(0, 1), place="attribute")

def subjects(tests):
    for api in ("First", "Second"):
        yield Subject(Operation("onnx", api, "node", (X, FLAG)), (False,)), [one for one in tests if one.api == api]

def refusal(instance):
    value = tensor_of(instance.inputs[0])
    if instance.api == "First" and 0 in value.shape:
        os.abort()
    if instance.version == 1:
        return "version 1 takes nothing"
    return "it takes float32 only" if value.dtype != "float32" else ""

def restate(instance):
    return [replace(instance, version=version) for version in (7, 1)] if instance.api == "Second" else []

write(sys.argv[1:], subjects, refusal, restate)
"""


def given(api: str) -> Instance:
    held = Held(tensor(np.arange(6, dtype=np.float32).reshape(2, 3)))
    return Instance("onnx", api, "node", inputs=(held,), version=18, source="tests", origin=f"test_{api}")


def harvest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "tuple[Archive, dict[str, dict[str, str]], list[str]]":
    (tmp_path / "made_up_library.py").write_text(LIBRARY)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setitem(run.MODULES, "onnx", "made_up_library")
    tests, told = tmp_path / "tests.jsonl.gz", list[str]()
    write_archive(Archive("onnx", (given("First"), given("Second"))), tests)
    archive, classes = run.harvest_neighbours("onnx", tests, told.append, seed=3, count=30)
    return archive, {digest: dict(found) for digest, found in classes.items()}, told


def test_a_neighbour_that_ends_the_library_costs_itself_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive, classes, told = harvest(tmp_path, monkeypatch)
    first, second = archive.figures["coverage"]
    assert (first["operator"], second["operator"]) == ("First", "Second")
    assert archive.figures["files"]["ran"] == 1
    assert archive.figures["files"]["died"] == len(told) >= 1
    shapes: dict[str, list[tuple[int, ...]]] = {"First": [], "Second": []}
    for one in archive.instances:
        (x,) = one.inputs
        assert isinstance(x, Held)
        shapes[one.api].append(x.tensor.shape)
    assert all(0 not in shape for shape in shapes["First"])
    assert any(0 in shape for shape in shapes["Second"])
    assert len(shapes["First"]) > 10
    why = {item["class"]: item["why"] for item in first["missing"]}
    assert why["empty"] == "it ends the process of the library"
    assert why["int64"] == "it takes float32 only"
    versions = {api: [one.version for one in archive.instances if one.api == api] for api in ("First", "Second")}
    assert set(versions["First"]) == {18}
    assert versions["Second"].count(7) == versions["Second"].count(18) == len(versions["Second"]) / 2
    digests = {digest_of(one) for one in archive.instances}
    assert digests | {digest_of(given("First")), digest_of(given("Second"))} == classes.keys()
    assert {found[OPERATOR] for found in classes.values()} == {"First", "Second"}


@pytest.mark.slow
def test_neighbours_of_onnx_go_through_a_migration(tmp_path: Path, own_onnx: Callable[[], Path]) -> None:
    own_onnx()
    out = tmp_path / "near.jsonl.gz"
    words = ["harvest", "onnx", "--kind", "neighbours", "--each", "6", "--seed", "1", "--out", str(out), "--json"]
    done = CliRunner().invoke(program, words)
    assert done.exit_code == 0, done.output
    archive = read_archive(out)
    rows = {row["operator"]: row for row in archive.figures["coverage"]}
    assert rows.keys() == {"Clip", "Softmax", "Split"}
    assert all(0 < row["kept"] <= 6 for row in rows.values()), rows
    assert {one.source for one in archive.instances} == {"neighbours"}
    classes = read_classes([out])
    assert {digest_of(one) for one in archive.instances} < classes.keys()
    assert classes_beside(out).exists()
    words = ["migrate", "--to", "toy", "--instances", str(out), "--seed", "1", "--workers", "1"]
    done = CliRunner().invoke(program, [*words, "--out", str(tmp_path / "migration")])
    assert done.exit_code == 0, done.output
    assert "pairs of classes of parameters were run" in done.output
    covered = json.loads((tmp_path / "migration" / "coverage.json").read_text())["onnx-toy"]
    assert {row["operator"] for row in covered} == {"Clip", "Softmax", "Split"}
    assert all(row["waiting"] >= 0 and row["ran"] + row["unsupported"] + row["waiting"] > 0 for row in covered)


@pytest.fixture
def own_onnx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Path]:
    """Return a function that makes a few instances the harvest of onnx's own tests."""
    from miscompile.harvest.libraries import sources

    def node(api: str, *inputs: object, version: int = 18, **kwargs: int) -> Instance:
        held = tuple(Held(tensor(np.asarray(one))) for one in inputs)
        return Instance("onnx", api, "node", kwargs=kwargs, inputs=held, version=version, source="tests", origin=api)

    def give() -> Path:
        floats = np.arange(6, dtype=np.float32).reshape(2, 3)
        instances = (
            node("Clip", floats, np.float32(0), version=13),
            node("Softmax", floats, axis=1, version=13),
            replace(node("Split", floats, np.array([1, 2]), axis=1), results=(True, True)),
        )
        place = tmp_path / "own.jsonl.gz"
        write_archive(Archive("onnx", instances), place)
        monkeypatch.setattr(sources, "place_of", lambda library: place)
        return place

    return give
