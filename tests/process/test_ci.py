"""`miscompile ci` on the toy compiler: the same tests in every run, and a baseline that silences what it has."""

import json
import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from miscompile.findings.ledger_file import read_ledger

pytestmark = [pytest.mark.process, pytest.mark.slow]

WORDS = ("--check", "levels", "--tests", "120", "--workers", "1", "--triage-time", "20s", "--json")


def ci(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name != "GITHUB_ACTIONS"}
    command = [sys.executable, "-m", "miscompile", "ci", "toy{bugs=sub_commutes}", *WORDS, *words]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=600)


def test_a_baseline_silences_what_it_has(tmp_path: Path) -> None:
    first = ci(tmp_path, "--out", "a", "--junit", "a.xml")
    assert first.returncode == 1, first.stderr
    found = json.loads(first.stdout)
    assert found["tests"] == 120
    assert {tuple(one["culprits"]) for one in found["findings"]} == {("OperandOrdering",)}

    again = ci(tmp_path, "--out", "b", "--baseline", "ledger.toml", "--update-baseline")
    assert again.returncode == 0, again.stderr
    made = {"tests", "invalid", "unsupported", "judged"}
    assert {name: found[name] for name in made} == {name: json.loads(again.stdout)[name] for name in made}
    assert {one.signature.culprits for one in read_ledger(tmp_path / "ledger.toml")} == {("OperandOrdering",)}

    quiet = ci(tmp_path, "--out", "c", "--baseline", "ledger.toml", "--sarif", "c.sarif")
    assert quiet.returncode == 0, quiet.stderr
    [run] = json.loads((tmp_path / "c.sarif").read_text())["runs"]
    assert {one["baselineState"] for one in run["results"]} <= {"unchanged"}


def test_shards_make_the_tests_of_the_run(tmp_path: Path) -> None:
    shards = [ci(tmp_path, "--out", f"s{number}", "--shard", f"{number}/2") for number in (1, 2)]
    assert [json.loads(one.stdout)["tests"] for one in shards] == [60, 60]


def test_a_model_with_an_operator_that_the_compiler_lacks_is_not_tested(tmp_path: Path) -> None:
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "y")]
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Mine", ["a"], ["y"], domain="mine")]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:])
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / "model.onnx")
    words = ("check", "model.onnx", "--target", "toy", "--no-slices", "--tests", "4", "--workers", "1")
    done = subprocess.run(
        [sys.executable, "-m", "miscompile", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 4, done.stderr
    assert "Nothing was tested: none of 4 tests could be judged: 4 unsupported." in " ".join(done.stdout.split())
