"""Steps from an instance to its neighbours."""

import random
from collections.abc import Iterator

import numpy as np
import pytest
from onnx import defs

from miscompile.core.tensor import Tensor, tensor
from miscompile.harvest.constraints.generate import Constraint, Operation
from miscompile.harvest.constraints.onnx import operation_of
from miscompile.harvest.neighbours.attributes import attributes, descriptions
from miscompile.harvest.neighbours.call import (
    OPERANDS,
    OUTPUTS,
    NamedParameters,
    StepView,
    Subject,
    Variation,
    parameters_of,
    rebuilt,
    subjects_of,
)
from miscompile.harvest.neighbours.draws import draws
from miscompile.harvest.neighbours.element_types import element_types
from miscompile.harvest.neighbours.onnx import refusal
from miscompile.harvest.neighbours.operands import aliases, operands
from miscompile.harvest.neighbours.presence import outputs, presence
from miscompile.harvest.neighbours.shapes import ranks, sizes
from miscompile.harvest.neighbours.specification import WORDS, specification
from miscompile.instances.conversion import converted
from miscompile.instances.instance import Instance
from miscompile.instances.values import Drawn, Held, Value, tensor_of


def _held(*shape: int, dtype: str = "float32") -> Held:
    return Held(tensor(np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(np.float32), dtype))


def _whole(*numbers: int) -> Held:
    return Held(tensor(np.array(numbers, np.int64)))


def _subject(op: str, version: int) -> Subject:
    schema = defs.get_schema(op, version)
    operation = operation_of(schema)
    assert operation is not None
    optional = defs.OpSchema.FormalParameterOption.Optional
    return Subject(operation, tuple(one.option == optional for one in schema.outputs))


def _scene(op: str, version: int, values: NamedParameters, siblings: tuple[NamedParameters, ...] = ()) -> StepView:
    return StepView(_subject(op, version), values, siblings, random.Random(0))


def _words(changes: Iterator[Variation]) -> list[str]:
    return [change.words for change in changes]


def test_presence_leaves_out_a_given_operand_and_takes_a_missing_one_from_another_test() -> None:
    other: NamedParameters = {"input": _held(2), "max": _held(dtype="float64")}
    found = list(presence(_scene("Clip", 13, {"input": _held(2), "min": _held()}, (other,))))
    assert found[0] == Variation({"min": None}, "min left out")
    assert found[1].words == "max given (float32[] of another test)"
    assert all(set(change.values) == {"max"} for change in found[1:])


def test_a_missing_operand_is_drawn_in_the_type_of_its_group() -> None:
    found = list(presence(_scene("Clip", 13, {"input": _held(2, 3, dtype="float16")})))
    drawn = [value for change in found for value in change.values.values()]
    assert drawn
    assert {tensor_of(value).dtype for value in drawn if isinstance(value, Held | Drawn)} == {"float16"}


@pytest.mark.parametrize(
    ("op", "version"), [("Clip", 13), ("Conv", 22), ("Concat", 13), ("ReduceSum", 13), ("Split", 18)]
)
def test_calls_that_the_specification_draws_replace_every_parameter_and_are_taken(op: str, version: int) -> None:
    subject = _subject(op, version)
    scene = StepView(subject, {"gone": 1}, (), random.Random(0))
    found = list(specification(scene))
    assert len(found) > 4
    for change in found:
        assert change.values["gone"] is None
        assert change.words == WORDS
        assert not refusal(rebuilt(subject, Instance("onnx", op, "node", version=version), change.values))
    assert len({repr(change.values) for change in found}) > 2


def test_descriptions_stay_within_their_element_type() -> None:
    ends = Held(tensor(np.array([2**31 - 1, -(2**31)], np.int32)))
    found = list(descriptions(_scene("Slice", 13, {"data": _held(2, 3), "starts": _whole(0, 0), "ends": ends})))
    assert any(set(change.values) == {"ends"} for change in found)


def test_a_function_of_a_library_has_no_such_specification() -> None:
    operation = Operation("torch", "torch.add", "function", (Constraint("input", ("tensor",), True),))
    assert not list(specification(StepView(Subject(operation), {}, (), random.Random(0))))


def test_optional_results_are_named_and_left_out() -> None:
    usual = _scene("MaxPool", 12, {"X": _held(1, 1, 4), OUTPUTS: ()})
    named = _scene("MaxPool", 12, {"X": _held(1, 1, 4), OUTPUTS: (True, True)})
    assert list(outputs(usual)) == [Variation({OUTPUTS: (True, True)}, "result 1 named")]
    assert list(outputs(named)) == [Variation({OUTPUTS: (True,)}, "result 1 left out")]


def test_attributes_are_left_out_at_their_default_listed_and_at_edges() -> None:
    found = _words(attributes(_scene("Softmax", 13, {"input": _held(2, 3, 4), "axis": 1})))
    assert {"axis left out", "axis 1 -> -1, its default", "axis 1 -> 0", "axis 1 -> 2", "axis 1 -> -3"} <= set(found)
    modes = _words(attributes(_scene("Pad", 18, {"data": _held(2), "pads": _whole(0, 1)})))
    assert {"mode given as 'reflect'", "mode given as 'edge'", "mode given as 'constant', its default"} <= set(modes)


def test_values_of_other_tests_are_tried() -> None:
    siblings: tuple[NamedParameters, ...] = ({"direction": "bidirectional"},)
    found = _words(attributes(_scene("GRU", 14, {"X": _held(1, 1, 1)}, siblings)))
    assert "direction given as 'bidirectional', as in another test" in found


