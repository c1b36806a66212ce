"""Inputs with other strides have the same elements, and a program is compiled for the strides that it gets."""

import importlib.util

import pytest

pytestmark = [
    pytest.mark.compiler,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
]

SHAPES = [(), (0,), (3,), (2, 3), (2, 0, 3), (2, 3, 4, 5), (1, 1, 7)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "bfloat16"])
@pytest.mark.parametrize("layout", ["contiguous", "reversed", "rotated", "spread", "inner"])
def test_a_layout_changes_no_element(shape: tuple[int, ...], dtype: str, layout: str) -> None:
    torch = pytest.importorskip("torch")
    from miscompile.targets.inductor.strides import in_layout

    value = torch.arange(torch.Size(shape).numel()).reshape(shape).to(getattr(torch, dtype))
    placed = in_layout(value, layout)
    assert placed.shape == value.shape
    assert placed.dtype == value.dtype
    assert torch.equal(placed, value)


def test_layouts_have_strides_of_their_own() -> None:
    torch = pytest.importorskip("torch")
    from miscompile.targets.inductor.strides import LAYOUTS, in_layout

    value = torch.zeros(2, 3, 4, 5)
    assert len({in_layout(value, layout).stride() for layout in LAYOUTS}) == len(LAYOUTS)
    assert in_layout(value, "inner").storage_offset() > 0


def test_the_seed_and_the_place_alone_decide() -> None:
    torch = pytest.importorskip("torch")
    from miscompile.targets.inductor.strides import with_strides

    values = [torch.zeros(2, 3, 4) for _ in range(12)]
    strides = [[one.stride() for one in with_strides(values, seed)] for seed in (1, 1, 2)]
    assert strides[0] == strides[1] != strides[2]
    assert len(set(strides[0])) > 1
