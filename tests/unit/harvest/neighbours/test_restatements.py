"""Neighbours in other versions of their operator."""

from dataclasses import replace

import numpy as np

from miscompile.core.tensor import tensor
from miscompile.harvest.neighbours.onnx import refusal, restatements
from miscompile.instances.instance import Instance, Parent
from miscompile.instances.values import Held, Value


def node(api: str, *inputs: object, version: int, source: str = "neighbours", **kwargs: Value) -> Instance:
    held = tuple(Held(tensor(np.asarray(one))) for one in inputs)
    return Instance("onnx", api, "node", kwargs=kwargs, inputs=held, version=version, source=source, origin="a step")


def test_a_neighbour_is_restated_with_its_parent() -> None:
    x, axes = np.zeros((1, 3, 1), np.float32), np.array([0])
    test = node("Squeeze", x + 1, axes, version=21, source="tests")
    neighbour = replace(node("Squeeze", x, axes, version=21), parent=Parent(test))
    found = {one.version: one for one in restatements(neighbour)}
    assert found.keys() >= {1, 11, 13}
    old = found[11]
    assert (old.kwargs, len(old.inputs), old.source, old.origin) == ({"axes": (0,)}, 1, "neighbours", "a step")
    assert old.parent is not None
    assert (old.parent.instance.version, old.parent.instance.source) == (11, "tests")
    assert old.parent.names == {"input 0": "data"}
    assert all(not refusal(one) for one in found.values())


def test_what_a_version_cannot_express_is_not_restated() -> None:
    shuffled = node("Reshape", np.zeros((2, 0), np.float32), np.array([0, 3]), version=21, allowzero=1)
    assert {one.version for one in restatements(shuffled)} <= {14, 19, 23, 24, 25}
