"""The corpus on disk: what is added is there again, with its slices, their origin and the reasons for what is left."""

from pathlib import Path

import pytest
from onnx import TensorProto, helper

from miscompile.base.errors import UsageError
from miscompile.graph.emit import emit
from miscompile.graph.model import Model
from miscompile.graph.read import read
from miscompile.harvest.models import add as adding
from miscompile.harvest.models import cache, candidates
from miscompile.harvest.models.cutting import CONVERTED, modern, slices_of_model
from miscompile.producers.slices.slices import SliceLimits


@pytest.fixture(autouse=True)
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(cache, "corpus_folder", lambda: tmp_path / "corpus")
    return tmp_path / "corpus"


def chain(opset: int = 17, *ops: str) -> Model:
    names = ["x", *(f"v{place}" for place in range(len(ops or _USUAL)))]
    nodes = [helper.make_node(op, [names[place]], [names[place + 1]]) for place, op in enumerate(ops or _USUAL)]
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in (names[0], names[-1])]
    graph = helper.make_graph(nodes, "chain", infos[:1], infos[1:])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return read(proto.SerializeToString())


_USUAL = ("Relu", "Neg", "Abs", "Tanh")


def gate() -> Model:
    """A model that is one If, whose branches are chains."""
    branches = {}
    for name, op in (("then_branch", "Relu"), ("else_branch", "Sigmoid")):
        steps = [op, "Neg", "Abs"]
        values = ["x", *(f"{name}{place}" for place in range(3))]
        nodes = [helper.make_node(step, [values[place]], [values[place + 1]]) for place, step in enumerate(steps)]
        result = helper.make_tensor_value_info(values[-1], TensorProto.FLOAT, [2])
        branches[name] = helper.make_graph(nodes, name, [], [result])
    node = helper.make_node("If", ["c"], ["y"], **branches)
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [2]),
        helper.make_tensor_value_info("c", TensorProto.BOOL, []),
    ]
    graph = helper.make_graph([node], "gate", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return read(proto.SerializeToString())


def add(*paths: Path) -> list[str]:
    return [one.name for one in adding.add([str(path) for path in paths], lambda _: None, seconds=30)]


def test_a_folder_is_added_with_reasons(tmp_path: Path) -> None:
    place = tmp_path / "nets"
    place.mkdir()
    (place / "a.onnx").write_bytes(emit(chain()))
    (place / "again.onnx").write_bytes(emit(chain()))
    (place / "b.tflite").write_bytes(b"no matter")
    (place / "c.onnx").write_bytes(b"\xff\xff")
    assert add(place) == ["nets/a.onnx", "nets/again.onnx", "nets/b.tflite", "nets/c.onnx"]
    first, again, other, broken = (one.model for one in cache.models())
    assert (first.nodes, first.opset, first.operators["Tanh"], first.reason, first.whole) == (4, 17, 1, "", True)
    assert first.slices > 0
    assert (again.slices, again.reason) == (0, "the same file as nets/a.onnx")
    assert other.reason.startswith("TFLite")
    assert "no ONNX model" in broken.reason


def test_slices_name_the_model_and_its_operators(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(emit(chain()))
    add(path)
    found = cache.seeds_of_corpus(["net.onnx"], SliceLimits(), 3)
    assert all(seed.corpus for seed in found.seeds)
    origins = [seed.origin for seed in found.seeds if seed.origin is not None]
    assert len(origins) == len(found.seeds) > 0
    assert {one.model for one in origins} == {"net.onnx"}
    assert any(one.nodes[:2] == ("Relu v0", "Neg v1") for one in origins)
    again = cache.seeds_of_corpus(["net.onnx"], SliceLimits(), 3)
    assert [seed.source for seed in found.seeds] == [seed.source for seed in again.seeds]


def test_names_and_patterns_choose(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(emit(chain()))
    add(path)
    assert [one.model.name for one in cache.chosen(["n*"])] == ["net.onnx"]
    assert cache.chosen(["other"], required=False) == []
    with pytest.raises(UsageError, match="no model with slices is called other"):
        cache.chosen(["other"])


def test_a_model_that_is_gone_is_said(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(emit(chain()))
    add(path)
    found = cache.seeds_of_corpus(["net.onnx", "gone.onnx"], SliceLimits(), 0)
    assert found.skipped == ("gone.onnx is skipped: it is no longer in the corpus",)
    with pytest.raises(UsageError, match="gives no slices"):
        cache.seeds_of_corpus(["gone.onnx"], SliceLimits(), 0)


def test_an_unfinished_folder_does_not_count(corpus: Path) -> None:
    (corpus / "0123").mkdir(parents=True)
    (corpus / "0123" / "model.onnx").write_bytes(b"")
    assert cache.models() == []


def test_the_branches_of_an_if_are_cut_as_well() -> None:
    found = slices_of_model(gate(), "gate", SliceLimits(), seconds=30)
    operators = {op for seed in found.seeds for op in seed.operators}
    assert {"Relu", "Sigmoid"} <= operators


def test_old_opsets_are_converted() -> None:
    assert modern(chain(9)).opset == CONVERTED
    assert modern(chain(13)).opset == 13


def test_what_is_not_installed_is_said() -> None:
    with pytest.raises(UsageError, match="pip install no-such-package-here"):
        candidates.in_package("no-such-package-here")
    with pytest.raises(UsageError, match="there is no file or folder"):
        adding.candidates("./no/such.onnx", Path(), lambda _: None)
    with pytest.raises(UsageError, match="no architectures of 'zoo'"):
        adding.candidates("zoo:resnet", Path(), lambda _: None)


def test_the_models_of_onnx_are_found() -> None:
    found = candidates.in_package("onnx")
    assert sum(one.path.parent.name == "light" for one in found) >= 8
    assert all(one.package == "onnx" and one.form == "ONNX" for one in found)
