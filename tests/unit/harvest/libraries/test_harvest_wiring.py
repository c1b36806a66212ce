"""What a harvest is begun from and what a migration takes of it: bases of constraints, and layers in sequences."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from miscompile.base.errors import UsageError
from miscompile.cli.harvesting import harvest_library
from miscompile.harvest.constraints import run
from miscompile.harvest.constraints.run import bases_in
from miscompile.harvest.libraries import keras, sources
from miscompile.harvest.libraries.children import Child, Harvested
from miscompile.instances.archive import Archive, read_archive, write_archive
from miscompile.instances.instance import Instance
from miscompile.instances.sequence import in_sequence
from miscompile.instances.values import Drawn, Held
from miscompile.migration.plan import MigrationPlan
from miscompile.migration.run import wanted
from miscompile.targets.front_ends import FrontEnd

X = Drawn("float32", (2, 3))
DENSE = Instance("keras", "keras.layers.Dense", "module", (4,), {}, (X,), source="tests", origin="t")
RELU = Instance("keras", "keras.layers.ReLU", "module", (), {}, (X,), source="tests")


def relu(*shape: int) -> Instance:
    return Instance("onnx", "Relu", "node", inputs=(Drawn("float32", shape),), version=14)


@pytest.mark.parametrize("there", [True, False])
def test_constraints_begin_from_the_librarys_own_instances_where_there_are_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    known = tmp_path / "known.jsonl.gz"
    if there:
        write_archive(Archive("onnx", (relu(2),)), known)
    asked: list[Path | None] = []
    told: list[str] = []

    def harvest(library: str, on_progress: Callable[[str], None], seed: int, bases: Path | None = None) -> Archive:
        assert seed == 0
        asked.append(bases)
        return Archive(library, (relu(3),))

    monkeypatch.setattr(sources, "place_of", lambda library: known)
    monkeypatch.setattr(run, "harvest_constraints", harvest)
    out = tmp_path / "out.jsonl.gz"
    assert harvest_library("onnx", "constraints", None, out, 1.0, told.append, as_json=True) == 0
    assert read_archive(out).instances == (relu(3),)
    assert asked == [known if there else None]
    assert bool(told) != there


def test_bases_are_few_and_small(tmp_path: Path) -> None:
    path = tmp_path / "known.jsonl.gz"
    small = [relu(size) for size in (1, 2, 3)]
    add = Instance("onnx", "Add", "node", inputs=(X, Held(X.tensor())), version=14)
    write_archive(Archive("onnx", (relu(1 << 8, 1 << 8), *small, add)), path)
    assert bases_in(path) == {"Relu": small[:2], "Add": [add]}
    assert (add.elements(), relu(1 << 8, 1 << 8).elements()) == (12, 1 << 16)
    with pytest.raises(UsageError):
        bases_in(tmp_path / "none")


def test_keras_harvests_give_layers_in_sequences_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def child(child: Child, harvested: Harvested, name: str) -> None:
        harvested.instances += [DENSE, DENSE, RELU]

    monkeypatch.setattr(keras, "run_child", child)
    monkeypatch.setattr(keras, "need", lambda packages, what: None)
    archive = keras.harvest_keras(lambda text: None, [tmp_path / "layers_test.py"])
    chained = [replace(in_sequence(one), source="sequential") for one in (DENSE, RELU)]
    assert archive.instances == (DENSE, RELU, *chained)
    assert archive.figures["instances"] == 4


def test_older_archives_of_keras_lack_sequences_and_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "versions", lambda about: {"keras": "3.0"})
    now = sources.place_of("keras")
    monkeypatch.setattr(sources, "FORMATS", {**sources.FORMATS, "keras": 1})
    assert sources.place_of("keras") != now


@pytest.mark.parametrize("name", ["keras.layers.Dense", "Dense"])
def test_who_asks_for_a_layer_gets_it_in_sequences_as_well(tmp_path: Path, name: str) -> None:
    chained = [in_sequence(one) for one in (DENSE, RELU)]
    path = tmp_path / "keras.jsonl.gz"
    write_archive(Archive("keras", (DENSE, RELU, *chained)), path)
    front = FrontEnd("keras", "xla{via=keras}")

    def asked(operator: str) -> tuple[Instance, ...]:
        plan = MigrationPlan((front,), tmp_path / "out", instances=(path,), operators=(operator,))
        return wanted(plan, "keras", lambda text: None)

    assert asked(name) == (DENSE, chained[0])
    assert asked("keras.Sequential") == tuple(chained)


def test_the_limit_of_a_test_file_holds_for_the_librarys_own_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[float] = []

    def child(child: Child, harvested: Harvested, name: str) -> None:
        limits.append(child.seconds)
        harvested.instances.append(RELU)

    monkeypatch.setattr(keras, "run_child", child)
    monkeypatch.setattr(keras, "need", lambda packages, what: None)
    monkeypatch.setattr(keras, "own_tests", lambda: [tmp_path / "relu_test.py"])
    out = tmp_path / "keras.jsonl.gz"
    assert harvest_library("keras", "tests", None, out, 7.0, lambda text: None, as_json=True) == 0
    assert limits == [7.0]
