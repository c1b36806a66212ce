"""Pooling and sampling of images keep what their specs claim."""

import itertools

import numpy as np
import pytest

from miscompile.base.errors import RejectedDraft
from miscompile.core.tensor import Array
from miscompile.graph.attributes import attributes
from miscompile.ops.conformance import check_spec
from miscompile.ops.draws import Draw, draw_call
from miscompile.ops.facts import Facts
from miscompile.ops.families import pooling, vision
from miscompile.ops.registry import specs
from miscompile.ops.spatial import Window, window_of
from miscompile.ops.spec import Call, Operand, OpSpec

OPSETS = tuple(range(13, 24))
POOLS = ("MaxPool", "AveragePool", "LpPool")


def draws(op: str, dtype: str, opset: int, count: int) -> list[Draw]:
    found = []
    for index in range(count):
        try:
            found.append(draw_call(specs()[op], dtype, opset, seed=1, index=index))
        except RejectedDraft:
            continue
    return found


@pytest.mark.parametrize("spec", [*pooling.SPECS, *vision.SPECS], ids=lambda spec: spec.op)
def test_spec_conforms(spec: OpSpec) -> None:
    report = check_spec(spec, opsets=OPSETS, samples=16)
    assert report.dtypes == spec.dtypes


def under(window: Window, spatial: tuple[int, ...], step: tuple[int, ...]) -> list[tuple[int, ...]]:
    """List the places of the input that lie under the window at output position `step`."""
    axes = []
    for axis, size in enumerate(spatial):
        start = step[axis] * window.strides[axis] - window.padding(axis, size)[0]
        places = (start + k * window.dilations[axis] for k in range(window.kernel[axis]))
        axes.append([place for place in places if 0 <= place < size])
    return list(itertools.product(*axes))


def spatially(place: tuple[int, ...]) -> tuple[slice | int, ...]:
    """Index all channels of all images at one place."""
    return (slice(None), slice(None), *place)


def pooled(draw: Draw) -> Array:
    """Compute a pooling without its padding, window by window."""
    call, x = draw.call, draw.values[draw.call.operand(0).name].numbers().astype(np.float64)
    window, spatial = window_of(call), x.shape[2:]
    y = np.empty((*x.shape[:2], *window.output(spatial)))
    for step in np.ndindex(*y.shape[2:]):
        values = np.stack([x[spatially(place)] for place in under(window, spatial, step)], axis=-1)
        p = call.integer("p", 2)
        results = {"MaxPool": values.max(-1), "AveragePool": values.mean(-1)}
        y[spatially(step)] = results.get(call.op, (np.abs(values) ** p).sum(-1) ** (1 / p))
    return y


@pytest.mark.parametrize("op", POOLS)
@pytest.mark.parametrize("opset", [13, 18, 22])
def test_pools_have_the_inferred_shape_and_stay_in_their_bounds(op: str, opset: int) -> None:
    keys = set()
    for draw in draws(op, "float32", opset, 40):
        y, facts = pooled(draw), draw.facts[0]
        assert y.shape == draw.types[0].shape
        assert not y.size or (facts.lo <= y.min() and y.max() <= facts.hi)
        keys |= set(draw.call.attributes)
    assert {"kernel_shape", "strides", "pads", "auto_pad"} <= keys
    assert ("dilations" in keys) == (op == "MaxPool" or opset >= (19 if op == "AveragePool" else 18))


def test_indices_are_asked_for_only_of_elements_that_differ() -> None:
    asked = [draw.call for draw in draws("MaxPool", "int8", 22, 60) if draw.call.outputs == 2]
    assert asked
    for call in asked:
        value = call.operand(0).value
        assert value is not None
        assert len(set(value.ravel().tolist())) == value.size
    assert {call.integer("storage_order") for call in asked} == {0, 1}


def test_guard_refuses_windows_in_padding() -> None:
    x = Operand("x", "float32", (1, 1, 2), Facts(-1, 1))
    for op in POOLS:
        inside = Call(op, (x,), attributes({"kernel_shape": (2,), "pads": (1, 1)}))
        outside = Call(op, (x,), attributes({"kernel_shape": (2,), "pads": (2, 1)}))
        between = Call(op, (x,), attributes({"kernel_shape": (2,), "pads": (1, 2), "dilations": (3,)}))
        assert specs()[op].defined(inside)
        assert not specs()[op].defined(outside)
        assert not specs()[op].defined(between)


def test_guard_refuses_indices_of_unknown_elements() -> None:
    x = Operand("x", "float32", (1, 1, 2), Facts(-1, 1))
    assert not specs()["MaxPool"].defined(Call("MaxPool", (x,), attributes({"kernel_shape": (2,)}), outputs=2))


def test_only_exact_resizes_are_called_exact() -> None:
    modes = {(d.call.text("mode", "nearest"), d.facts[0].exact) for d in draws("Resize", "float32", 19, 60)}
    assert modes == {("nearest", True), ("linear", False), ("cubic", False)}


def test_guards_of_sampling() -> None:
    x = Operand("x", "float32", (1, 1, 2, 2), Facts(-1, 1))
    tie = np.zeros((1, 1, 1, 2), np.float32)
    grid = Operand("g", "float32", tie.shape, Facts(0, 0), tie)
    assert not specs()["GridSample"].defined(Call("GridSample", (x, grid), attributes({"mode": "nearest"})))
    assert specs()["GridSample"].defined(Call("GridSample", (x, grid)))
    box = np.array([[1, 1, 0, 0]], np.float32)
    rois, indices = (
        Operand("r", "float32", (1, 4), Facts(0, 1), box),
        Operand("i", "int64", (1,), Facts(0, 0), np.zeros(1)),
    )
    assert not specs()["RoiAlign"].defined(Call("RoiAlign", (x, rois, indices), attributes({"sampling_ratio": 1})))
