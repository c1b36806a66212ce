"""Concrete sizes in place of symbols, and structural operands that follow from them."""

import numpy as np
import pytest

from miscompile.base.errors import ModelError
from miscompile.core.case import Port
from miscompile.core.tensor import tensor
from miscompile.graph.attributes import attributes
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.graph.specialise import bindings, folded, is_symbolic, specialised

X = ValueInfo("x", TensorType("float32", ("N", 3, "M")))


def model(nodes: tuple[Node, ...], outputs: tuple[str, ...], **constants: int) -> Model:
    known = {name: tensor(np.array([value]), "int64") for name, value in constants.items()}
    infos = tuple(ValueInfo(name, TensorType("float32", None)) for name in outputs)
    return Model(Graph("g", (X,), infos, nodes, known), {"": 18})


def chain() -> Model:
    """Return Reshape(x, [M * 3, N])."""
    return model(
        (
            Node("Shape", ("x",), ("s",)),
            Node("Gather", ("s", "last"), ("m",)),
            Node("Mul", ("m", "three"), ("w",)),
            Node("Slice", ("s", "zero", "one"), ("n",)),
            Node("Concat", ("w", "n"), ("t",), attributes({"axis": 0})),
            Node("Reshape", ("x", "t"), ("y",)),
        ),
        ("y",),
        last=2,
        three=3,
        zero=0,
        one=1,
    )


def test_shape_arithmetic_becomes_constants() -> None:
    done = folded(specialised(chain(), {"x": (2, 3, 5)})).graph
    assert [node.op for node in done.nodes] == ["Reshape"]
    assert done.initializers["t"].array.tolist() == [15, 2]


def test_what_is_symbolic_stays() -> None:
    written = chain()
    done = folded(written).graph
    assert (done.nodes, done.initializers) == (written.graph.nodes, written.graph.initializers)


def test_a_computed_value_that_is_an_output_is_still_computed() -> None:
    written = model((Node("Shape", ("x",), ("s",)), Node("Expand", ("x", "s"), ("y",))), ("s", "y"))
    done = folded(specialised(written, {"x": (2, 3, 5)})).graph
    assert [node.op for node in done.nodes] == ["Shape", "Expand"]
    assert done.initializers[done.nodes[1].inputs[1]].array.tolist() == [2, 3, 5]


def test_integers_that_do_not_follow_from_shapes_are_left_alone() -> None:
    written = model((Node("Mul", ("a", "b"), ("c",)), Node("Tile", ("x", "c"), ("y",))), ("y",), a=1, b=2)
    assert folded(specialised(written, {"x": (2, 3, 5)})).graph.nodes == written.graph.nodes


@pytest.mark.parametrize(("start", "end", "wanted"), [(None, None, [2, 3, 5]), (-1, None, [5]), (0, 9, [2, 3, 5])])
def test_shape_takes_slices(start: int | None, end: int | None, wanted: list[int]) -> None:
    node = Node("Shape", ("x",), ("s",), attributes({"start": start, "end": end}))
    written = model((node, Node("ConstantOfShape", ("s",), ("y",))), ("y",))
    done = folded(specialised(written, {"x": (2, 3, 5)})).graph
    assert done.initializers["s"].array.tolist() == wanted


def test_inner_types_and_outputs_lose_their_symbols() -> None:
    kind = TensorType("float32", ("N", None, "K"))
    graph = Graph("g", (X,), (ValueInfo("y", kind),), (Node("Relu", ("x",), ("y",)),), types={"y": kind})
    done = specialised(Model(graph, {"": 18}), {"x": (2, 3, 5)}).graph
    assert done.outputs[0].type == done.types["y"] == TensorType("float32", (2, None, "K"))


def test_symbols_bind_once() -> None:
    declared = [("a", ("N", 1)), ("b", ("N", None))]
    assert bindings(declared, {"a": (2, 1), "b": (2, 9)}) == {"N": 2}
    with pytest.raises(ModelError, match="size 3"):
        bindings(declared, {"a": (2, 1), "b": (3, 9)})
    with pytest.raises(ModelError, match="axes"):
        bindings(declared, {"a": (2,)})


def test_ports_without_fixed_sizes_are_symbolic() -> None:
    assert not is_symbolic([Port("a", "float32", (0, 1))])
    assert is_symbolic([Port("a", "float32", (0, "N"))])
    assert is_symbolic([Port("a", "float32", None)])
