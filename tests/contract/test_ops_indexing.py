"""Indexing, ranking and filling specs keep their contract; guards refuse what would be undefined."""

import random

import numpy as np
import pytest

from miscompile.base.errors import RejectedDraft
from miscompile.core.tensor import Array
from miscompile.graph.attributes import attributes
from miscompile.ops.conformance import check_spec
from miscompile.ops.draws import Draw, draw_call
from miscompile.ops.facts import Facts
from miscompile.ops.families import filling, indexing, ranking
from miscompile.ops.registry import dtypes_of, specs
from miscompile.ops.site import FreshSite
from miscompile.ops.spec import Call, Operand, OpSpec, Shape
from miscompile.ops.structural import scalar, vector

SPECS = (*indexing.SPECS, *ranking.SPECS, *filling.SPECS)
_FACTS = Facts(-3, 3, integral=True, exact=True)


def _site(seed: int = 0, opset: int = 22, dtype: str = "float32") -> FreshSite:
    return FreshSite(random.Random(seed), dtype, opset)


def _operand(*shape: int, dtype: str = "float32") -> Operand:
    return Operand("x", dtype, shape, _FACTS)


def _known(values: list[object]) -> Operand:
    return _site().known(np.array(values, "int64"))


def _draws(op: str, dtype: str, opset: int, count: int = 60) -> list[Draw]:
    found = []
    for index in range(count):
        try:
            found.append(draw_call(specs()[op], dtype, opset, seed=11, index=index))
        except RejectedDraft:
            continue
    return found


def _elements(draw: Draw, place: int) -> Array:
    return draw.values[draw.call.operand(place).name].array


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.op)
def test_spec_keeps_its_contract(spec: OpSpec) -> None:
    report = check_spec(spec, samples=20)
    assert report.rejected <= report.calls // 4
    assert sum(report.unchecked.values()) < report.calls * 3 // 4


@pytest.mark.parametrize("op", ["Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND"])
def test_indices_are_drawn_from_both_sides(op: str) -> None:
    indices = [_elements(draw, 1) for draw in _draws(op, "float32", 18)]
    assert any((values < 0).any() for values in indices)
    assert any(values.size and (values >= 0).all() for values in indices)
    assert len({values.dtype.name for values in indices}) == (1 if op.endswith("ND") else 2)


def test_element_indices_may_cover_a_part_of_the_operand() -> None:
    smaller = 0
    for draw in _draws("GatherElements", "int64", 13):
        x, indices = _elements(draw, 0), _elements(draw, 1)
        axis = draw.call.integer("axis") % x.ndim
        part = x[tuple(slice(None) if i == axis else slice(n) for i, n in enumerate(indices.shape))]
        result = np.take_along_axis(part, indices % x.shape[axis], axis)
        smaller += part.shape != x.shape
        assert result.shape == draw.types[0].shape
        assert ((draw.facts[0].lo <= result) & (result <= draw.facts[0].hi)).all()
    assert smaller


def test_scatter_reductions_follow_the_opset() -> None:
    for op in ("ScatterElements", "ScatterND"):
        seen = {
            opset: {d.call.text("reduction", "none") for d in _draws(op, "float32", opset)} for opset in (13, 16, 18)
        }
        assert seen[13] == {"none"}
        assert seen[16] == {"none", "add", "mul"}
        assert seen[18] == {"none", "add", "mul", "max", "min"}
        assert {d.call.text("reduction", "none") for d in _draws(op, "bool", 18)} == {"none"}


@pytest.mark.parametrize(
    ("op", "indices", "shape", "reduction", "held"),
    [
        ("ScatterElements", [0, 1], (2,), None, True),
        ("ScatterElements", [1, -1], (2,), None, False),
        ("ScatterElements", [1, 1], (2,), "add", True),
        ("ScatterElements", [0, 2], (2,), "add", False),
        ("ScatterND", [[0, 1], [1, 0]], (2, 2), None, True),
        ("ScatterND", [[0, 1], [-2, -1]], (2, 2), None, False),
        ("ScatterND", [[0, 1], [-2, -1]], (2, 2), "max", True),
        ("ScatterND", [[0, -3]], (2, 2), "max", False),
    ],
)
def test_scatter_guard(op: str, indices: list[object], shape: Shape, reduction: str | None, held: bool) -> None:
    known = _known(indices)
    updates = _operand(known.shape[0])
    call = Call(op, (_operand(*shape), known, updates), attributes({"reduction": reduction}))
    assert specs()[op].defined(call) is held


