"""The models of the conformance kit, written as bytes by hand: this package must work where onnx is not installed.

Field numbers are those of `onnx.proto`. All numbers in the feeds are small integers, so that every correct target gives
exactly the expected bits.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from miscompile.base.dtypes import DTYPES
from miscompile.core.case import Case, Feed, Port, Program
from miscompile.core.tensor import Array, Tensor, tensor

OPSET, IR_VERSION = 13, 7
"""Old enough for every target."""

_VARINT, _BYTES = 0, 2
_INT, _INTS = 2, 7


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes((*found, value))


def _number(tag: int, value: int) -> bytes:
    return _varint(tag << 3 | _VARINT) + _varint(value)


def _chunk(tag: int, data: bytes | str) -> bytes:
    data = data.encode() if isinstance(data, str) else data
    return _varint(tag << 3 | _BYTES) + _varint(len(data)) + data


@dataclass(frozen=True, slots=True)
class Step:
    """A node of a kit model; attributes are integers or lists of them."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, int | Sequence[int]] = field(default_factory=dict)

    def encode(self) -> bytes:
        """Return the NodeProto."""
        data = b"".join(_chunk(1, name) for name in self.inputs) + b"".join(_chunk(2, name) for name in self.outputs)
        data += _chunk(4, self.op)
        for name, value in self.attributes.items():
            if isinstance(value, int):
                body = _number(3, value) + _number(20, _INT)
            else:
                body = b"".join(_number(8, item) for item in value) + _number(20, _INTS)
            data += _chunk(5, _chunk(1, name) + body)
        return data


def _port(port: Port) -> bytes:
    assert port.shape is not None
    dims = b"".join(_chunk(1, _number(1, size)) for size in port.shape if isinstance(size, int))
    body = _number(1, DTYPES[port.dtype].code) + _chunk(2, dims)
    return _chunk(1, port.name) + _chunk(2, _chunk(1, body))


def _initializer(name: str, value: Tensor) -> bytes:
    dims = b"".join(_number(1, size) for size in value.shape)
    return dims + _number(2, DTYPES[value.dtype].code) + _chunk(8, name) + _chunk(9, value.array.tobytes())


def encode(
    inputs: Sequence[Port], outputs: Sequence[Port], steps: Sequence[Step], constants: Mapping[str, Tensor]
) -> bytes:
    """Return the serialised ModelProto."""
    graph = b"".join(_chunk(1, step.encode()) for step in steps) + _chunk(2, "kit")
    graph += b"".join(_chunk(5, _initializer(name, value)) for name, value in constants.items())
    graph += b"".join(_chunk(11, _port(port)) for port in inputs) + b"".join(
        _chunk(12, _port(port)) for port in outputs
    )
    return _number(1, IR_VERSION) + _chunk(7, graph) + _chunk(8, _chunk(1, "") + _number(2, OPSET))


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
    steps: Sequence[Step],
    constants: Mapping[str, Array] | None = None,
) -> Exhibit:
    """Make an exhibit whose inputs are x0, x1, ... and whose outputs are y0, y1, ..."""
    given = tuple(tuple(map(tensor, feed)) for feed in feeds)
    expected = tuple(tuple(map(tensor, outputs)) for outputs in results)
    return _exhibit(name, given, expected, steps, {key: tensor(value) for key, value in (constants or {}).items()})


def _exhibit(
    name: str,
    feeds: tuple[Feed, ...],
    expected: tuple[Feed, ...],
    steps: Sequence[Step],
    constants: Mapping[str, Tensor],
) -> Exhibit:
    inputs = tuple(Port(f"x{i}", value.dtype, value.shape) for i, value in enumerate(feeds[0]))
    outputs = tuple(Port(f"y{i}", value.dtype, value.shape, exact=True) for i, value in enumerate(expected[0]))
    program = Program("onnx", encode(inputs, outputs, steps, constants), inputs, outputs)
    return Exhibit(name, Case(program, feeds), expected)


