"""What hooks write down is read back; folders of models name passes; models and pieces are told apart."""

import json
from collections import Counter
from pathlib import Path

import pytest

from miscompile.base.errors import StoreError, UsageError
from miscompile.graph.emit import emit
from miscompile.graph.text.parser import parse_model
from miscompile.harvest.patterns.fragment_store import distinct
from miscompile.harvest.patterns.gather import gather_models
from miscompile.harvest.patterns.harvest import pattern_form_of
from miscompile.harvest.patterns.hooks.recording import MOST_BYTES, PairRecorder
from miscompile.harvest.patterns.pairs import LINES, Gathered, Pair, SuiteRecord, read_record
from miscompile.harvest.patterns.suites import files_of
from miscompile.ops.seed import Seed

MODEL = """ir 8 opset 17 graph g(%x: float32[2, 3]) -> (%y: float32[2, 3]) {{
  init %c: float32[] = [{constant}]
  %t = {op}(%x, %c)
  %y = Relu(%t)
}}"""


def model(op: str = "Mul", constant: float = 2.0) -> bytes:
    return emit(parse_model(MODEL.format(op=op, constant=constant)))


def written(folder: Path, data: bytes = b"") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / LINES).write_bytes(data)
    return folder


def test_what_is_recorded_is_read_back(tmp_path: Path) -> None:
    recorder = PairRecorder(tmp_path)
    recorder.test = "test_a.py::test_one"
    recorder.pair(model(), "FuseIt", changed=True)
    recorder.pair(model("Add"))
    recorder.left("no reason", "FuseIt")
    recorder.ran("test_a.py::test_one", "passed")
    recorder.write(exit=0)
    record = read_record(tmp_path)
    assert [(pair.named, pair.changed, pair.test) for pair in record.pairs] == [
        ("FuseIt", True, "test_a.py::test_one"),
        ("", None, "test_a.py::test_one"),
    ]
    assert record.pairs[0].model.read_bytes() == model()
    assert (record.tests, record.left) == ({"passed": 1}, {"no reason": 1})
    assert (record.ended, record.code) == (True, 0)


def test_a_pair_is_recorded_once_and_a_model_stored_once(tmp_path: Path) -> None:
    recorder = PairRecorder(tmp_path)
    for _ in range(3):
        recorder.pair(model(), "A", changed=True)
        recorder.pair(model(), "B", changed=True)
    assert len(read_record(tmp_path).pairs) == 2
    assert len(list(tmp_path.glob("*.onnx"))) == 1


def test_a_model_that_is_too_large_is_counted(tmp_path: Path) -> None:
    PairRecorder(tmp_path).pair(b"x" * (MOST_BYTES + 1), "A")
    record = read_record(tmp_path)
    assert record.pairs == []
    assert sum(record.left.values()) == 1


def test_a_line_that_was_cut_off_by_a_crash_is_left(tmp_path: Path) -> None:
    line = json.dumps({"ran": "t", "outcome": "passed"}).encode()
    record = read_record(written(tmp_path, line + b"\n" + line[:9]))
    assert record.tests == {"passed": 1}
    assert not record.ended


def test_a_child_that_said_nothing_has_an_empty_record(tmp_path: Path) -> None:
    assert read_record(tmp_path) == SuiteRecord()


@pytest.mark.parametrize("line", ["no json", "[]", '{"model": "a.onnx"}', '{"exit": "x"}', "{}"])
def test_a_damaged_record_is_an_error_that_names_the_line(tmp_path: Path, line: str) -> None:
    with pytest.raises(StoreError, match="line 2"):
        read_record(written(tmp_path, b'{"exit": 0}\n' + line.encode() + b"\n"))


def test_records_add_up() -> None:
    gathered = Gathered()
    for _ in range(2):
        gathered.add(SuiteRecord([Pair(Path("m"), "", None, "t")], Counter(passed=3), Counter(large=1)))
    assert (len(gathered.pairs), gathered.tests, gathered.left) == (2, {"passed": 6}, {"large": 2})


def test_folders_and_names_of_models_name_the_pass(tmp_path: Path) -> None:
    for name in ("GeluFusion/deep/a.onnx", "my_own/b.onnx", "mat_mul_add_fusion-2.onnx", "fusion.onnx", "dce.onnx"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(model())
    gathered = gather_models(tmp_path, ["fusion", "dce", "Gelu_fusion", "MatMulAddFusion", "AddFusion"])
    assert {pair.test: pair.named for pair in gathered.pairs} == {
        "GeluFusion/deep/a.onnx": "Gelu_fusion",
        "my_own/b.onnx": "my_own",
        "mat_mul_add_fusion-2.onnx": "MatMulAddFusion",
        "fusion.onnx": "",
        "dce.onnx": "",
    }


@pytest.mark.parametrize("name", ["none", "empty"])
def test_a_folder_without_models_is_a_usage_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"there is no"):
        gather_models(tmp_path / name, [])


def test_test_files_are_found_by_their_usual_names(tmp_path: Path) -> None:
    for name in ("test_a.py", "deep/b_test.py", "helper.py", "test_c.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    assert [path.name for path in files_of(tmp_path)] == ["b_test.py", "test_a.py"]
    assert files_of(tmp_path / "helper.py") == [tmp_path / "helper.py"]


@pytest.mark.parametrize("name", ["absent", "empty", "text.txt"])
def test_a_path_without_tests_is_a_usage_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.txt").write_text("")
    with pytest.raises(UsageError, match=r"text\.txt|there is no"):
        files_of(tmp_path / name)


def test_equal_models_are_one_source_with_the_passes_of_both(tmp_path: Path) -> None:
    renamed = model().replace(b"\x01y", b"\x01z")
    for name, data in (("a", model()), ("b", renamed), ("c", model("Add")), ("d", b"no model")):
        (tmp_path / name).write_bytes(data)
    pairs = [Pair(tmp_path / name, name.upper(), True, f"test_{name}") for name in "abcd"]
    pairs.append(Pair(tmp_path / "a", "LooksOnly", False, "test_a"))
    left = Counter[str]()
    found = distinct(pairs, left)
    assert [(one.origin, sorted(one.named)) for one in found] == [("test_a", ["A", "B"]), ("test_c", ["C"])]
    assert sum(left.values()) == 1


def test_pieces_are_told_apart_by_operators_and_attributes_not_by_sizes() -> None:
    def form(text: str) -> str:
        parsed = parse_model(text)
        return pattern_form_of(Seed("s", parsed.graph, parsed.opset))

    base = MODEL.format(op="Mul", constant=2.0)
    assert form(base) == form(base.replace("2, 3", "4, 5").replace("[2.0]", "[7.0]").replace("%t", "%other"))
    assert form(base) != form(base.replace("Relu", "Neg"))
    assert form(base) != form(base.replace("Relu(%t)", "LeakyRelu(%t) {alpha=0.5}"))
