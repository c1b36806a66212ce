"""Reduction specs keep their contract: axes in every form, no undefined reduction, sound bounds."""

import math
import random

import numpy as np
import pytest

from miscompile.base.errors import RejectedDraft
from miscompile.graph.attributes import attributes
from miscompile.ops.conformance import check_spec
from miscompile.ops.draws import draw_call
from miscompile.ops.facts import Facts
from miscompile.ops.families.reduction import SPECS, reduced_axes
from miscompile.ops.registry import dtypes_of, specs
from miscompile.ops.site import FreshSite
from miscompile.ops.spec import Call, Operand, OpSpec
from miscompile.ops.structural import vector

REDUCTIONS = [spec.op for spec in SPECS if spec.op != "CumSum"]
_DEFINED_EMPTY = {"ReduceSum", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare"}


def _site(seed: int = 0, opset: int = 22, dtype: str = "float32") -> FreshSite:
    return FreshSite(random.Random(seed), dtype, opset)


def _operand(*shape: int, lo: float = 1, hi: float = 2) -> Operand:
    return Operand("x", "float32", shape, Facts(lo, hi, integral=True, exact=True))


def _calls(op: str, opset: int, count: int = 150) -> list[Call]:
    found = []
    for seed in range(count):
        try:
            found.append(specs()[op].sample(_site(seed, opset)))
        except RejectedDraft:
            continue
    return found


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.op)
def test_spec_keeps_its_contract(spec: OpSpec) -> None:
    report = check_spec(spec, samples=40)
    assert report.rejected <= report.calls // 8
    assert sum(report.unchecked.values()) <= report.calls // 2


@pytest.mark.parametrize("op", REDUCTIONS)
def test_axes_move_from_attribute_to_input(op: str) -> None:
    moved = 13 if op == "ReduceSum" else 18
    late = _calls(op, moved)
    assert not any("axes" in call.attributes for call in late)
    assert any(call.has(1) and call.operand(1).shape == (0,) for call in late)
    assert {call.integer("noop_with_empty_axes", -1) for call in late} == {-1, 0, 1}
    assert {call.integer("keepdims", -1) for call in late} == {-1, 0, 1}
    if moved == 18:
        early = _calls(op, 17)
        assert not any(call.has(1) or "noop_with_empty_axes" in call.attributes for call in early)
        assert any("axes" in call.attributes for call in early)
        assert any("axes" not in call.attributes for call in early)


@pytest.mark.parametrize("op", REDUCTIONS)
def test_several_and_negative_axes_and_scalars_are_reduced(op: str) -> None:
    given = [call.operand(1).value for call in _calls(op, 18) if call.has(1)]
    assert any(axes is not None and len(axes) > 1 for axes in given)
    assert any(axes is not None and (axes < 0).any() for axes in given)
    assert any(call.operand(0).rank == 0 for call in _calls(op, 18))


@pytest.mark.parametrize("op", REDUCTIONS)
def test_reducing_no_element_is_refused_where_it_has_no_value(op: str) -> None:
    empty = Call(op, (_operand(0, 3), vector(_site(), (0,))))
    other = Call(op, (_operand(0, 3), vector(_site(), (-1,))))
    assert specs()[op].defined(empty) is (op in _DEFINED_EMPTY)
    assert specs()[op].defined(other)


def test_guards_want_known_axes_and_a_positive_domain() -> None:
    axes = Operand("a", "int64", (1,), Facts(0, 0, integral=True, exact=True))
    assert not specs()["ReduceSum"].defined(Call("ReduceSum", (_operand(2), axes)))
    assert not specs()["CumSum"].defined(Call("CumSum", (_operand(2), axes)))
    assert specs()["ReduceLogSum"].defined(Call("ReduceLogSum", (_operand(2),)))
    assert not specs()["ReduceLogSum"].defined(Call("ReduceLogSum", (_operand(2, lo=0),)))
    assert not specs()["ReduceLogSumExp"].defined(Call("ReduceLogSumExp", (_operand(2, hi=90),)))


def test_axes_are_read_in_every_form() -> None:
    site, x = _site(), _operand(2, 3, 4)
    noop = attributes({"noop_with_empty_axes": 1})
    assert reduced_axes(Call("ReduceSum", (x,))) == (0, 1, 2)
    assert reduced_axes(Call("ReduceSum", (x,), noop)) == ()
    assert reduced_axes(Call("ReduceSum", (x, vector(site, ())), noop)) == ()
    assert reduced_axes(Call("ReduceSum", (x, vector(site, (-1,))), noop)) == (2,)
    assert reduced_axes(Call("ReduceMax", (x,), attributes({"axes": [0, -1]}))) == (0, 2)


def test_sums_are_bounded_by_the_number_of_elements() -> None:
    call = Call("ReduceSum", (_operand(2, 3, lo=-1, hi=4), vector(_site(), (1,))))
    found = specs()["ReduceSum"].bounds(call, ())[0]
    assert (found.lo, found.hi, found.partial, found.integral) == (-3, 12, 12, True)


def test_bounds_hold_when_every_element_stands_at_the_edge() -> None:
    x = np.full(300, 3.0, np.float32)
    facts = Facts(3, 3.3, integral=False, exact=True)
    truths = {
        "ReduceSum": np.add.accumulate(x, dtype=np.float32)[-1],
        "ReduceL2": np.sqrt(np.add.accumulate(x * x, dtype=np.float32)[-1]),
        "ReduceLogSum": np.log(np.add.accumulate(x, dtype=np.float32)[-1]),
        "ReduceLogSumExp": 3 + math.log(300),
        "ReduceMean": np.float32(3),
        "ReduceSumSquare": np.add.accumulate(x * x, dtype=np.float32)[-1],
    }
    for op, truth in truths.items():
        found = specs()[op].bounds(Call(op, (Operand("x", "float32", (300,), facts),)), ())[0]
        assert found.lo <= truth <= found.hi


def test_products_stay_within_the_limits() -> None:
    for dtype in ("float16", "int32", "float32"):
        for index in range(60):
            drawn = draw_call(specs()["ReduceProd"], dtype, 18, seed=2, index=index)
            assert math.isfinite(drawn.facts[0].hi)


def test_unsigned_products_and_sums_wrap() -> None:
    wide = [
        draw_call(specs()[op], "uint32", 18, seed=4, index=i) for op in ("ReduceProd", "ReduceSum") for i in range(40)
    ]
    wrapped = [draw for draw in wide if draw.facts[0].hi == 2**32 - 1]
    assert wrapped
    assert all(draw.facts[0].exact for draw in wrapped)


def test_extrema_of_bool_come_with_opset_20() -> None:
    for op in ("ReduceMax", "ReduceMin"):
        assert "bool" not in dtypes_of(op, 19)
        assert "bool" in dtypes_of(op, 20)


def test_cumulative_sum_bounds_hold_for_every_prefix() -> None:
    x = _operand(4, lo=-2, hi=5)
    for exclusive, low in ((0, -8), (1, -8)):
        call = Call("CumSum", (x, vector(_site(), (0,))), attributes({"exclusive": exclusive}))
        found = specs()["CumSum"].bounds(call, ())[0]
        assert (found.lo, found.hi) == (low, 20)
    positive = Call("CumSum", (_operand(4), vector(_site(), (0,))), attributes({"exclusive": 1}))
    assert specs()["CumSum"].bounds(positive, ())[0].lo == 0
