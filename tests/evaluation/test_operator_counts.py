"""Counts of operators in tests of compilers: what is counted, from where, and the data that comes with the package."""

import json
import re
import subprocess
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import pytest

from evaluation.opera.counting import node_suites, occurrences
from evaluation.opera.counting.__main__ import count, main, to_json
from evaluation.opera.counting.checkout import checkout
from evaluation.opera.counting.recipes import node_suite, recipes
from miscompile.base.errors import UsageError
from miscompile.instances.instance import LIBRARIES
from miscompile.migration.ranking.counts import Counts, Source, counts_of, from_json
from miscompile.targets.registry import about, target_names

COUNTED = sorted(
    Path(str(entry))
    for name in target_names()
    for entry in resources.files(about(name).package).iterdir()
    if entry.name.startswith("counts-")
)

TORCH = """
import torch
from torch import nn
from torch._inductor import config
import torch.nn.functional as F
import numpy as np

class Model(nn.Module):
    def forward(self, x):
        y = F.relu(x).view(2, -1)
        np.add(1, 2)
        self.helper(y)
        config.patch()
        return torch.ops.aten.add_.Tensor(y, torch.float32), nn.Conv2d(1, 1, 1), "a".join([])

CASES = [(torch.abs, 1)]
"""


def test_torch_by_names_and_methods() -> None:
    assert dict(occurrences.torch_in_python(TORCH)) == {"relu": 1, "view": 1, "add": 1, "conv2d": 1, "abs": 1}


def test_databases_of_operators_by_their_names() -> None:
    text = 'DB = (TorchLibOpInfo("nn.functional.max_pool2d", f), TorchLibOpInfo("ops.aten.mean.dim", f).skip("mul"))'
    assert dict(occurrences.torch_in_database(text)) == {"maxpool2d": 1, "mean": 1}


KERAS = """
from keras.src import layers, testing
from keras.src.ops import numpy as knp
from keras.src.layers.core.dense import Dense

class AddTest(testing.TestCase):
    def test_add(self):
        self.run_layer_test(layers.Add, init_kwargs={})
        Dense(2)(knp.add(1, 2))

    @pytest.mark.requires_trainable_backend
    def test_train(self):
        layers.Conv2D(1)

    def test_other(self):
        knp.svd(1)
"""


def test_keras_without_the_tests_that_are_not_run() -> None:
    assert dict(occurrences.keras_in_python(KERAS, "a_test.py")) == {"add": 2, "dense": 1, "svd": 1}
    assert dict(occurrences.keras_in_python(KERAS, "a_test.py", ["AddTest::test_other"])) == {"add": 2, "dense": 1}


@pytest.mark.parametrize(
    ("counted", "text", "found"),
    [
        (occurrences.onnx_in_python, 'verify("Abs"); L = ["Add", "Add", "x"]; name == "Mul"', {"Abs": 1, "Add": 2}),
        (
            occurrences.onnx_in_cpp,
            'OpTester test("Gather", 11); Run<float>("Mul"); x["Sub"]; F("no");',
            {"Gather": 1, "Mul": 1},
        ),
        (occurrences.onnx_in_mlir, '%0 = torch.operator "onnx.Add"(%a)\n torch.operator "onnx.Add"', {"Add": 2}),
        (occurrences.onnx_in_prototxt, 'node {\n op_type: "Relu"\n name: "Add"\n}', {"Relu": 1}),
    ],
)
def test_onnx(counted: Callable[[str], dict[str, int]], text: str, found: dict[str, int]) -> None:
    assert dict(counted(text)) == found


def test_a_test_that_is_no_python_is_said() -> None:
    with pytest.raises(UsageError, match=r"a\.py is not valid Python"):
        occurrences.onnx_in_python("def", "a.py")


def test_suites_as_each_compiler_chooses_its_cases() -> None:
    of_tvm = node_suites.tvm('_INCLUDE_OPS = ["add", "min"]')
    assert [of_tvm(name) for name in ("test_add", "test_add_bcast", "test_addition", "test_min_int8")] == [
        True, True, False, True,
    ]  # fmt: skip
    with pytest.raises(UsageError, match="recipe must follow"):
        node_suites.tvm("x = 1")
    of_tinygrad = node_suites.tinygrad(
        "backend_test.exclude('test_gru_*')\nif weak:\n  backend_test.exclude('test_add')\n"
        "backend_test.exclude('FLOAT8')"
    )
    assert [of_tinygrad(name) for name in ("test_gru_defaults", "test_add", "test_cast_FLOAT8_to_INT")] == [
        False, True, False,
    ]  # fmt: skip
    of_onnxruntime = node_suites.onnxruntime(
        '{"current_failing_tests": ["^test_adagrad", // why\n ["opset10", "^test_mod"]], "failing_permanently": ["x$"]}'
    )
    assert [of_onnxruntime(name) for name in ("test_adagrad_multiple", "test_mod", "test_cast_FLOAT16_to_FLOAT")] == [
        False, True, False,
    ]  # fmt: skip


