"""Arithmetic keeps what its specs claim, and undefined behaviour out."""

import numpy as np
import pytest

from miscompile.base.errors import RejectedDraft
from miscompile.graph.attributes import attributes
from miscompile.graph.model import TensorType
from miscompile.ops.conformance import check_spec
from miscompile.ops.draws import draw_call
from miscompile.ops.facts import Bounds, Facts
from miscompile.ops.families.arithmetic import SPECS, truncated
from miscompile.ops.registry import specs
from miscompile.ops.spec import Call, Operand, OpSpec


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.op)
def test_spec_conforms(spec: OpSpec) -> None:
    report = check_spec(spec, samples=8)
    # onnx.reference adds in place, so it cannot take the Mean of operands that broadcast beyond the first.
    assert spec.op == "Mean" or not report.unchecked
    assert sum(report.unchecked.values()) < report.calls / 2


def _operands(dtype: str, *ranges: tuple[float, float]) -> tuple[Operand, ...]:
    integral = not dtype.startswith("float")
    return tuple(
        Operand(f"x{i}", dtype, (2,), Facts(lo, hi, integral, exact=True)) for i, (lo, hi) in enumerate(ranges)
    )


@pytest.mark.parametrize("op", ["Div", "Mod"])
@pytest.mark.parametrize(
    ("dtype", "numerator", "denominator"),
    [
        ("int32", (-5, 5), (0, 5)),
        ("int32", (-5, 5), (-5, 5)),
        ("uint8", (0, 255), (0, 3)),
        ("float32", (1, 2), (-1, 1)),
        ("int8", (-128, 127), (-3, -1)),
        ("int64", (-(2**63), 0), (-1, -1)),
    ],
)
def test_guard_of_division(
    op: str, dtype: str, numerator: tuple[float, float], denominator: tuple[float, float]
) -> None:
    call = Call(op, _operands(dtype, numerator, denominator), attributes({"fmod": 1} if op == "Mod" else {}))
    assert not specs()[op].defined(call)


def test_division_by_minus_one_is_defined_away_from_the_lowest_value() -> None:
    assert specs()["Div"].defined(Call("Div", _operands("int8", (-127, 127), (-3, -1))))


@pytest.mark.parametrize("op", ["Div", "Mod"])
@pytest.mark.parametrize(
    ("divisor", "lowest", "defined"),
    [
        ([4, -128], -128, True),
        ([1, -2], -128, True),
        ([4, 0], -127, False),
        ([4, -1], -128, False),
        ([4, -1], -127, True),
    ],
)
def test_known_divisors_of_both_signs(op: str, divisor: list[int], lowest: int, defined: bool) -> None:
    (dividend,) = _operands("int8", (lowest, 127))
    facts = Facts(min(divisor), max(divisor), integral=True, exact=True)
    call = Call(op, (dividend, Operand("y", "int8", (2,), facts, np.array(divisor, np.int8))), attributes({}))
    assert specs()[op].defined(call) is defined
    if defined:
        (bounds,) = specs()[op].bounds(call, (TensorType("int8", (2,)),) * 2)
        every = np.arange(lowest, 128)[:, None]
        quotients, remainders = np.trunc(every / np.array(divisor)), np.mod(every, np.array(divisor))
        found = quotients if op == "Div" else remainders
        assert bounds.lo <= found.min()
        assert found.max() <= bounds.hi


def test_float_mod_needs_fmod() -> None:
    operands = _operands("float32", (1, 2), (4, 5))
    assert not specs()["Mod"].defined(Call("Mod", operands))
    assert specs()["Mod"].defined(Call("Mod", operands, attributes({"fmod": 1})))


@pytest.mark.parametrize(
    ("base", "exponent"),
    [
        (("float32", (-1, 2)), ("float32", (1, 2))),
        (("float32", (-1, 2)), ("int64", (-1, 2))),
        (("float32", (0, 2)), ("int32", (-1, 2))),
        (("int32", (1, 2)), ("int8", (-1, 2))),
        (("int32", (1, 2)), ("float32", (1, 2))),
    ],
)
def test_guard_of_pow(base: tuple[str, tuple[float, float]], exponent: tuple[str, tuple[float, float]]) -> None:
    (left,), (right,) = _operands(base[0], base[1]), _operands(exponent[0], exponent[1])
    assert not specs()["Pow"].defined(Call("Pow", (left, right)))


@pytest.mark.parametrize(("a", "b", "quotient"), [(7, 2, 3), (-7, 2, -3), (7, -2, -3), (-7, -2, 3), (2**63, 1, 2**63)])
def test_division_truncates(a: int, b: int, quotient: int) -> None:
    assert truncated(a, b) == quotient


def test_prelu_keeps_the_product_that_is_not_selected_from_overflow() -> None:
    call = Call("PRelu", _operands("int32", (0, 100), (-5, 5)))
    bounds = specs()["PRelu"].bounds(call, (TensorType("int32", (2,)),))
    assert bounds == (Bounds(0, 100, integral=True, partial=500),)


def _drawn(op: str, dtype: str, count: int = 150) -> list[Call]:
    calls = []
    for index in range(count):
        try:
            calls.append(draw_call(specs()[op], dtype, 18, seed=1, index=index).call)
        except RejectedDraft:
            continue
    return calls


def test_all_forms_of_broadcasting_are_drawn() -> None:
    ranks = {(call.operand(0).rank, call.operand(1).rank) for call in _drawn("Add", "float32")}
    assert any(left < right for left, right in ranks)
    assert any(left > right for left, right in ranks)
    assert {0, 1, 2, 3, 4, 5} <= {rank for both in ranks for rank in both}


def test_one_value_can_be_both_operands() -> None:
    assert any(call.inputs[0] is call.inputs[1] for call in _drawn("Sub", "int64"))


def test_variadic_operators_take_one_to_four_operands() -> None:
    assert {len(call.inputs) for call in _drawn("Max", "int8")} == {1, 2, 3, 4}


def test_pow_mixes_types() -> None:
    assert len({call.operand(1).dtype for call in _drawn("Pow", "float32")}) > 6
