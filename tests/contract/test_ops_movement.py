"""Movement and slicing specs keep their contract; forms that the reference evaluator lacks are checked with numpy."""

import math
import random

import numpy as np
import pytest

from miscompile.base.errors import RejectedDraft
from miscompile.graph.attributes import attributes
from miscompile.ops.conformance import check_spec, evaluate
from miscompile.ops.draws import draw_call
from miscompile.ops.facts import Facts
from miscompile.ops.families import movement, slicing
from miscompile.ops.registry import dtypes_of, specs
from miscompile.ops.site import FreshSite
from miscompile.ops.spec import Call, Operand, OperatorLimits, OpSpec, Shape
from miscompile.ops.structural import vector

SPECS = (*movement.SPECS, *slicing.SPECS)
_FACTS = Facts(-3, 3, integral=True, exact=True)


def _site(seed: int = 0, opset: int = 22) -> FreshSite:
    return FreshSite(random.Random(seed), "float32", opset)


def _operand(*shape: int) -> Operand:
    return Operand("x", "float32", shape, _FACTS)


def _forms(op: str, opset: int, count: int = 120) -> list[Call]:
    found = []
    for seed in range(count):
        try:
            found.append(specs()[op].sample(_site(seed, opset)))
        except RejectedDraft:
            continue
    return found


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.op)
def test_spec_keeps_its_contract(spec: OpSpec) -> None:
    report = check_spec(spec, samples=20)
    assert report.rejected <= report.calls // 4
    assert sum(report.unchecked.values()) < report.calls // 2


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.op)
def test_outputs_respect_the_limits(spec: OpSpec) -> None:
    limits = OperatorLimits(max_dim=4, max_elements=256, zero_size=0.04)
    for index in range(60):
        try:
            drawn = draw_call(spec, "float32", max(18, spec.since), seed=7, index=index)
        except RejectedDraft:
            continue
        for kind in drawn.types:
            assert kind.shape is not None
            shape: Shape = tuple(int(str(size)) for size in kind.shape)
            assert math.prod(shape) <= limits.max_elements
            assert len(shape) <= limits.max_rank


def test_every_type_of_the_schema_is_drawn() -> None:
    assert "bfloat16" in dtypes_of("Reshape", 13)
    assert "bool" in dtypes_of("Pad", 13)
    assert dtypes_of("Trilu", 13) == ()
    assert dtypes_of("CenterCropPad", 17) == ()


def test_reshape_writes_zero_copied_and_inferred_sizes() -> None:
    written = [call.operand(1).value for call in _forms("Reshape", 14)]
    assert any(value is not None and -1 in value for value in written)
    assert any(value is not None and 0 in value for value in written)
    assert any("allowzero" in call.attributes for call in _forms("Reshape", 14))
    assert not any("allowzero" in call.attributes for call in _forms("Reshape", 13))


def test_split_has_the_form_of_its_opset() -> None:
    early, late = _forms("Split", 17), _forms("Split", 18)
    assert not any("num_outputs" in call.attributes for call in early)
    assert any(not call.has(1) for call in early)
    assert all(call.has(1) != ("num_outputs" in call.attributes) for call in late)
    assert {call.outputs for call in late} == {1, 2, 3, 4}


def test_slice_counts_backwards_and_reaches_beyond_the_ends() -> None:
    calls = _forms("Slice", 13)
    numbers = [int(n) for call in calls for x in call.inputs[1:] if x and x.value is not None for n in x.value]
    assert {-(2**63), 2**63 - 1, 2**31 - 1, -(2**31)} <= set(numbers)
    assert any(len(call.inputs) > 4 and call.inputs[3] is None for call in calls)
    assert any(len(call.inputs) == 3 for call in calls)


def test_pad_has_the_form_of_its_opset() -> None:
    assert not any(call.has(3) or call.text("mode") == "wrap" for call in _forms("Pad", 17))
    late = _forms("Pad", 19)
    assert {call.text("mode") for call in late} == {"", "constant", "reflect", "edge", "wrap"}
    assert any(call.has(3) and not call.has(2) for call in late)


def test_negative_pads_cut() -> None:
    spec, cut = specs()["Pad"], 0
    for index in range(80):
        drawn = draw_call(spec, "float32", 13, seed=3, index=index)
        pads = drawn.call.operand(1).value
        assert pads is not None
        before, after = np.split(pads, 2)
        if not (pads < 0).any():
            continue
        cut += 1
        x = drawn.values[drawn.call.operand(0).name].array
        low, high = np.minimum(before, 0), np.minimum(after, 0)
        kept = x[tuple(slice(-a, size + b) for a, b, size in zip(low, high, x.shape, strict=True))]
        assert drawn.types[0].shape == np.pad(kept, [*zip(before - low, after - high, strict=True)]).shape
    assert cut > 5


