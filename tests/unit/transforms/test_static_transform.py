"""The static form: sizes of a feed in place of symbols, in bytes and ports alike."""

import numpy as np
import pytest

from miscompile.base.errors import ModelError
from miscompile.core.case import Case, Feed, Port, Program
from miscompile.core.tensor import tensor
from miscompile.graph.emit import emit
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.graph.read import read
from miscompile.transforms.catalogue import STATIC, present
from miscompile.transforms.static import specialise


def program() -> Program:
    """Return y = Relu(x) with two symbols, and a sum whose size is not declared."""
    kind = TensorType("float32", ("N", 2, "M"))
    loose = TensorType("float32", (None, 2, "M"))
    graph = Graph(
        "g",
        (ValueInfo("x", kind),),
        (ValueInfo("y", kind), ValueInfo("z", loose)),
        (Node("Relu", ("x",), ("y",)), Node("Add", ("x", "y"), ("z",))),
        types={"y": kind},
    )
    ports = (Port("y", "float32", kind.shape, exact=True), Port("z", "float32", loose.shape))
    return Program("onnx", emit(Model(graph, {"": 18})), (Port("x", "float32", kind.shape),), ports)


def feed(*shape: int) -> Feed:
    return (tensor(np.ones(shape), "float32"),)


def test_symbols_become_sizes_and_flags_stay() -> None:
    static = specialise(program(), feed(3, 2, 0))
    assert static.inputs == (Port("x", "float32", (3, 2, 0)),)
    assert static.outputs == (Port("y", "float32", (3, 2, 0), exact=True), Port("z", "float32", (None, 2, 0)))
    graph = read(static.payload).graph
    assert graph.inputs[0].type == graph.types.get("y", graph.outputs[0].type) == TensorType("float32", (3, 2, 0))


def test_a_program_without_symbols_is_itself() -> None:
    static = specialise(program(), feed(3, 2, 1))
    assert specialise(static, feed(3, 2, 1)) is static


@pytest.mark.parametrize("shape", [(3, 3, 1), (3, 2), (2, 2, 2, 2)])
def test_a_feed_that_contradicts_the_signature_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ModelError):
        specialise(program(), feed(*shape))


def test_one_program_is_presented_for_each_set_of_sizes() -> None:
    case = Case(program(), (feed(1, 2, 3), feed(0, 2, 3), feed(1, 2, 3)))
    shares = present(case, STATIC)
    assert [share.feeds for share in shares] == [(0, 2), (1,)]
    assert [share.case.program.inputs[0].shape for share in shares] == [(1, 2, 3), (0, 2, 3)]
