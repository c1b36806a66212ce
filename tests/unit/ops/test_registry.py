"""An operator is one file: the registry finds its module, and others read from its spec what they must know."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from miscompile.core.tensor import Tensor, tensor
from miscompile.graph.attributes import attributes
from miscompile.graph.model import Node
from miscompile.ops import families as package
from miscompile.ops.facts import Facts, measure
from miscompile.ops.registry import FAMILIES, families, having, written
from miscompile.ops.spec import Call, Operand

ADDED = """
from dataclasses import replace

from miscompile.ops.families.vision import SPECS as ALL

SPECS = (replace(ALL[0], op="Upsample", family="added"),)
"""


@pytest.fixture
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Put one more module beside the families, and return its operator."""
    (tmp_path / "added.py").write_text(ADDED)
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    for function in (families, written, having):
        function.cache_clear()
    yield "Upsample"
    monkeypatch.undo()
    for function in (families, written, having):
        function.cache_clear()


def test_a_new_file_is_a_new_operator_after_all_others(added: str) -> None:
    assert list(written())[-1] == added
    assert families() == (*FAMILIES, "added")
    assert added in having("image-positions")


def test_the_order_names_modules_only() -> None:
    folder = Path(package.__path__[0])
    assert {f"{name}.py" for name in FAMILIES} <= {path.name for path in folder.iterdir()}


def operand(*shape: int, value: list[int] | None = None) -> Operand:
    if value is None:
        return Operand("x", "float32", shape, Facts(0.0, 1.0))
    array = np.array(value, np.int64)
    return Operand("s", "int64", array.shape, measure(array), array)


@pytest.mark.parametrize(
    ("op", "inputs", "shapes"),
    [
        ("Add", (operand(2, 3), operand(3)), ((2, 3), (3,))),
        ("MatMul", (operand(5, 2, 3), operand(3, 4)), ((5,), ())),
        ("Expand", (operand(1, 3), operand(value=[2, 1])), ((1, 3), (2, 1))),
        ("Conv", (operand(1, 2, 5), operand(3, 2, 3)), ()),
    ],
)
def test_what_broadcasts(op: str, inputs: tuple[Operand, ...], shapes: tuple[tuple[int, ...], ...]) -> None:
    assert written()[op].broadcast_shapes(Call(op, inputs)) == shapes


@pytest.mark.parametrize(
    ("op", "right", "defined"),
    [("Div", [2, -1], True), ("Div", [2, 0], False), ("Gather", [2, -3], True), ("Gather", [3], False)],
)
def test_elements_of_a_run_show_undefined_behaviour(op: str, right: list[int], defined: bool) -> None:
    operands: tuple[Tensor, ...] = (tensor(np.arange(3, dtype=np.int64)), tensor(np.array(right, np.int64)))
    node = Node(op, ("x", "y"), ("z",), attributes({}))
    assert written()[op].defined_on(node, operands.__getitem__) is defined
    assert written()[op].defined_on(node, lambda _: None), "what is not known does not count"


@pytest.mark.parametrize(
    ("pads", "axes", "defined"),
    [
        ([0, 0, 1, -3], None, True),
        ([2, 0, -3, 0], None, False),  # an element that the other side has added
        ([0, 0, 0, -4], None, False),
        ([-4, 0], [-1], False),
        ([-1, -2], [1], True),
        ([0, 0, 0], None, False),
    ],
)
def test_padding_crops_what_is_there(pads: list[int], axes: list[int] | None, defined: bool) -> None:
    operands = {0: tensor(np.zeros((2, 3), np.float32)), 1: tensor(np.array(pads, np.int64))}
    node = Node("Pad", ("x", "pads", "", "axes") if axes else ("x", "pads"), ("z",), attributes({}))
    assert written()["Pad"].defined_on(node, lambda _: None)
    if axes:
        assert written()["Pad"].defined_on(node, operands.get), "what is not known does not count"
        operands[3] = tensor(np.array(axes, np.int64))
    assert written()["Pad"].defined_on(node, operands.get) is defined


def test_a_range_without_delta_is_undefined() -> None:
    node, rule = Node("Range", ("a", "b", "c"), ("z",), attributes({})), written()["Range"].defined_on
    for delta in (0.0, -0.5):
        assert rule(node, {2: tensor(np.array(delta, np.float32))}.get) is bool(delta)
