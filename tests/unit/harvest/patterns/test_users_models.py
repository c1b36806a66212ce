"""Programs to mine from a user's models."""

from pathlib import Path

import onnx
import pytest

from miscompile.base.errors import UsageError
from miscompile.graph.model import TensorType
from miscompile.graph.read import read
from miscompile.harvest.patterns.programs import of_models

TEXT = """
<ir_version: 8, opset_import: ["" : 17]>
agraph (float[N, 4] x) => (float[N, 4] y) { y = Relu(x) }
"""


def test_models_are_given_fixed_sizes_and_broken_ones_are_told(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    onnx.save(onnx.parser.parse_model(TEXT), tmp_path / "below" / "good.onnx")
    (tmp_path / "broken.onnx").write_bytes(b"nothing of the kind")
    said: list[str] = []
    cases = list(of_models(tmp_path, 1, said.append))
    assert {case.recipe["source"] for case in cases} == {"good.onnx"}
    for case in cases:
        (given,) = read(case.program.payload).graph.inputs
        assert isinstance(given.type, TensorType)
        assert given.type.shape == case.feeds[0][0].shape
    assert len(said) == 1
    assert "broken.onnx is left out" in said[0]
    assert len(list(of_models(tmp_path / "below" / "good.onnx", 1, said.append))) == len(cases)


def test_there_must_be_models(tmp_path: Path) -> None:
    for path, says in ((tmp_path, r"no \*.onnx file"), (tmp_path / "gone", "no model or folder of models")):
        with pytest.raises(UsageError, match=says):
            list(of_models(path, 1, print))
