"""Instances said again in other operator sets: parameters move between attributes and inputs, meaning stays."""

import numpy as np
import pytest

from miscompile.core.tensor import tensor
from miscompile.instances.instance import Instance
from miscompile.instances.values import Held, Value
from miscompile.producers.instances.onnx_versions import other_versions, restate_all, restated

X = Held(tensor(np.linspace(-2, 2, 6, dtype=np.float32).reshape(1, 2, 3)))


def ints(*numbers: int) -> Held:
    return Held(tensor(np.array(numbers, np.int64)))


def node(op: str, version: int, *inputs: Value, **kwargs: Value) -> Instance:
    results = (True,) * (2 if op == "TopK" else 1)
    return Instance("onnx", op, "node", kwargs=kwargs, inputs=inputs, version=version, results=results)


def number(value: float) -> Held:
    return Held(tensor(np.array(value, np.float32)))


@pytest.mark.parametrize(
    ("new", "old"),
    [
        (node("Squeeze", 13, X, ints(0)), node("Squeeze", 11, X, axes=(0,))),
        (node("ReduceSum", 13, X, ints(1), keepdims=0), node("ReduceSum", 11, X, axes=(1,), keepdims=0)),
        (node("Clip", 13, X, number(-1), number(1)), node("Clip", 6, X, min=-1.0, max=1.0)),
        (node("TopK", 11, X, ints(2)), node("TopK", 1, X, k=2)),
        (node("Pad", 11, X, ints(0, 0, 1, 0, 0, 0), number(7)), node("Pad", 2, X, pads=(0, 0, 1, 0, 0, 0), value=7.0)),
        (node("Slice", 13, X, ints(0), ints(1), ints(1)), node("Slice", 1, X, starts=(0,), ends=(1,), axes=(1,))),
        (node("Add", 7, X, number(1)), node("Add", 6, X, number(1), broadcast=1)),
    ],
    ids=lambda one: f"{one.operator}-{one.version}",
)
def test_attributes_and_inputs_trade_places(new: Instance, old: Instance) -> None:
    down, up = restated(new, old.version), restated(old, new.version)
    assert down is not None
    assert up is not None
    assert (down.inputs, down.kwargs) == (old.inputs, old.kwargs)
    assert up.inputs == new.inputs
    assert {name: value for name, value in up.kwargs.items() if name in new.kwargs} == new.kwargs


def test_a_default_that_changed_is_written_down() -> None:
    found = restated(node("Softmax", 13, X), 11)
    assert found is not None
    assert found.kwargs["axis"] == -1


def test_what_an_older_version_cannot_say_is_not_said() -> None:
    assert restated(node("Softmax", 13, X, axis=1), 11) is None  # then it meant all axes from there on
    assert restated(node("Shape", 15, X, start=1), 13) is None
    assert restated(node("Add", 14, number(1), X), 6) is None  # only the second operand was broadcast
    assert restated(node("NoSuchOperator", 14, X), 6) is None


@pytest.mark.parametrize(
    ("call", "version", "said"),
    [
        (node("GridSample", 22, X, X, mode="cubic"), 16, False),  # it was called bicubic
        (node("GridSample", 22, X, X, mode="nearest"), 16, True),
        (node("GridSample", 16, X, X, mode="bicubic"), 20, False),
        (node("GridSample", 22, X, X), 16, False),  # the default is linear, which was called bilinear
        (node("Pad", 19, X, ints(0, 0, 1, 0, 0, 0), mode="wrap"), 18, False),
        (node("Pad", 19, X, ints(0, 0, 1, 0, 0, 0), mode="edge"), 18, True),
        (node("ScatterND", 18, X, ints(0), X, reduction="max"), 16, False),
        (node("ScatterND", 18, X, ints(0), X, reduction="add"), 16, True),
    ],
)
def test_a_word_that_the_other_version_does_not_have_is_not_said(call: Instance, version: int, said: bool) -> None:
    assert (restated(call, version) is not None) is said


def test_only_what_onnx_accepts_and_finds_equal_is_kept() -> None:
    whole = Held(tensor(np.arange(6).reshape(2, 3)))
    given = [
        node("Clip", 13, X, number(-1), number(1)),
        node("ReduceSum", 13, X, ints(1)),
        node("Add", 14, whole, whole),
    ]
    made, counts = restate_all(given, lambda line: None)
    assert counts["tried"] == sum(len(other_versions(one)) for one in given)
    assert counts["agree"] == len(made)
    assert counts["rejected by onnx"] > 0  # whole numbers were not added before operator set 6
    assert {(one.operator, one.version) for one in made} >= {("Clip", 6), ("ReduceSum", 1), ("Add", 7)}
    assert {one.source for one in made} == {"versions"}
