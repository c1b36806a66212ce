"""Type inference of models that onnx's data propagation wrongly refuses."""

from miscompile.graph.model import TensorType
from miscompile.graph.text.parser import parse_model
from miscompile.graph.typing import value_types

PRODUCT = """
ir 10
opset 18

graph main(%x: float64[2]) -> (%y: float64[3,2]) {
  init %c: int64[3] = [1, 2, 3]
  init %a: int64[1] = [1]
  init %d: int64[2] = [4, 5]
  %u = Unsqueeze(%c, %a)
  %v = Mul(%u, %d)
  %w = Cast(%v) {to=11}
  %y = Mul(%w, %x)
}
"""


def test_integers_that_are_no_shape_do_not_break_inference() -> None:
    assert value_types(parse_model(PRODUCT))["y"] == TensorType("float64", (3, 2))
