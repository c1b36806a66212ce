"""Activation functions keep what their specs claim, whatever their attributes."""

import pytest

from miscompile.graph.attributes import attributes
from miscompile.graph.model import TensorType
from miscompile.ops.conformance import OPSETS, check_spec
from miscompile.ops.draws import draw_call
from miscompile.ops.facts import Facts
from miscompile.ops.families.activation import SPECS
from miscompile.ops.registry import specs
from miscompile.ops.spec import Call, Operand, OpSpec

NEWEST = (24, 25)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.op)
def test_spec_conforms(spec: OpSpec) -> None:
    report = check_spec(spec, samples=8, opsets=OPSETS if spec.since <= OPSETS[-1] else NEWEST)
    # onnx.reference gives a scalar that is no array for the Softsign of a scalar, and refuses its own result.
    assert spec.op == "Softsign" or not report.unchecked
    assert sum(report.unchecked.values()) < report.calls / 4


def _operand(lo: float, hi: float, dtype: str = "float32", shape: tuple[int, ...] = (2,)) -> Operand:
    return Operand(f"{lo}", dtype, shape, Facts(lo, hi))


@pytest.mark.parametrize("op", ["Softplus", "Mish"])
def test_guard_refuses_operands_whose_exponential_overflows_float16(op: str) -> None:
    assert not specs()[op].defined(Call(op, (_operand(0, 12),)))


def test_guard_of_gelu_concerns_its_tanh_form_only() -> None:
    call = Call("Gelu", (_operand(0, 100),))
    assert specs()["Gelu"].defined(call)
    assert not specs()["Gelu"].defined(Call("Gelu", call.inputs, attributes({"approximate": "tanh"})))


def test_where_the_limits_of_clip_cross_the_upper_one_is_the_result() -> None:
    inputs = (_operand(-5, 5), _operand(3, 4, shape=()), _operand(1, 2, shape=()))
    (bounds,) = specs()["Clip"].bounds(Call("Clip", inputs), (TensorType("float32", (2,)),))
    assert (bounds.lo, bounds.hi) == (1, 2)


def test_limits_of_clip_cross_in_a_few_calls() -> None:
    drawn = [draw_call(specs()["Clip"], "float32", 18, seed=3, index=index).call for index in range(200)]
    limited = [call for call in drawn if call.has(1) and call.has(2)]
    crossed = [call for call in limited if call.facts(1).lo > call.facts(2).hi]
    assert 0 < len(crossed) < len(limited) / 4


@pytest.mark.parametrize(("lambd", "bias"), [(0.5, 0.0), (1.0, 2.0), (1.0, -1.0), (1.0, 0.5)])
def test_guard_of_shrink_on_integers(lambd: float, bias: float) -> None:
    options = attributes({"lambd": lambd, "bias": bias})
    assert not specs()["Shrink"].defined(Call("Shrink", (_operand(0, 5, "uint8"),), options))
    assert specs()["Shrink"].defined(Call("Shrink", (_operand(0, 5),), options))


def test_clip_is_drawn_with_and_without_each_limit() -> None:
    calls = [draw_call(specs()["Clip"], "int16", 18, seed=3, index=index).call for index in range(60)]
    assert {(call.has(1), call.has(2)) for call in calls} == {(a, b) for a in (True, False) for b in (True, False)}
    assert {len(call.inputs) for call in calls} == {1, 2, 3}
