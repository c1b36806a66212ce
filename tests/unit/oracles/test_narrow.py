"""What may be asked of a program when a compiler computes a type in a narrower one by design."""

from typing import Any

import numpy as np
import pytest

from miscompile.core.case import Case
from miscompile.core.tensor import tensor
from miscompile.graph.emit import to_program
from miscompile.graph.model import Attribute, Graph, Model, Node, TensorType, ValueInfo
from miscompile.oracles.narrow import exceed, fit_of

NARROWED = {"float64": "float32", "int64": "int32", "uint64": "int32", "int8": "int8", "uint8": "uint8"}


def twice(dtype: str, *numbers: Any) -> Case:
    kind = TensorType(dtype, (len(numbers),))
    graph = Graph("g", (ValueInfo("x", kind),), (ValueInfo("y", kind),), (Node("Add", ("x", "x"), ("y",)),))
    return Case(to_program(Model(graph, {"": 18})), ((tensor(np.array(numbers), dtype),),))


@pytest.mark.parametrize(
    ("dtype", "number", "fit"),
    [
        ("int64", 5, "fits"),
        ("int64", 2**31 - 1, "overflows"),
        ("int64", 2**30 + 1, "overflows"),
        ("int64", -(2**31), "overflows"),
        ("uint64", 2**32, "overflows"),
        ("float64", 5.0, "fits"),
        ("float64", 0.5, "rounds"),
        ("float64", 2.0**24, "rounds"),
        ("float32", 0.5, "fits"),
        ("int8", 60, "fits"),
        ("int8", 100, "overflows"),
        ("int8", -128, "overflows"),
        ("uint8", 100, "fits"),
        ("uint8", 200, "overflows"),
        ("uint8", 0, "fits"),
        ("int16", 2**14, "fits"),
    ],
)
def test_values_fit_the_narrower_type_or_not(dtype: str, number: float, fit: str) -> None:
    assert fit_of(twice(dtype, number), NARROWED) == fit


def test_float16_overflows_where_other_floats_only_round() -> None:
    for number, fit in ((5.0, "fits"), (0.5, "rounds"), (3e4, "rounds"), (4e4, "overflows")):
        assert fit_of(twice("float32", number), {"float32": "float16"}) == fit
    assert fit_of(twice("float64", 4e4), {"float64": "float32"}) == "fits"


def test_nothing_narrowed_means_that_everything_fits() -> None:
    assert fit_of(twice("int64", 2**62), {}) == "fits"


def branching(op: str, number: int) -> Case:
    """An If whose branches hand on the first element of what `op` makes of an input."""
    kind = TensorType("int64", (1,))
    nodes = (Node(op, ("x",), ("t",)), Node("ReduceMax", ("t",), ("m",)), Node("Reshape", ("m", "one"), ("z",)))
    body = Graph("b", (), (ValueInfo("z", kind),), nodes)
    branches = {"then_branch": Attribute("graph", body), "else_branch": Attribute("graph", body)}
    block = (Node("If", ("c",), ("y",), branches), Node("Min", ("y", "one"), ("w",)))
    inputs = (ValueInfo("c", TensorType("bool", ())), ValueInfo("x", kind))
    one = tensor(np.array([1], np.int64))
    model = Model(Graph("g", inputs, (ValueInfo("w", kind),), block, {"one": one}), {"": 18})
    return Case(to_program(model), ((tensor(np.array(True)), tensor(np.array([number], np.int64))),))


def test_values_within_bodies_count() -> None:
    assert fit_of(branching("Neg", 5), NARROWED) == "fits"
    assert fit_of(branching("Neg", 2**40), NARROWED) == "overflows"


def test_what_is_not_known_may_overflow() -> None:
    assert fit_of(branching("NonZero", 1), NARROWED) == "overflows"


@pytest.mark.parametrize(
    ("dtype", "number", "expected"),
    [
        ("int64", 2**31, True),
        ("int64", 2**31 - 1, False),
        ("int64", -(2**31) - 1, True),
        ("float64", 1e39, True),
        ("float64", 1e38, False),
        ("float64", float("inf"), False),
        ("int8", 127, False),
        ("float32", 1e38, False),
    ],
)
def test_operands_exceed_the_narrower_type_or_not(dtype: str, number: float, expected: bool) -> None:
    value = tensor(np.array([0, number], np.int64 if isinstance(number, int) else np.float64), dtype)
    narrowed = {"int64": "int32", "float64": "float32", "int8": "int8"}
    assert exceed([value], narrowed) == expected
    assert not exceed([value], {})