@pytest.mark.parametrize(
    ("mode", "shape", "pads", "held"),
    [
        ("reflect", (3,), (2, 2), True),
        ("reflect", (3,), (3, 0), False),
        ("reflect", (3,), (-1, 0), False),
        ("wrap", (3,), (3, 3), True),
        ("wrap", (3,), (4, 0), False),
        ("edge", (0,), (1, 0), False),
        ("edge", (2,), (-2, 1), False),
        ("constant", (0,), (1, 0), True),
        ("constant", (3,), (-2, -2), False),
        ("constant", (3,), (-3, 5), True),
    ],
)
def test_pad_guard(mode: str, shape: Shape, pads: tuple[int, ...], held: bool) -> None:
    call = Call("Pad", (_operand(*shape), vector(_site(), pads)), attributes({"mode": mode}))
    assert specs()["Pad"].defined(call) is held


def test_guards_want_known_operands() -> None:
    unknown = Operand("i", "int64", (2,), Facts(0, 1, integral=True, exact=True))
    scalar = Operand("k", "int64", (), Facts(0, 1, integral=True, exact=True))
    assert not specs()["Pad"].defined(Call("Pad", (_operand(3), unknown)))
    assert not specs()["Trilu"].defined(Call("Trilu", (_operand(3, 3), scalar)))
    assert not specs()["ReverseSequence"].defined(Call("ReverseSequence", (_operand(3, 2), unknown)))
    assert not specs()["Col2Im"].defined(Call("Col2Im", (_operand(1, 4, 4), unknown, unknown)))


def test_reverse_sequence_guard_refuses_lengths_beyond_the_axis() -> None:
    guard = specs()["ReverseSequence"].defined
    assert guard(Call("ReverseSequence", (_operand(3, 2), vector(_site(), (1, 3)))))
    assert not guard(Call("ReverseSequence", (_operand(3, 2), vector(_site(), (1, 4)))))


def test_padding_joins_the_bounds() -> None:
    x = Operand("x", "float32", (2,), Facts(1, 2, integral=True, exact=True))
    pads, fill = vector(_site(), (1, 0)), Operand("c", "float32", (), Facts(9, 9, integral=True, exact=True))
    spec = specs()["Pad"]
    assert spec.bounds(Call("Pad", (x, pads)), ())[0].lo == 0
    assert spec.bounds(Call("Pad", (x, pads, fill)), ())[0].hi == 9
    assert spec.bounds(Call("Pad", (x, pads), attributes({"mode": "edge"})), ())[0].lo == 1


def test_col2im_adds_overlapping_blocks() -> None:
    spec, overlaps = specs()["Col2Im"], 0
    for index in range(40):
        try:
            drawn = draw_call(spec, "int64", 18, seed=1, index=index)
        except RejectedDraft:
            continue
        x, image, block = (drawn.values[drawn.call.operand(place).name].array for place in range(3))
        expected = _fold(drawn.call, x, [int(n) for n in image], [int(n) for n in block])
        np.testing.assert_array_equal(evaluate(drawn)[0], expected)
        overlaps += int(np.abs(expected).max(initial=0) > np.abs(x).max(initial=0))
    assert overlaps


def _fold(call: Call, x: np.ndarray, image: list[int], block: list[int]) -> np.ndarray:
    rank = len(image)
    ones = (1,) * rank
    strides, dilations = call.integers("strides", ones), call.integers("dilations", ones)
    pads = call.integers("pads", (0,) * (2 * rank))
    whole = [image[i] + pads[i] + pads[i + rank] for i in range(rank)]
    counts = [(whole[i] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1 for i in range(rank)]
    columns = x.reshape(x.shape[0], -1, *block, *counts)
    out = np.zeros((*columns.shape[:2], *whole), x.dtype)
    for place in np.ndindex(*block):
        starts = [place[i] * dilations[i] for i in range(rank)]
        window = tuple(slice(starts[i], starts[i] + strides[i] * (counts[i] - 1) + 1, strides[i]) for i in range(rank))
        out[(slice(None), slice(None), *window)] += columns[(slice(None), slice(None), *place)]
    return out[(slice(None), slice(None), *(slice(pads[i], pads[i] + image[i]) for i in range(rank)))]