def test_meeting_updates_widen_the_bounds() -> None:
    x, updates = _operand(3), Operand("u", "float32", (3,), Facts(2, 2, integral=True, exact=True))
    for reduction, high in (("add", 3 + 3 * 2), ("mul", 3 * 2**3), ("max", 3), (None, 3)):
        options = attributes({"reduction": reduction})
        call = Call("ScatterElements", (x, _known([1, 1, 1]), updates), options)
        assert specs()["ScatterElements"].bounds(call, ())[0].hi == high


def test_gather_guards_refuse_what_is_not_there() -> None:
    unknown = Operand("i", "int64", (1,), Facts(-2, 2, integral=True, exact=True))
    for op in ("Gather", "GatherElements", "GatherND"):
        guard = specs()[op].defined
        assert guard(Call(op, (_operand(2), _known([-2]))))
        assert not guard(Call(op, (_operand(2), _known([2]))))
        assert not guard(Call(op, (_operand(2), _known([-3]))))
        assert not guard(Call(op, (_operand(2), unknown)))
    inside = Operand("i", "int64", (1,), Facts(-2, 1, integral=True, exact=True))
    assert specs()["Gather"].defined(Call("Gather", (_operand(2), inside)))
    assert not specs()["GatherND"].defined(Call("GatherND", (_operand(2), inside)))
    batch = attributes({"batch_dims": 1})
    assert specs()["GatherND"].defined(Call("GatherND", (_operand(2, 3), _known([[2], [0]])), batch))
    assert not specs()["GatherND"].defined(Call("GatherND", (_operand(2, 3), _known([[3], [0]])), batch))


def test_one_hot_with_any_depth_operand() -> None:
    for draw in _draws("OneHot", "float32", 13):
        indices, depth, values = (_elements(draw, place) for place in range(3))
        size = int(depth.reshape(-1)[0])
        hot = np.where(indices < 0, indices + size, indices)[..., None] == np.arange(size)
        result = np.moveaxis(np.where(hot, values[1], values[0]), -1, draw.call.integer("axis", -1))
        assert result.shape == draw.types[0].shape
        assert ((draw.facts[0].lo <= result) & (result <= draw.facts[0].hi)).all()
    assert {draw.call.operand(1).rank for draw in _draws("OneHot", "float32", 13)} == {0, 1}


def test_top_k_is_unsorted_only_when_it_holds_one_element() -> None:
    guard, site = specs()["TopK"].defined, _site()
    unsorted = attributes({"sorted": 0})
    assert guard(Call("TopK", (_operand(3), vector(site, (1,))), unsorted, 2))
    assert not guard(Call("TopK", (_operand(3), vector(site, (2,))), unsorted, 2))
    assert not guard(Call("TopK", (_operand(3), vector(site, (4,))), outputs=2))
    assert not guard(Call("TopK", (_operand(3), vector(site, (0,))), outputs=2))


def test_arg_max_of_no_element_is_refused() -> None:
    for op in ("ArgMax", "ArgMin"):
        assert not specs()[op].defined(Call(op, (_operand(0, 2),)))
        assert specs()[op].defined(Call(op, (_operand(0, 2),), attributes({"axis": -1})))


def test_shape_selects_from_opset_15_on() -> None:
    assert all(not draw.call.attributes for draw in _draws("Shape", "int8", 14))
    assert any(draw.call.attributes for draw in _draws("Shape", "int8", 15))


def test_constant_of_shape_draws_its_output_type() -> None:
    assert "bfloat16" not in dtypes_of("ConstantOfShape", 19)
    assert "bfloat16" in dtypes_of("ConstantOfShape", 20)
    for dtype in dtypes_of("ConstantOfShape", 20):
        assert all(draw.types[0].dtype == dtype for draw in _draws("ConstantOfShape", dtype, 20, 10))


def test_range_guard_refuses_a_zero_step() -> None:
    site = _site()
    steps = {delta: Call("Range", tuple(scalar(site, n) for n in (0, 3, delta))) for delta in (0, 1)}
    assert specs()["Range"].defined(steps[1])
    assert not specs()["Range"].defined(steps[0])


def test_ranges_of_whole_and_of_broken_numbers_are_drawn() -> None:
    draws = _draws("Range", "float32", 13)
    assert any(draw.facts[0].exact for draw in draws)
    assert any(not draw.facts[0].integral for draw in draws)
    assert any((_elements(draw, 2) < 0).all() for draw in draws)
