"""Differences of a neighbour from its parent: all of them make the neighbour, none the parent, some what they say."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from miscompile.core.tensor import Tensor, tensor
from miscompile.harvest.neighbours.call import parameters_of, parent_of, rebuilt
from miscompile.harvest.neighbours.onnx import subjects
from miscompile.harvest.neighbours.walk import STEPS, scene_of
from miscompile.instances.code import digest_of
from miscompile.instances.differences import ParameterDifference, between, described, differences
from miscompile.instances.instance import Instance, Parent
from miscompile.instances.values import Held, Name


def _held(*shape: int, dtype: str = "float32") -> Held:
    return Held(tensor(np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape), dtype))


def _tensor(instance: Instance, place: int = 0) -> Tensor:
    value = instance.inputs[place]
    assert isinstance(value, Held)
    return value.tensor


PAD = Instance("onnx", "Pad", "node", (), {"mode": "constant"}, (_held(2, 3), _held(4, dtype="int64")), version=18)
TESTS = (
    replace(PAD, source="tests", origin="test_pad"),
    Instance("onnx", "Clip", "node", inputs=(_held(2, 3), _held(), None), version=13, source="tests"),
    Instance("onnx", "Gemm", "node", kwargs={"transA": 0}, inputs=(_held(2, 3), _held(3, 4), _held(4)), version=13,
             source="tests"),
)  # fmt: skip


@given(st.sampled_from(TESTS), st.sampled_from(sorted(STEPS)), st.sampled_from(sorted(STEPS)), st.data())
@settings(max_examples=60, deadline=None)
def test_all_differences_make_the_neighbour_and_none_the_parent(
    test: Instance, first: str, second: str, data: st.DataObject
) -> None:
    ((subject, _),) = subjects([test])
    values = parameters_of(subject, test)
    assert values is not None
    parent = parent_of(subject, test, values)
    for step in (first, second):
        made = list(STEPS[step](scene_of(subject, values)))
        values = {**values, **data.draw(st.sampled_from(made)).values} if made else values
    neighbour = rebuilt(subject, test, values)
    found = differences(neighbour, parent.instance)
    assert digest_of(between(neighbour, parent.instance, found)) == digest_of(neighbour)
    assert digest_of(between(neighbour, parent.instance, ())) == digest_of(parent.instance)
    assert bool(found) == (digest_of(neighbour) != digest_of(parent.instance))
    kept = data.draw(st.sets(st.sampled_from(found))) if found else set()
    assert set(differences(between(neighbour, parent.instance, kept), parent.instance)) <= set(found)
    assert len(described(neighbour, parent, found)) <= len(found)


def test_aspects_of_a_tensor_are_undone_one_by_one() -> None:
    data = np.array([[1e-9, 2e-9, 3e-9, 4e-9]], np.float16)
    other = replace(PAD, kwargs={"mode": "edge"}, inputs=(Held(tensor(data)), PAD.inputs[1]))
    found = differences(other, PAD)
    assert found == (
        ParameterDifference("mode", "value"),
        ParameterDifference("input 0", "type"),
        ParameterDifference("input 0", "shape"),
        ParameterDifference("input 0", "elements"),
    )
    shaped = between(other, PAD, {ParameterDifference("input 0", "shape")})
    assert (_tensor(shaped).dtype, _tensor(shaped).shape, shaped.kwargs) == ("float32", (1, 4), PAD.kwargs)
    assert _tensor(shaped).array.tolist() == [[1, 2, 3, 4]]
    assert differences(shaped, PAD) == (ParameterDifference("input 0", "shape"),)


def test_words_name_what_differs_and_group_what_is_alike() -> None:
    other = replace(
        PAD, kwargs={}, inputs=(_held(2, 3, dtype="float16"), Held(tensor(np.zeros(4, np.int64)))),
        operands="fed", results=(True,),
    )  # fmt: skip
    said = described(other, Parent(PAD, {"input 0": "data", "input 1": "pads"}), differences(other, PAD))
    assert said == (
        "mode left out", "data float32 -> float16", "pads [1, 2, 3, 4] -> [0, 0, 0, 0]", "every operand fed",
        "named results by default -> 1",
    )  # fmt: skip


def test_values_that_only_python_takes_for_equal_differ() -> None:
    given = Instance(
        "torch", "torch.sum", "function", (_held(2), 1), {"keepdim": True, "dtype": Name("dtype", "int64")}
    )
    other = replace(given, args=(_held(2), True), kwargs={**given.kwargs, "keepdim": 1})
    assert differences(other, given) == (ParameterDifference("1", "value"), ParameterDifference("keepdim", "value"))
    assert described(other, Parent(given), differences(other, given))[0] == "argument 1 1 -> True"
    assert between(other, given, {ParameterDifference("keepdim", "value")}).args[1] is not True
