"""The unary mathematical functions keep what their specs claim."""

import pytest

from miscompile.ops.conformance import check_spec
from miscompile.ops.facts import Facts
from miscompile.ops.families.math import SPECS
from miscompile.ops.registry import specs
from miscompile.ops.spec import Call, Operand, OpSpec


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.op)
def test_spec_conforms(spec: OpSpec) -> None:
    report = check_spec(spec, samples=6)
    assert spec.op == "Erf" or not report.unchecked
    assert sum(report.unchecked.values()) < report.calls / 2


@pytest.mark.parametrize(
    ("op", "lo", "hi"),
    [
        ("Exp", -1, 11),
        ("Log", 0, 1),
        ("Sqrt", -1e-9, 1),
        ("Reciprocal", -1, 1),
        ("Tan", 0, 1.6),
        ("Asin", -1, 0),
        ("Acos", 0, 1),
        ("Sinh", -7, 0),
        ("Cosh", 0, 7),
        ("Acosh", 1, 2),
        ("Atanh", 0, 1),
    ],
)
def test_guard_refuses_operands_outside_the_domain(op: str, lo: float, hi: float) -> None:
    call = Call(op, (Operand("x", "float32", (2,), Facts(lo, hi)),))
    assert not specs()[op].defined(call)