def _floats(*shape: int, start: int = -3) -> Array:
    return (np.arange(int(np.prod(shape)), dtype=np.float32) % 7 + np.float32(start)).reshape(shape)


def exhibits() -> tuple[Exhibit, ...]:
    """Return the models that every target must run: each is a trap that some target has fallen into."""
    a, b, w, v = _floats(3, 4), _floats(4, start=1), _floats(4, 5), _floats(5, 2, start=-1)
    scalar, empty = np.asarray(np.float32(5)), np.zeros((0, 3), np.float32)
    chain = np.maximum(a @ w + np.float32(1), 0) @ v
    return (
        exhibit("Add of two inputs", [(a, b)], [(a + b,)], [Step("Add", ("x0", "x1"), ("y0",))]),
        exhibit(
            "chain of MatMul, Add, Relu, MatMul",
            [(a,)],
            [(chain,)],
            [
                Step("MatMul", ("x0", "w"), ("p",)),
                Step("Add", ("p", "one"), ("q",)),
                Step("Relu", ("q",), ("r",)),
                Step("MatMul", ("r", "v"), ("y0",)),
            ],
            {"w": w, "v": v, "one": np.ones(5, np.float32)},
        ),
        exhibit(
            "three outputs: two inner values and a copy of the input",
            [(a,)],
            [(np.maximum(a, 0), a, np.maximum(a, 0) ** 2)],
            [Step("Relu", ("x0",), ("y0",)), Step("Identity", ("x0",), ("y1",)), Step("Mul", ("y0", "y0"), ("y2",))],
        ),
        exhibit("rank 0", [(scalar, scalar)], [(scalar * 2,)], [Step("Add", ("x0", "x1"), ("y0",))]),
        exhibit("no elements", [(empty,)], [(empty.T,)], [Step("Transpose", ("x0",), ("y0",), {"perm": (1, 0)})]),
        exhibit(
            "three feeds",
            [(a, b), (-a, b), (a + 8, b - 2)],
            [(b - a,), (b + a,), (b - a - 10,)],
            [Step("Sub", ("x1", "x0"), ("y0",))],
        ),
        exhibit(
            "removable calls",
            [(a,)],
            [(a * 2,)],
            [
                Step("Transpose", ("x0",), ("p",), {"perm": (1, 0)}),
                Step("Identity", ("p",), ("q",)),
                Step("Transpose", ("q",), ("r",), {"perm": (1, 0)}),
                Step("Mul", ("r", "two"), ("y0",)),
            ],
            {"two": np.asarray(np.float32(2))},
        ),
    )


def identity(dtype: str) -> Exhibit:
    """Return the model that copies a vector of `dtype` with bits of every kind."""
    words = np.arange(6)
    value = tensor(words % 2 == 0) if dtype == "bool" else tensor(words.astype(np.float32), dtype)
    step = Step("Identity", ("x0",), ("y0",))
    return _exhibit(f"Identity of {dtype}", ((value,),), ((value,),), [step], {})


def unknown_operator() -> Case:
    """Return a model with an operator that no target has."""
    value = _floats(2)
    return exhibit("unknown", [(value,)], [(value,)], [Step("NoSuchOperatorAnywhere", ("x0",), ("y0",))]).case


def broken() -> tuple[Case, ...]:
    """Return programs that are no valid models: noise, a truncated model, a value without definition."""
    value = _floats(2)
    whole = exhibit("whole", [(value,)], [(value,)], [Step("Relu", ("x0",), ("y0",))]).case
    loose = exhibit("loose", [(value,)], [(value,)], [Step("Relu", ("nowhere",), ("y0",))]).case
    program = whole.program
    noise = Program("onnx", bytes(range(255, 0, -1)), program.inputs, program.outputs)
    cut = Program("onnx", program.payload[:-25], program.inputs, program.outputs)
    return Case(noise, whole.feeds), Case(cut, whole.feeds), loose
