"""Activation functions keep what their specs claim, whatever their attributes."""

import pytest

from miscompile.graph.attributes import attributes
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


def test_guard_of_clip_refuses_limits_that_may_cross() -> None:
    inputs = (_operand(-5, 5), _operand(-1, 2, shape=()), _operand(1, 3, shape=()))
    assert not specs()["Clip"].defined(Call("Clip", inputs))
    assert specs()["Clip"].defined(Call("Clip", (*inputs[:2], _operand(2, 3, shape=()))))
    assert specs()["Clip"].defined(Call("Clip", inputs[:2]))


@pytest.mark.parametrize(("lambd", "bias"), [(0.5, 0.0), (1.0, 2.0), (1.0, -1.0), (1.0, 0.5)])
def test_guard_of_shrink_on_integers(lambd: float, bias: float) -> None:
    options = attributes({"lambd": lambd, "bias": bias})
    assert not specs()["Shrink"].defined(Call("Shrink", (_operand(0, 5, "uint8"),), options))
    assert specs()["Shrink"].defined(Call("Shrink", (_operand(0, 5),), options))


def test_clip_is_drawn_with_and_without_each_limit() -> None:
    calls = [draw_call(specs()["Clip"], "int16", 18, seed=3, index=index).call for index in range(60)]
    assert {(call.has(1), call.has(2)) for call in calls} == {(a, b) for a in (True, False) for b in (True, False)}
    assert {len(call.inputs) for call in calls} == {1, 2, 3}
