"""Rules of the user's own in an e-graph: alone, or with groups of the library; unsound ones are refused at once."""

from pathlib import Path

import numpy as np
import pytest

from miscompile.base.errors import SpecError
from miscompile.base.specs import Spec
from miscompile.core.tensor import tensor
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.transforms.catalogue import transform_of
from miscompile.transforms.egraph.transform import Saturated

KIND = TensorType("float32", (2, 3))
RULE = """
[[rule]]
name = "{name}"
group = "mine"
left = "Sub(x, y)"
right = "{right}"
exactness = "bits"
dtypes = ["float32"]
source = "mine"
"""


def model() -> Model:
    nodes = (Node("Sub", ("x", "w"), ("s",)), Node("Mul", ("s", "x"), ("y",)))
    constants = {"w": tensor(np.ones((2, 3), np.float32))}
    graph = Graph("g", (ValueInfo("x", KIND),), (ValueInfo("y", KIND),), nodes, constants)
    return Model(graph, {"": 18})


def written(place: Path, right: str) -> Path:
    path = place / "mine.toml"
    path.write_text(RULE.format(name="sub-as-add-of-neg", right=right), "utf-8")
    return path


def in_file(path: Path) -> Spec:
    return Spec("egraph", (("file", str(path)),))


def test_a_rule_of_ones_own_is_used_alone(tmp_path: Path) -> None:
    transform = transform_of(in_file(written(tmp_path, "Add(x, Neg(y))")))
    assert isinstance(transform, Saturated)
    assert sorted(node.op for node in transform.apply(model()).graph.nodes) == ["Add", "Mul", "Neg"]


def test_an_unsound_rule_is_refused_before_it_is_used(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="sub-as-add-of-neg is not sound"):
        transform_of(in_file(written(tmp_path, "Sub(y, x)")))


def test_a_file_that_is_not_there_is_said_plainly(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"nowhere\.toml"):
        transform_of(in_file(tmp_path / "nowhere.toml"))
