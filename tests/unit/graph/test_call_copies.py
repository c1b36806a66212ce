"""A function that is called several times computes what the copies of a model compute."""

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from miscompile.graph.call_copies import repeated_calls
from miscompile.graph.copies import repeated
from miscompile.graph.emit import model_proto
from miscompile.graph.text.parser import parse_model

SAME = """ir 8 opset 18 graph g(%x: float32[3]) -> (%y: float32[3]) {
  %y = Sin(%x)
}"""

OTHER = """ir 8 opset 18 graph g(%x: float32[3]) -> (%y: float32[]) {
  %y = ReduceMax(%x) {keepdims=0}
}"""


def of_model(model: onnx.ModelProto, given: np.ndarray) -> np.ndarray:
    return np.asarray(ReferenceEvaluator(model).run(None, {"x": given})[0])


@pytest.mark.parametrize("pattern", ["chain", "fan"])
@pytest.mark.parametrize(("text", "wires"), [(SAME, [0]), (OTHER, [None])])
@pytest.mark.parametrize("copies", [1, 4])
def test_calls_are_copies(pattern: str, text: str, wires: list[int | None], copies: int) -> None:
    model, given = model_proto(parse_model(text)), np.array([0.1, 0.7, -0.3], np.float32)

    def part(value: np.ndarray) -> tuple[np.ndarray, ...]:
        return (of_model(model, value),)

    (found,) = repeated_calls(part, pattern, copies, wires, 0, [True])(given)
    np.testing.assert_allclose(found, of_model(repeated(model, pattern, copies), given), rtol=1e-6)