@pytest.mark.slow  # reads all cases of onnx
def test_the_suite_is_that_of_onnx() -> None:
    suite = node_suite()
    assert len(suite) > 1000
    assert suite["test_add_bcast"] == ("Add",)


def tinygrad_tree(folder: Path) -> Path:
    external = folder / "test" / "external"
    external.mkdir(parents=True)
    (external / "external_test_onnx_ops.py").write_text('one("Gather"); one("Gather"); one("Conv")\n')
    (external / "external_test_onnx_backend.py").write_text("backend_test.exclude('^(?!test_abs)')\n")
    return folder


def test_a_folder_is_counted(tmp_path: Path) -> None:
    found = count(tinygrad_tree(tmp_path), "tinygrad", "onnx")
    assert dict(found.uses) == {"Gather": 2, "Conv": 1}
    assert dict(found.suite) == {"Abs": 1}
    assert dict(found.total()) == {"Gather": 2, "Conv": 1, "Abs": 1}
    assert found.sources[0].files == 2
    assert found.sources[0].suite.endswith("1 cases")
    assert from_json(json.loads(json.dumps(to_json(found)))) == found


def test_of_a_git_repository_the_commit_is_counted(tmp_path: Path) -> None:
    folder = tinygrad_tree(tmp_path / "tinygrad")
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "one"]):
        subprocess.run(
            [*git, *command], check=True, env={"GIT_COMMITTER_DATE": "2026-01-02T00:00:00Z", "PATH": "/usr/bin:/bin"}
        )
    (folder / "test" / "external" / "external_test_onnx_ops.py").write_text('one("Add")\n')
    for place in (folder, folder / ".git"):
        found = count(place, "tinygrad", "onnx")
        assert dict(found.uses) == {"Gather": 2, "Conv": 1}
        assert re.fullmatch("[0-9a-f]{40}", found.sources[0].commit)
        assert found.sources[0].date == "2026-01-02"
    assert [name for name, _ in checkout(folder).files(re.compile("no/such"))] == []


def test_the_command_writes_and_adds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "test" / "onnx").mkdir(parents=True)
    (tmp_path / "test" / "onnx" / "test_ops.py").write_text("import torch\ntorch.abs(1)\n")
    (tmp_path / "tests" / "function_libs" / "torch_lib").mkdir(parents=True)
    (tmp_path / "tests" / "function_libs" / "torch_lib" / "ops_test_data.py").write_text('OpInfo("abs", f)\n')
    out = tmp_path / "counts.json"
    asked = [str(tmp_path), "onnxruntime", "torch", "--out", str(out), "--commit", "v1"]
    assert main(asked) == 0
    more = [*asked, "--add", "--repository", "pytorch/pytorch", "--from", "someone/pytorch"]
    assert main(more) == 0
    found = from_json(json.loads(out.read_text()))
    assert dict(found.uses) == {"abs": 2}
    assert [(source.repository, source.commit) for source in found.sources] == [
        ("microsoft/onnxscript", "v1"),
        ("someone/pytorch", "v1"),
    ]
    assert main(more) == 2
    assert main([str(tmp_path), "tvm", "keras", "--out", str(out)]) == 2
    assert main([str(tmp_path), "tvm", "torch", "--out", str(out)]) == 2
    assert main([str(tmp_path / "none"), "tvm", "torch", "--out", str(out)]) == 2
    said = capsys.readouterr().err.splitlines()
    assert "counted already" in said[0]
    assert "tvm keras" not in said[1]
    assert "are not known" in said[1]
    assert "is it apache/tvm?" in said[2]
    assert "no folder" in said[3]


def test_damaged_counts_are_refused() -> None:
    good = to_json(Counts("tvm", "onnx", (Source("r", "c", "d", 1, "x"),), {"Add": 1}, {}))
    for broken in ({**good, "schema": 0}, {**good, "uses": {"Add": "many"}}, {"schema": 1}):
        with pytest.raises(UsageError):
            from_json(broken)


@pytest.mark.parametrize("path", COUNTED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_data_says_where_it_is_from(path: Path) -> None:
    counts = from_json(json.loads(path.read_text("utf-8")))
    assert path.parts[-2:] == (counts.compiler, f"counts-{counts.library}.json")
    assert (counts.compiler, counts.library) in recipes()
    assert counts.compiler in target_names()
    assert counts.library in LIBRARIES
    assert sum(counts.total().values()) > 100
    for source in counts.sources:
        assert source.commit
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", source.date)
        assert source.files > 0
    options = "".join(f"{{via={via}}}" for via in list(about(counts.compiler).fronts)[:1])
    assert counts_of(f"{counts.compiler}==1.0{options}", counts.library) == counts.total()


def test_there_is_data_and_what_was_not_counted_is_empty() -> None:
    assert len(COUNTED) >= 8
    assert counts_of("toy", "onnx") == {}