def test_lists_of_integers_change_one_element_at_a_time() -> None:
    kernel: NamedParameters = {"X": _held(1, 1, 5, 5), "kernel_shape": (2, 3)}
    found = [
        change.values["kernel_shape"]
        for change in attributes(_scene("MaxPool", 12, kernel))
        if "kernel_shape" in change.values
    ]
    assert {(2, 6), (6, 3), (3, 2), (1, 1), ()} <= {value for value in found if isinstance(value, tuple)}


def test_operands_that_describe_others_go_to_their_edges() -> None:
    found = list(descriptions(_scene("Pad", 18, {"data": _held(4), "pads": _whole(0, 1)})))
    held = [
        tensor_of(value).array.tolist()
        for change in found
        for value in change.values.values()
        if isinstance(value, Held)
    ]
    assert [0, -1] in held
    assert [] in held
    assert [5, 5] in held


def test_types_change_together() -> None:
    changes = list(element_types(_scene("Add", 14, {"A": _held(2), "B": _held(2)})))
    assert {"A, B float32 -> int8", "A, B float32 -> bfloat16"} <= {one.words for one in changes}
    for change in changes:
        dtypes = {tensor_of(value).dtype for value in change.values.values() if isinstance(value, Held)}
        assert len(dtypes) == 1


@pytest.mark.parametrize(
    ("numbers", "dtype", "expected"),
    [
        ([1.5, 2.5, -300.0, np.nan], "int8", [2, 2, -128, 0]),
        ([-1.0, 1e30], "uint64", [0, 2**64 - 1]),
        ([0.0, -0.5], "bool", [False, True]),
        ([1.0, 3.0], "float16", [1.0, 3.0]),
    ],
)
def test_conversion_rounds_and_saturates(numbers: list[float], dtype: str, expected: list[float]) -> None:
    found = converted(tensor(np.array(numbers, np.float32)), dtype)
    assert found.dtype == dtype
    assert found.numbers().tolist() == expected


def test_sizes_change_in_all_tensors_that_have_them() -> None:
    changes = {one.words: one.values for one in sizes(_scene("MatMul", 13, {"A": _held(2, 3), "B": _held(3, 4)}))}
    both = changes["every size 3 -> 0"]
    assert [tensor_of(value).shape for value in both.values() if isinstance(value, Held)] == [(2, 0), (0, 4)]
    assert set(changes["size 1 of A 3 -> 1"]) == {"A"}


def test_ranks_go_down_to_scalars_and_up_to_batches() -> None:
    changes = {one.words: one.values for one in ranks(_scene("Relu", 14, {"X": _held(1)}))}
    shapes = {
        words: tensor_of(value).shape
        for words, values in changes.items()
        for value in values.values()
        if isinstance(value, Held)
    }
    assert shapes["X as a scalar"] == ()
    assert shapes["X as a batch of 2"] == (2, 1)
    assert shapes["X with a trailing dimension of 1"] == (1, 1)


def test_draws_stay_within_the_type() -> None:
    words = _words(draws(_scene("Relu", 14, {"X": _held(4, dtype="int8")})))
    assert "X drawn of the full range" in words
    halves = list(draws(_scene("Relu", 14, {"X": _held(4, dtype="float16")})))
    for change in halves:
        for value in change.values.values():
            assert isinstance(value, Held)
            assert np.isfinite(value.tensor.numbers()).all()


def test_operands_become_constants_and_aliases() -> None:
    scene = _scene("Add", 14, {"A": _held(2), "B": _whole(1), OPERANDS: ""})
    assert _words(operands(scene)) == [
        "every operand fed",
        "every operand but the first a constant",
        "the first operand a constant",
        "every operand a constant",
    ]
    assert list(aliases(scene)) == []
    same = _scene("Add", 14, {"A": _held(2), "B": Held(Tensor("float32", np.zeros(2, np.float32)))})
    assert [change.values for change in aliases(same)] == [{"B": _held(2), OPERANDS: "shared"}]


@pytest.mark.parametrize(
    "instance",
    [
        Instance("onnx", "Concat", "node", kwargs={"axis": 0}, inputs=(_held(2), _held(3), _held(1)), version=13),
        Instance("onnx", "Clip", "node", inputs=(_held(2), None, _held()), version=13, operands="fed"),
        Instance(
            "onnx",
            "MaxPool",
            "node",
            kwargs={"kernel_shape": (2,)},
            inputs=(_held(1, 1, 4),),
            version=12,
            results=(True, True),
        ),
    ],
)
def test_parameters_make_the_same_instance_again(instance: Instance) -> None:
    subject = _subject(instance.api, instance.version)
    values = parameters_of(subject, instance)
    assert values is not None
    assert rebuilt(subject, instance, values) == instance


def test_operations_of_a_library_have_neighbours_in_the_form_of_the_call() -> None:
    parameters = (Constraint("input", ("tensor",)), Constraint("dim", ("int",), False, -1, axis=True))
    operation = Operation("torch", "torch.softmax", "function", parameters)
    known = Instance("torch", "torch.softmax", "function", (_held(2, 3), 0), source="tests")
    method = Instance("torch", "torch.softmax", "method", (_held(2, 3), 0), source="tests")
    ((subject, found),) = subjects_of([operation], [known, method])
    assert found == [known]
    values = parameters_of(subject, known)
    assert values is not None
    made: list[Value] = [change.values["dim"] for change in attributes(StepView(subject, values, (), random.Random(0)))]
    assert {None, 1, -1, -2} <= set(made)
    assert rebuilt(subject, known, {**values, "dim": 1}).kwargs == {"dim": 1}
