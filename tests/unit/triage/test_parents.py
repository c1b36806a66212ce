"""A neighbour goes back to the library's test as far as its bug allows, and names the differences that are needed."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from miscompile.core.tensor import tensor
from miscompile.instances.instance import Instance, Parent
from miscompile.instances.values import Held
from miscompile.triage.parents import NearestInstance, nearest
from miscompile.triage.reduce.engine import Budget

TEST = Instance(
    "onnx", "Pad", "node", (), {"mode": "constant"},
    (Held(tensor(np.ones((2, 3), np.float32))), Held(tensor(np.array([0, 1, 0, 1])))),
    version=18, source="tests", origin="test_pad",
)  # fmt: skip
NEAR = replace(
    TEST, kwargs={"mode": "edge"}, inputs=(Held(tensor(np.zeros((2, 0), np.float16))), TEST.inputs[1]),
    operands="fed", source="neighbours", origin="mode 'constant' -> 'edge' and ...; from test_pad",
)  # fmt: skip
PARENT = Parent(TEST, {"input 0": "data", "input 1": "pads"})


def found_for(shows: Callable[[Instance], bool], tries: int = 100) -> NearestInstance:
    near = nearest(NEAR, PARENT, shows, Budget(tries))
    assert near is not None
    return near


def shape(one: Instance) -> tuple[int, ...]:
    value = one.inputs[0]
    assert isinstance(value, Held)
    return value.tensor.shape


def test_only_the_differences_that_the_bug_needs_are_left() -> None:
    near = found_for(lambda one: one.operands == "fed" and shape(one) == (2, 0))
    assert near.as_json() == {
        "test": "test_pad",
        "needed": ["shape of data [2, 3] -> [2, 0]", "every operand fed"],
        "undone": ["mode 'constant' -> 'edge'", "data float32 -> float16"],
    }
    assert near.instance.kwargs == TEST.kwargs
    assert (near.instance.origin, near.instance.source) == (NEAR.origin, "neighbours")


def test_a_bug_of_the_test_itself_needs_no_difference() -> None:
    near = found_for(lambda one: True)
    assert near.needed == ()
    assert near.instance.inputs == TEST.inputs


def test_a_difference_that_can_go_only_after_another_one_goes() -> None:
    def shows(one: Instance) -> bool:
        return one.operands == "fed" and not (one.kwargs["mode"] == "edge" and shape(one) == (2, 3))

    assert found_for(shows).needed == ("every operand fed",)


def test_what_a_spent_budget_leaves_counts_as_needed() -> None:
    near = found_for(lambda one: True, tries=0)
    assert near.instance is NEAR
    assert near.undone == ()


def test_an_instance_that_is_its_own_parent_has_nothing_to_undo() -> None:
    assert nearest(TEST, PARENT, lambda one: True, Budget()) is None
