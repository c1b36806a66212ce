"""The models of the conformance kit. This package must work where onnx is not installed, so nothing here imports it.

All numbers in the feeds are small integers, so that every correct target gives exactly the expected bits.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from miscompile.core.case import Case, Feed, Port, Program
from miscompile.core.tensor import Array, Tensor, tensor
from miscompile.graph.model import Attribute, Graph, Model, Node, TensorType, ValueInfo
from miscompile.graph.wire import model_bytes

OPSET, IR_VERSION = 13, 7
"""Old enough for every target."""

_SWAPPED = {"perm": Attribute("ints", (1, 0))}


@dataclass(frozen=True, slots=True)
class Exhibit:
    """A kit case with the outputs that every correct target gives, for each feed."""

    name: str
    case: Case
    expected: tuple[Feed, ...]


def exhibit(
    name: str,
    feeds: Sequence[Sequence[Array]],
    results: Sequence[Sequence[Array]],
    nodes: Sequence[Node],
    constants: Mapping[str, Array] | None = None,
) -> Exhibit:
    """Make an exhibit whose inputs are x0, x1, ... and whose outputs are y0, y1, ..."""
    given = tuple(tuple(map(tensor, feed)) for feed in feeds)
    expected = tuple(tuple(map(tensor, outputs)) for outputs in results)
    return _exhibit(name, given, expected, nodes, {key: tensor(value) for key, value in (constants or {}).items()})


def _exhibit(
    name: str,
    feeds: tuple[Feed, ...],
    expected: tuple[Feed, ...],
    nodes: Sequence[Node],
    constants: Mapping[str, Tensor],
) -> Exhibit:
    inputs = tuple(Port(f"x{i}", value.dtype, value.shape) for i, value in enumerate(feeds[0]))
    outputs = tuple(Port(f"y{i}", value.dtype, value.shape, exact=True) for i, value in enumerate(expected[0]))
    graph = Graph("kit", tuple(map(_info, inputs)), tuple(map(_info, outputs)), tuple(nodes), constants)
    payload = model_bytes(Model(graph, {"": OPSET}, (), IR_VERSION))
    program = Program("onnx", payload, inputs, outputs)
    return Exhibit(name, Case(program, feeds), expected)


def _info(port: Port) -> ValueInfo:
    return ValueInfo(port.name, TensorType(port.dtype, port.shape))


def _floats(*shape: int, start: int = -3) -> Array:
    return (np.arange(int(np.prod(shape)), dtype=np.float32) % 7 + np.float32(start)).reshape(shape)


def exhibits() -> tuple[Exhibit, ...]:
    """Return the models that every target must run: each is a trap that some target has fallen into."""
    a, b, w, v = _floats(3, 4), _floats(4, start=1), _floats(4, 5), _floats(5, 2, start=-1)
    scalar, empty = np.asarray(np.float32(5)), np.zeros((0, 3), np.float32)
    chain = np.maximum(a @ w + np.float32(1), 0) @ v
    return (
        exhibit("Add of two inputs", [(a, b)], [(a + b,)], [Node("Add", ("x0", "x1"), ("y0",))]),
        exhibit(
            "chain of MatMul, Add, Relu, MatMul",
            [(a,)],
            [(chain,)],
            [
                Node("MatMul", ("x0", "w"), ("p",)),
                Node("Add", ("p", "one"), ("q",)),
                Node("Relu", ("q",), ("r",)),
                Node("MatMul", ("r", "v"), ("y0",)),
            ],
            {"w": w, "v": v, "one": np.ones(5, np.float32)},
        ),
        exhibit(
            "three outputs: two inner values and a copy of the input",
            [(a,)],
            [(np.maximum(a, 0), a, np.maximum(a, 0) ** 2)],
            [Node("Relu", ("x0",), ("y0",)), Node("Identity", ("x0",), ("y1",)), Node("Mul", ("y0", "y0"), ("y2",))],
        ),
        exhibit("rank 0", [(scalar, scalar)], [(scalar * 2,)], [Node("Add", ("x0", "x1"), ("y0",))]),
        exhibit("no elements", [(empty,)], [(empty.T,)], [Node("Transpose", ("x0",), ("y0",), _SWAPPED)]),
        exhibit(
            "three feeds",
            [(a, b), (-a, b), (a + 8, b - 2)],
            [(b - a,), (b + a,), (b - a - 10,)],
            [Node("Sub", ("x1", "x0"), ("y0",))],
        ),
        exhibit(
            "removable calls",
            [(a,)],
            [(a * 2,)],
            [
                Node("Transpose", ("x0",), ("p",), _SWAPPED),
                Node("Identity", ("p",), ("q",)),
                Node("Transpose", ("q",), ("r",), _SWAPPED),
                Node("Mul", ("r", "two"), ("y0",)),
            ],
            {"two": np.asarray(np.float32(2))},
        ),
    )


def identity(dtype: str) -> Exhibit:
    """Return the model that copies a vector of `dtype` with bits of every kind."""
    words = np.arange(6)
    value = tensor(words % 2 == 0) if dtype == "bool" else tensor(words.astype(np.float32), dtype)
    node = Node("Identity", ("x0",), ("y0",))
    return _exhibit(f"Identity of {dtype}", ((value,),), ((value,),), [node], {})


def unknown_operator() -> Case:
    """Return a model with an operator that no target has."""
    value = _floats(2)
    return exhibit("unknown", [(value,)], [(value,)], [Node("NoSuchOperatorAnywhere", ("x0",), ("y0",))]).case


def broken() -> tuple[Case, ...]:
    """Return programs that are no valid models: noise, a truncated model, a value without definition."""
    value = _floats(2)
    whole = exhibit("whole", [(value,)], [(value,)], [Node("Relu", ("x0",), ("y0",))]).case
    loose = exhibit("loose", [(value,)], [(value,)], [Node("Relu", ("nowhere",), ("y0",))]).case
    program = whole.program
    noise = Program("onnx", bytes(range(255, 0, -1)), program.inputs, program.outputs)
    cut = Program("onnx", program.payload[:-25], program.inputs, program.outputs)
    return Case(noise, whole.feeds), Case(cut, whole.feeds), loose
