"""Live objects of PyTorch as values: values are kept exactly; values without an encoding are refused with a reason."""

import builtins
import math
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from miscompile.instances.code import value_from, value_json
from miscompile.instances.values import Drawn, Held, Made, Name, SliceValue

torch = pytest.importorskip("torch", reason="torch is not installed here")

from miscompile.harvest.libraries.hooks.recording import NotEncodable  # noqa: E402
from miscompile.harvest.libraries.hooks.torch_values import MOST_ELEMENTS, tensor_value, value_of  # noqa: E402

PLAIN = ("float32", "float64", "float16", "int64", "int32", "int16", "int8", "uint8", "uint16", "bool", "complex64")


@settings(max_examples=60)
@given(st.sampled_from(PLAIN), st.lists(st.integers(0, 3), max_size=3), st.integers(0, 2**31))
def test_a_tensor_keeps_every_bit_whatever_its_strides(dtype: str, shape: list[int], seed: int) -> None:
    words = np.random.default_rng(seed).integers(0, 2 if dtype == "bool" else 255, (*shape, 8), np.uint8)
    array = words.view(dtype)[..., 0] if dtype not in ("bool", "uint8", "int8") else words[..., 0].astype(dtype)
    expected = np.array(array.T, order="C")
    held = tensor_value(torch.from_numpy(np.array(array)).permute(tuple(range(array.ndim - 1, -1, -1))))
    assert isinstance(held, Held)
    assert held.tensor.dtype == dtype
    assert held.tensor.array.shape == expected.shape
    assert held.tensor.array.tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ("dtype", "name", "word"),
    [("bfloat16", "bfloat16", 0x3FC0), ("float8_e4m3fn", "float8e4m3fn", 0x3C), ("float8_e5m2", "float8e5m2", 0x3E)],
)
def test_types_that_numpy_lacks_are_kept_as_words(dtype: str, name: str, word: int) -> None:
    held = tensor_value(torch.tensor([1.5, 1.5]).to(getattr(torch, dtype)))
    assert isinstance(held, Held)
    assert (held.tensor.dtype, held.tensor.array.tolist()) == (name, [word, word])


def test_a_view_that_is_conjugated_or_negated_is_taken_for_what_it_is() -> None:
    value = torch.tensor([1 + 2j]).conj()
    held, negated = tensor_value(value), tensor_value(value.imag)
    assert isinstance(held, Held)
    assert isinstance(negated, Held)
    assert held.tensor.array.tolist() == [1 - 2j]
    assert negated.tensor.array.tolist() == [-2.0]


def test_a_tensor_is_taken_as_it_is_now() -> None:
    value = torch.zeros(3, requires_grad=True)
    held = value_of(value)
    with torch.no_grad():
        value.add_(1)
    assert held == value_of(torch.zeros(3))


def test_large_floats_are_drawn_from_their_range_and_other_large_tensors_refused() -> None:
    value = torch.linspace(-3, 5, MOST_ELEMENTS + 1)
    drawn = value_of(value)
    assert isinstance(drawn, Drawn)
    assert (drawn.dtype, drawn.shape, drawn.low, drawn.high) == ("float32", (MOST_ELEMENTS + 1,), -3, 5)
    assert value_of(value) == drawn
    assert value_of(value.flip(0)) != drawn, "two operands must not become the same"
    with pytest.raises(NotEncodable, match="no floats"):
        value_of(value.long())
    with pytest.raises(NotEncodable, match="too far apart"):
        value_of(torch.tensor([-1.7e308, 1.7e308], dtype=torch.float64).repeat(MOST_ELEMENTS))


def test_everything_else_that_has_a_name() -> None:
    given: list[tuple[Any, Any]] = [
        (torch.float16, Name("dtype", "float16")),
        (torch.channels_last, Name("memory_format", "channels_last")),
        (torch.strided, Name("layout", "strided")),
        (torch.device("cpu"), Name("device", "cpu")),
        (Ellipsis, Name("special", "Ellipsis")),
        (torch.nn.functional.relu, Name("function", "torch.nn.functional.relu")),
        (torch.tanh, Name("function", "torch.tanh")),
        (torch.nn.ReLU, Name("function", "torch.nn.ReLU")),
        (math.sin, Name("function", "math.sin")),
        (builtins.float, Name("function", "builtins.float")),
        (slice(1, None, -1), SliceValue(1, None, -1)),
        (torch.Size([2, 3]), (2, 3)),
        (OrderedDict(a=[1, (2.5, "x")]), {"a": [1, (2.5, "x")]}),
        (np.int64(3), 3),
        (torch.max(torch.ones(1, 2), dim=1), (value_of(torch.ones(1)), value_of(torch.zeros(1, dtype=torch.int64)))),
    ]
    for item, expected in given:
        value = value_of(item)
        assert value == expected
        assert value_from(value_json(value)) == expected


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor:UserWarning")
@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (lambda: torch.Generator(), "a Generator"),
        (lambda: torch.eye(2).to_sparse(), "sparse"),
        (lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8), "quantised"),
        (lambda: torch.ones(1, device="meta"), "device meta"),
        (lambda: torch.device("meta"), "device meta"),
        (lambda: torch.complex32, "element type complex32"),
        (lambda: lambda x: x, "without a public name"),
        (lambda: torch.nn.Linear(1, 1), "construction was not seen"),
        (lambda: np.zeros(2), "a ndarray"),
        (lambda: [object()], "a object"),
    ],
)
def test_what_cannot_be_said_is_refused_with_the_reason(item: Any, reason: str) -> None:
    with pytest.raises(NotEncodable, match=reason):
        value_of(item())


def test_a_module_is_said_by_whoever_saw_its_construction() -> None:
    made = Made("torch.nn.ReLU")
    assert value_of([torch.nn.ReLU()], lambda module: made) == [made]
