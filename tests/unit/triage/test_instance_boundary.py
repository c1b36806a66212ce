"""The boundary of an instance: each aspect has values that show the bug and values that work; invalid ones neither."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from miscompile.core.tensor import Tensor, tensor
from miscompile.instances.instance import Instance, Parent
from miscompile.instances.values import Held, Name
from miscompile.triage.boundary import boundary_from
from miscompile.triage.instance_boundary import ProbedInstance, instance_probes
from miscompile.triage.reduce.engine import Budget
from miscompile.triage.reduce.instances import InstanceDrafts


def held(*shape: int, dtype: str = "float32") -> Held:
    return Held(tensor(np.ones(shape), dtype))


def boundary(given: Instance, asked: Callable[[Instance], bool | None], parent: Parent | None = None) -> dict[str, Any]:
    probes = instance_probes(ProbedInstance(given, parent), InstanceDrafts())
    return boundary_from(probes, asked, Budget(1000))


def data(one: Instance) -> Tensor:
    value = one.inputs[0] if one.inputs else one.args[0]
    assert isinstance(value, Held)
    return value.tensor


SOFTMAX = Instance("onnx", "Softmax", "node", kwargs={"axis": 1}, inputs=(held(2, 3),), version=15)
CLIP = Instance("onnx", "Clip", "node", inputs=(held(3), held(), held()), version=13)


def test_aspects_of_a_node_list_what_shows_and_what_works() -> None:
    def asked(one: Instance) -> bool | None:
        axis, kind = one.kwargs.get("axis", -1), data(one)
        if not isinstance(axis, int) or not -len(kind.shape) <= axis < len(kind.shape):
            return None
        return kind.dtype in ("float32", "float16") and axis == len(kind.shape) - 1 and kind.shape[-1] != 8

    found = boundary(SOFTMAX, asked)
    assert found["element type of `input`"] == {"shows": ["float32", "float16"], "works": ["bfloat16", "float64"]}
    assert found["`axis`"] == {"shows": ["1"], "works": ["left out", "0", "-1"]}
    assert found["rank of `input`"]["shows"] == ["2", "1", "3", "4"]
    assert found["size 3 of `input`"]["works"] == ["8"]
    assert found["size 2 of `input`"]["works"] == []
    assert found["opset"]["shows"] == ["15", "14", "13"]


def test_optional_operands_are_left_out_and_operands_are_fed_or_constant() -> None:
    def asked(one: Instance) -> bool | None:
        return one.inputs[2] is not None and one.operands == "first fed"

    found = boundary(replace(CLIP, operands="first fed"), asked)
    assert found["`max`"] == {"shows": ["given"], "works": ["left out"]}
    assert found["operands"]["shows"] == ["all but the first are constants"]
    assert "all are inputs" in found["operands"]["works"]


def test_a_size_changes_with_the_numbers_that_equal_it() -> None:
    linear = Instance("torch", "torch.nn.Linear", "module", (3, 5), {"bias": True}, (held(2, 3),))

    def asked(one: Instance) -> bool | None:
        return one.args[0] == 3 if data(one).shape[-1:] == one.args[:1] else None

    found = boundary(linear, asked, Parent(replace(linear, kwargs={"bias": False}), {"0": "in_features"}))
    assert found["size 3 of `input 0`"]["shows"] == ["3"]
    assert "17" in found["size 3 of `input 0`"]["works"]
    assert found["`bias`"] == {"shows": ["True", "left out", "False"], "works": []}
    assert "`in_features`" not in found  # no other value fits the tensor


def test_names_of_element_types_go_with_the_tensors() -> None:
    ones = Instance("torch", "torch.sum", "function", (held(3),), {"dtype": Name("dtype", "float32")})
    found = boundary(ones, lambda one: one.kwargs.get("dtype") == Name("dtype", data(one).dtype))
    assert len(found["element type of `argument 0`"]["shows"]) == 4
    assert found["`dtype`"]["shows"] == ["float32"]


def test_the_first_valid_program_with_a_value_counts() -> None:
    tall = replace(SOFTMAX, kwargs={"axis": 0})
    moved = boundary(tall, lambda one: None if len(data(one).shape) == 3 and one.kwargs["axis"] == 1 else True)
    assert "3" in moved["rank of `input`"]["shows"]


def test_what_a_module_is_fed_with_is_one_of_the_policies() -> None:
    norm = Instance("torch", "torch.nn.functional.layer_norm", "function", (held(2, 3), (3,)), {"weight": held(3)})
    found = boundary(norm, lambda one: one.operands != "first fed")
    assert found["operands"] == {"shows": ["all are inputs"], "works": ["all but the first are constants"]}


def test_a_number_that_is_one_is_no_size() -> None:
    conv = Instance("torch", "torch.nn.Conv1d", "module", (1, 4, 1), {}, (held(2, 1, 5),))
    found = boundary(conv, lambda one: None if data(one).shape[1] != one.args[0] else one.args[2] == 1)
    assert "size 1 of `input 0`" not in found


def test_a_variant_with_too_many_elements_is_not_made() -> None:
    deep = replace(SOFTMAX, inputs=(held(*(2,) * 8),), kwargs={})
    probes = list(instance_probes(ProbedInstance(deep), InstanceDrafts()))
    assert max(one.draft.elements() for one in probes) <= 1 << 16


def test_a_scalar_has_no_rank_below() -> None:
    scalar = Instance("torch", "torch.abs", "function", (held(),))
    assert boundary(scalar, lambda one: True)["rank of `argument 0`"] == {"shows": ["0", "1", "2"], "works": []}


def test_operands_are_shared_only_where_some_are_equal() -> None:
    def policies(*starts: int) -> list[str]:
        numbers = tuple(Held(tensor(np.asarray(one, np.float32))) for one in starts)
        span = Instance("onnx", "Range", "node", inputs=numbers, version=11)
        return list(boundary(span, lambda one: True)["operands"]["shows"])

    assert policies(0, 4, 1) == [
        "all are inputs", "all but the first are constants", "only the first is a constant",
        "all are constants",
    ]  # fmt: skip
    assert policies(1, 4, 1)[-1] == "equal ones are the same value"
