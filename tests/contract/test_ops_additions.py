"""Operators of opset 20 and later keep what their specs claim."""

import pytest

from miscompile.graph.attributes import attributes
from miscompile.ops.conformance import check_spec
from miscompile.ops.facts import Facts
from miscompile.ops.families.additions import SPECS
from miscompile.ops.registry import specs
from miscompile.ops.spec import Call, Operand, OpSpec


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.op)
def test_spec_conforms(spec: OpSpec) -> None:
    report = check_spec(spec, opsets=(20, 22, 24, 26, 28), samples=12)
    assert report.dtypes


def test_bits_of_negative_floats_are_nobodys_integer() -> None:
    x = Operand("x", "float32", (2,), Facts(-1, 1))
    assert not specs()["BitCast"].defined(Call("BitCast", (x,), attributes({"to": 6})))


def test_bits_of_another_width_are_refused() -> None:
    x = Operand("x", "int32", (2,), Facts(0, 1, integral=True))
    assert not specs()["BitCast"].defined(Call("BitCast", (x,), attributes({"to": 7})))


def test_a_linear_write_must_end_within_the_cache() -> None:
    past, update = Operand("p", "float32", (1, 4, 2), Facts(0, 1)), Operand("u", "float32", (1, 3, 2), Facts(0, 1))
    whole = Operand("w", "float32", (1, 5, 2), Facts(0, 1))
    assert specs()["TensorScatter"].defined(Call("TensorScatter", (past, update)))
    assert not specs()["TensorScatter"].defined(Call("TensorScatter", (past, whole)))
