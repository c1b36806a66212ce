"""Comparisons, logic and bit operations keep what their specs claim."""

import math

import pytest

from miscompile.ops.conformance import check_spec
from miscompile.ops.facts import Facts
from miscompile.ops.families.logic import SPECS
from miscompile.ops.registry import specs
from miscompile.ops.spec import Call, Operand, OpSpec


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.op)
def test_spec_conforms(spec: OpSpec) -> None:
    assert not check_spec(spec, samples=6).unchecked


def test_signed_shifts_of_the_newest_opset_conform() -> None:
    report = check_spec(specs()["BitShift"], samples=6, opsets=(28,))
    assert {"int8", "int16", "int32", "int64"} < set(report.dtypes)
    assert report.attributes == {"direction": ("LEFT", "RIGHT")}


@pytest.mark.parametrize(("dtype", "lo", "hi"), [("uint8", 0, 8), ("uint32", 32, 40), ("int64", -1, 3)])
def test_guard_of_shifts(dtype: str, lo: float, hi: float) -> None:
    value = Operand("x", dtype, (2,), Facts(0, 1, integral=True))
    assert not specs()["BitShift"].defined(Call("BitShift", (value, Operand("s", dtype, (2,), Facts(lo, hi)))))


def test_guard_of_infinity_test() -> None:
    call = Call("IsInf", (Operand("x", "float32", (2,), Facts(-math.inf, math.inf)),))
    assert not specs()["IsInf"].defined(call)
