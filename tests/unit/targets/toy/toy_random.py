"""Random programs of exact calls: every optimisation must keep their results to the last bit."""

import random

import numpy as np
from numpy.typing import ArrayLike
from toy_bench import case, node

from miscompile.core.case import Case
from miscompile.graph.attributes import PlainValue
from miscompile.graph.model import Node

KINDS = ("int8", "uint8", "int32", "float32", "bool")
SHAPES = ((2, 3), (3,), (), (1, 3), (2, 1), (2, 3, 2))
BINARY = {"bool": ("And", "Or", "Xor")}
UNARY = {
    "bool": ("Identity", "Not"),
    "uint8": ("Identity",),
    "int8": ("Identity", "Relu", "Abs", "Neg"),
    "int32": ("Identity", "Relu", "Neg"),
    "float32": ("Identity", "Relu", "Neg", "Dropout"),
}

ToyShape = tuple[int, ...]


def broadcasts(first: ToyShape, second: ToyShape) -> bool:
    return all(a == b or 1 in (a, b) for a, b in zip(first[::-1], second[::-1], strict=False))


class Draft:
    """A program that grows call by call; `known` holds (name, dtype, shape) of every value."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.draw = np.random.default_rng(rng.randrange(1 << 30))
        self.feed: dict[str, ArrayLike] = {}
        self.constants: dict[str, ArrayLike] = {}
        self.nodes: list[Node] = []
        self.known: list[tuple[str, str, ToyShape]] = []
        for index in range(3):
            dtype, shape = rng.choice(KINDS), rng.choice(SHAPES)
            self.feed[f"x{index}"] = self.draw.integers(0, 2 if dtype == "bool" else 9, shape).astype(dtype)
            self.known.append((f"x{index}", dtype, shape))

    def constant(self, value: ArrayLike) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = value
        return name

    def add(self, op: str, inputs: str, dtype: str, shape: ToyShape, **attributes: PlainValue) -> None:
        name = f"v{len(self.nodes)}"
        self.nodes.append(node(op, inputs, name, **attributes))
        if len(shape) <= 4 and int(np.prod(shape)) <= 64:
            self.known.append((name, dtype, shape))

    def grow(self) -> None:
        name, dtype, shape = self.rng.choice(self.known[-6:])
        steps = (
            self.binary,
            self.binary,
            self.binary,
            self.unary,
            self.cast,
            self.transpose,
            self.reshape,
            self.reduce,
        )
        self.rng.choice(steps)(name, dtype, shape)

    def unary(self, name: str, dtype: str, shape: ToyShape) -> None:
        self.add(self.rng.choice(UNARY[dtype]), name, dtype, shape)

    def cast(self, name: str, dtype: str, shape: ToyShape) -> None:
        del dtype
        to = self.rng.choice(KINDS)
        self.add("Cast", name, to, shape, to=to)

    def binary(self, name: str, dtype: str, shape: ToyShape) -> None:
        peers = [entry for entry in self.known if entry[1] == dtype and broadcasts(entry[2], shape)]
        other, _, size = self.rng.choice(peers)
        if self.rng.random() < 0.4:
            size = self.rng.choice([size for size in (*SHAPES, shape) if broadcasts(size, shape)])
            other = self.constant(np.full(size, self.rng.choice([0, 1, 2, 4]), dtype))
        pair = [name, other]
        self.rng.shuffle(pair)
        op = self.rng.choice(BINARY.get(dtype, ("Add", "Sub", "Mul", "Max", "Min")))
        self.add(op, " ".join(pair), dtype, np.broadcast_shapes(shape, size))

    def transpose(self, name: str, dtype: str, shape: ToyShape) -> None:
        perm = self.rng.sample(range(len(shape)), len(shape))
        if perm:
            self.add("Transpose", name, dtype, tuple(shape[axis] for axis in perm), perm=perm)

    def reshape(self, name: str, dtype: str, shape: ToyShape) -> None:
        size = int(np.prod(shape))
        target, made = self.rng.choice([([-1], (size,)), ([*shape, 1], (*shape, 1)), ([1, -1], (1, size))])
        if shape and self.rng.random() < 0.4:
            target, made = [0, -1], (shape[0], size // shape[0])
        self.add("Reshape", f"{name} {self.constant(np.array(target, np.int64))}", dtype, made)

    def reduce(self, name: str, dtype: str, shape: ToyShape) -> None:
        if not shape:
            return
        keep, axis = self.rng.randint(0, 1), self.rng.randrange(len(shape))
        op = self.rng.choice(("ReduceSum", "ReduceMax") if dtype in ("int32", "float32") else ("ReduceMax",))
        made = (*shape[:axis], *([1] * keep), *shape[axis + 1 :])
        self.add(op, f"{name} {self.constant(np.array([axis], np.int64))}", dtype, made, keepdims=keep)


def random_case(rng: random.Random) -> Case:
    """Make a program of 2 to 14 calls with up to three outputs."""
    draft = Draft(rng)
    while len(draft.nodes) < 2 or (len(draft.nodes) < 14 and rng.random() < 0.9):
        draft.grow()
    outputs = rng.sample([made.outputs[0] for made in draft.nodes], min(3, len(draft.nodes)))
    return case(draft.nodes, draft.feed, " ".join(outputs), draft.constants, opset=20)
