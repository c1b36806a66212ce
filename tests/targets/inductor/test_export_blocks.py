"""The example that exports torch blocks: its models can be cut, and every operator class comes along."""

import importlib.util
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from miscompile.producers.slices.collection import collect, models_below
from miscompile.producers.slices.slices import SliceLimits

pytestmark = [pytest.mark.compiler, pytest.mark.process]

EXAMPLE = Path(__file__).parents[3] / "examples" / "export_blocks.py"


def test_exported_blocks_give_slices(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("export_blocks", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    sys.modules["export_blocks"] = example
    spec.loader.exec_module(example)
    written = example.export(tmp_path)
    assert [path.name for path in written] == ["attention.onnx", "convolution.onnx", "cell.onnx", "recurrent.onnx"]
    found = collect(models_below(tmp_path), SliceLimits(per_model=40))
    assert found.skipped == ()
    assert len(found.seeds) > 60
    assert {"MatMul", "Softmax", "Conv", "BatchNormalization", "Sigmoid", "LSTM", "GRU"} <= set(found.operators)
