"""Models as exporters write them: an attention block, a residual convolution, a recurrent cell, a loop."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from miscompile.graph.model import Model
from miscompile.graph.read import read

OPSET = 17


class Writer:
    """Collects nodes and weights; every method returns the name of what it made."""

    def __init__(self, seed: int) -> None:
        self.nodes: list[object] = []
        self.weights: list[object] = []
        self._random = np.random.default_rng(seed)

    def node(self, op: str, *inputs: str, domain: str = "", **attributes: object) -> str:
        name = f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], domain=domain, **attributes))
        return name

    def weight(self, *shape: int, low: float = -0.4, high: float = 0.4) -> str:
        return self.constant(self._random.uniform(low, high, shape).astype(np.float32))

    def constant(self, value: object) -> str:
        name = f"w_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def model(self, inputs: dict[str, tuple[int | str, ...]], *outputs: str, rank: int = 2) -> Model:
        infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()]
        results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * rank) for name in outputs]
        graph = helper.make_graph(self.nodes, "block", infos, results, self.weights)
        imports = [helper.make_opsetid("", OPSET), helper.make_opsetid("local", 1)]
        proto = helper.make_model(graph, opset_imports=imports, ir_version=8)
        return read(proto.SerializeToString())


def attention(width: int = 8, heads: int = 2) -> Model:
    """Self-attention with a residual and a layer normalisation; its reshapes are computed from Shape."""
    w = Writer(1)
    batch = w.node("Unsqueeze", w.node("Gather", w.node("Shape", "x"), w.constant(np.int64(0))), w.constant([0]))
    length = w.node("Unsqueeze", w.node("Gather", w.node("Shape", "x"), w.constant(np.int64(1))), w.constant([0]))
    parts = w.constant(np.array([heads, width // heads], np.int64))
    split = w.node("Concat", batch, length, parts, axis=0)
    whole = w.node("Concat", batch, length, w.constant(np.array([width], np.int64)), axis=0)

    def projected() -> str:
        flat = w.node("Add", w.node("MatMul", "x", w.node("Transpose", w.weight(width, width))), w.weight(width))
        return w.node("Transpose", w.node("Reshape", flat, split), perm=[0, 2, 1, 3])

    query, key, value = projected(), projected(), projected()
    scores = w.node("MatMul", query, w.node("Transpose", key, perm=[0, 1, 3, 2]))
    weights = w.node("Softmax", w.node("Div", scores, w.constant(np.float32(2))), axis=-1)
    mixed = w.node("Transpose", w.node("MatMul", weights, value), perm=[0, 2, 1, 3])
    summed = w.node("Add", w.node("Reshape", mixed, whole), "x")
    out = w.node("LayerNormalization", summed, w.weight(width, low=0.5, high=1.5), w.weight(width), axis=-1)
    return w.model({"x": ("batch", "length", width)}, out, rank=3)


def convolution() -> Model:
    """A convolution with batch normalisation, and a residual one."""
    w = Writer(2)

    def normalised(x: str, inner: int, group: int) -> str:
        made = w.node("Conv", x, w.weight(4, inner // group, 3, 3), w.weight(4), pads=[1, 1, 1, 1], group=group)
        scale, variance = w.weight(4, low=0.5, high=1.5), w.weight(4, low=0.5, high=2)
        return w.node("BatchNormalization", made, scale, w.weight(4), w.weight(4), variance)

    stem = w.node("Relu", normalised("image", 3, 1))
    body = w.node("HardSwish", normalised(stem, 4, 2))
    pooled = w.node("GlobalAveragePool", w.node("Add", stem, body))
    classes = w.node("Gemm", w.node("Flatten", pooled), w.weight(4, 5), w.weight(5))
    return w.model({"image": ("N", 3, "height", "width")}, w.node("Softmax", classes))


def cell(hidden: int = 4) -> Model:
    """A step of an LSTM cell, written out."""
    w = Writer(3)
    joined = w.node("Concat", "x", "h", axis=1)
    gates = w.node("Gemm", joined, w.weight(4 * hidden, 3 + hidden), w.weight(4 * hidden), transB=1)

    def gate(number: int, op: str) -> str:
        ends = [w.constant(np.array([size], np.int64)) for size in (number * hidden, (number + 1) * hidden, 1)]
        return w.node(op, w.node("Slice", gates, *ends))

    kept = w.node("Mul", gate(1, "Sigmoid"), "c")
    state = w.node("Add", kept, w.node("Mul", gate(0, "Sigmoid"), gate(2, "Tanh")))
    out = w.node("Mul", gate(3, "Sigmoid"), w.node("Tanh", state))
    return w.model({"x": (2, 3), "h": (2, hidden), "c": (2, hidden)}, out, state)


def blocks() -> dict[str, Model]:
    return {"attention": attention(), "convolution": convolution(), "cell": cell()}
