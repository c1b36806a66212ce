"""The hooks on real compilers: each sees what a small test gives to the compiler, with the pass where that is said."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from miscompile.graph.read import load
from miscompile.harvest.patterns.pairs import Gathered
from miscompile.harvest.patterns.suites import SUITES, run_suite

pytestmark = [pytest.mark.process, pytest.mark.compiler]

MODEL = """
import onnx.parser
MODEL = onnx.parser.parse_model('''<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 3] x) => (float[2, 3] y) <float zero = {0.0}> { t = Add(x, zero) y = Relu(t) }''')
"""

ONNXRUNTIME = """
import onnxruntime
def test_bytes_and_path(tmp_path):
    onnxruntime.InferenceSession(MODEL.SerializeToString())
    MODEL.graph.node[1].op_type = "Tanh"
    onnx.save(MODEL, tmp_path / "m.onnx")
    onnxruntime.InferenceSession(str(tmp_path / "m.onnx"))
    try:
        onnxruntime.InferenceSession(str(tmp_path / "absent.onnx"))
    except Exception:
        pass
"""

ONNXSCRIPT = """
import onnxscript.optimizer, onnxscript.rewriter
from onnxscript.rewriter import pattern
def test_rule():
    rule = pattern.RewriteRule(lambda op, x: op.Relu(op.Add(x, 0.0)), lambda op, x: op.Relu(x), name="AddOfZero")
    onnxscript.rewriter.rewrite(MODEL, [rule])
def test_no_rule():
    rule = pattern.RewriteRule(lambda op, x: op.Tanh(x), lambda op, x: x, name="NoTanhHere")
    onnxscript.rewriter.rewrite(MODEL, [rule])
"""

TORCH = """
import torch
from torch._inductor.fx_passes.pre_grad import linear_permute_fusion
from torch.fx.passes.shape_prop import ShapeProp

class Linear(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4, 8))
    def forward(self, x):
        return torch.nn.functional.linear(x, self.weight).permute(0, 2, 1)

class Other(torch.nn.Module):
    def forward(self, x):
        return x.relu()

def test_pass():
    for module in (Linear(), Other()):
        traced = torch.fx.symbolic_trace(module)
        ShapeProp(traced).propagate(torch.randn(2, 3, 8))
        linear_permute_fusion(traced)
"""


def harvested(name: str, text: str, tmp_path: Path) -> Gathered:
    if any(find_spec(module) is None for module, _ in SUITES[name].packages):
        pytest.skip(f"{name} is not installed")
    path = tmp_path / "test_it.py"
    path.write_text(text)
    gathered = run_suite(SUITES[name], [path], tmp_path / "out", 500.0, lambda _: None)
    assert gathered.sources == {"ran": 1}, gathered.notes
    assert set(gathered.tests) == {"passed"}
    return gathered


def operators(path: Path) -> tuple[str, ...]:
    return tuple(node.op for node in load(path).graph.nodes)


@pytest.mark.slow  # a suite in a process of its own
def test_sessions_of_onnxruntime_are_seen(tmp_path: Path) -> None:
    gathered = harvested("onnxruntime", MODEL + ONNXRUNTIME, tmp_path)
    assert [operators(pair.model) for pair in gathered.pairs] == [("Add", "Relu"), ("Add", "Tanh")]
    assert {(pair.named, pair.changed) for pair in gathered.pairs} == {("", None)}
    assert sum(gathered.left.values()) == 1, "the file that is not there"


def test_rules_of_onnxscript_are_seen_with_their_names(tmp_path: Path) -> None:
    gathered = harvested("onnxscript", MODEL + ONNXSCRIPT, tmp_path)
    rules = {(pair.named, pair.changed) for pair in gathered.pairs if not pair.named.endswith("Pass")}
    assert rules == {("AddOfZero", True), ("NoTanhHere", False)}
    assert all(operators(pair.model) == ("Add", "Relu") for pair in gathered.pairs if pair.named == "AddOfZero")


def test_passes_of_inductor_are_seen_when_they_change_a_graph(tmp_path: Path) -> None:
    gathered = harvested("inductor", TORCH, tmp_path)
    (pair,) = gathered.pairs
    assert (pair.named, pair.changed) == ("linear_permute_fusion", True)
    assert pair.test == "test_it.py::test_pass"
    found = operators(pair.model)
    assert "MatMul" in found or "Gemm" in found
    assert found[-1] == "Transpose"
