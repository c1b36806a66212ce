"""Operator instances are reduced: every edit costs less, and the smallest one that a bug needs is reached."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from miscompile.core.tensor import tensor
from miscompile.instances.instance import Instance
from miscompile.instances.values import Held
from miscompile.triage.reduce.instances import InstanceDrafts

GIVEN = Instance(
    "onnx", "Pad", "node", (), {"mode": "constant"},
    (
        Held(tensor(np.arange(24, dtype=np.float16).reshape(1, 2, 3, 4))),
        Held(tensor(np.array([0, 0, 1, 1, 0, 0, 1, 1]))),
        Held(tensor(np.asarray(7.5, np.float16))),
    ),
    version=17, source="tests", origin="test_Pad",
)  # fmt: skip


def reduced(given: Instance, shows: Callable[[Instance], bool]) -> Instance:
    """Take the first edit that costs less and shows the bug, until there is none."""
    kind, current, known = InstanceDrafts(), given, set[Any]()
    while True:
        for reduction in kind.reductions():
            found = next(
                (
                    one
                    for one in map(kind.tidy, reduction.edits(current))
                    if kind.cost(one) < kind.cost(current) and shows(one)
                ),
                None,
            )
            if found is not None:
                assert kind.digest(found) not in known
                known.add(kind.digest(found))
                current = found
                break
        else:
            return current


def first(instance: Instance) -> Any:
    value = instance.inputs[0]
    assert isinstance(value, Held)
    return value.tensor


def test_a_bug_of_the_operator_alone_leaves_a_single_plain_number() -> None:
    left = reduced(GIVEN, lambda one: bool(one.inputs) and isinstance(one.inputs[0], Held))
    assert (len(left.inputs), left.kwargs) == (1, {})
    assert first(left).array.size == 1
    assert first(left).dtype == "float32"
    assert not first(left).array.any()


def test_the_parameters_that_a_bug_needs_stay() -> None:
    def shows(one: Instance) -> bool:
        return (
            "mode" in one.kwargs
            and isinstance(one.inputs[0], Held)
            and len(one.inputs) > 1
            and one.inputs[1] is not None
            and first(one).dtype == "float16"
        )

    left = reduced(GIVEN, shows)
    assert left.kwargs == {"mode": "constant"}
    assert len(left.inputs) == 2
    assert first(left).dtype == "float16"


def test_trailing_absent_inputs_of_a_node_go() -> None:
    absent = replace(GIVEN, inputs=(*GIVEN.inputs, None, None))
    assert InstanceDrafts().tidy(absent) == GIVEN
