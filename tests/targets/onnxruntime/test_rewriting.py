"""What ONNX Runtime makes of a program, as reports show it."""

import pytest

from miscompile.core.case import Case
from miscompile.graph.emit import to_program
from miscompile.graph.text.parser import parse_model
from miscompile.targets.registry import about
from miscompile.triage.rewriting import rewriting_of

pytestmark = [pytest.mark.compiler, pytest.mark.process]

FUSED = """
ir 8
opset 18
graph g(%x: float32[2]) -> (%z: float32[2]) {
  init %one: float32[] = [1.0]
  %y = Div(%one, %x)
  %z = Mul(%x, %y)
}
"""


def case(text: str) -> Case:
    return Case(to_program(parse_model(text)), ())


def test_the_program_after_a_pass() -> None:
    described = about("onnxruntime")
    others = frozenset(described.passes) - {"DivMulFusion"}
    found = rewriting_of(described.optimised, case(FUSED), "full", others)
    assert found is not None
    assert (found.removed, found.added) == (("Mul",), ())
    assert "Div(%x, %x)" in found.as_json()["after"]


def test_a_program_that_stays_or_is_refused_has_no_rewriting() -> None:
    described = about("onnxruntime")
    assert rewriting_of(described.optimised, case(FUSED), "full", frozenset(described.passes)) is None
    assert rewriting_of(described.optimised, case(FUSED.replace("Mul(", "NoSuchOperator(")), "full", ()) is None
