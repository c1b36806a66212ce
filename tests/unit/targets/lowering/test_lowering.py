import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from miscompile.base.errors import SpecError
from miscompile.graph.read import read
from miscompile.targets.lowering.program import UnloweredError, lower
from miscompile.targets.lowering.table import Table, load

sys.path.insert(0, str(Path(__file__).parent))


def table() -> Table:
    return load("sample_lowerings")


def program(text: str) -> tuple[str, Any]:
    model = onnx.parser.parse_model(text)
    lowered = lower(read(model.SerializeToString()), table())
    space: dict[str, Any] = {"np": np, **{name: value.array for name, value in lowered.constants.items()}}
    exec(lowered.source, space)
    return lowered.source, space["program"]


HEAD = '<ir_version: 8, opset_import: ["" : 18]>'


def test_a_graph_becomes_a_function_of_its_inputs() -> None:
    source, function = program(
        HEAD
        + """g (float[2,3] x, float[2,3] in) => (float[2,3] y, int64[6] z)
        <float[2,3] np = {1,2,3,4,5,6}, int64[1] shape = {6}> {
            t = Sub(x, np)
            y = Relu(t)
            u = Add(y, in)
            v = Reshape(u, shape)
            z = Cast<to = 7>(v)
        }"""
    )
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    y, z = function(x, x)
    assert np.array_equal(y, np.zeros((2, 3), np.float32))
    assert z.dtype == np.int64
    assert z.tolist() == [0, 1, 2, 3, 4, 5]
    assert "reshape(u, (6,))" in source
    assert "->" not in source
    assert "Another" not in source


def test_only_what_is_used_stands_in_the_source() -> None:
    source, _ = program(HEAD + "g (float[2] x) => (float[2] y) { y = Cast<to = 1>(x) }")
    assert "def typed(x, to)" in source
    assert "TYPES = " in source
    assert "def relu" not in source


def test_several_results_and_functions() -> None:
    text = """<ir_version: 8, opset_import: ["" : 18, "local" : 1]>
    g (float[4] x) => (float[2] a, float[2] b) { y = local.twice(x)  a, b = Split<num_outputs = 2>(y) }
    <domain: "local", opset_import: ["" : 18]> twice (x) => (y) { y = Add(x, x) }"""
    _, function = program(text)
    a, b = function(np.array([1, 2, 3, 4], np.float32))
    assert a.tolist() == [2, 4]
    assert b.tolist() == [6, 8]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("g (float[2] x) => (float[2] y) { y = Abs(x) }", "operator Abs"),
        ("g (float[2] x, int64[1] s) => (float[2] y) { y = Reshape(x, s) }", "operand 1 of Reshape"),
        ("g (float[2] x) => (float[2] y) { y = Relu<odd = 1>(x) }", "attribute odd"),
        ("g (float[2] x) => (float[2] y) { y = Relu() }", "without a required operand"),
        ('g (float[2] x) => (float[2] y) { y = Add(x, "") }', "without a required operand"),
        ('g (float[2] x) => (float[2] y) { y = Max(x, "") }', "without a required operand"),
    ],
)
def test_what_has_no_lowering_is_said(text: str, reason: str) -> None:
    model = onnx.parser.parse_model(HEAD + text)
    with pytest.raises(UnloweredError, match=reason):
        lower(read(model.SerializeToString()), table())


def test_a_name_defined_twice_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "doubled_lowerings"
    place.mkdir()
    for name in ("__init__", "one", "two"):
        (place / f"{name}.py").write_text("" if name == "__init__" else "def same(x):\n    return x\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(SpecError, match="same twice"):
        load("doubled_lowerings")
