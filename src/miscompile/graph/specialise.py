"""Replacement of symbolic sizes by the sizes of one feed.

Some analyses need fixed sizes (noise for every element, intervals, exactness). They run on the specialised model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from miscompile.base.errors import ModelError
from miscompile.core.case import Dim, Port
from miscompile.core.tensor import Tensor
from miscompile.graph.constant_nodes import constant_of
from miscompile.graph.emit import node_proto
from miscompile.graph.infer import infer
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo, ValueType
from miscompile.graph.rename import redirect
from miscompile.graph.structural import STRUCTURAL_SIZE

InputShapes = Mapping[str, tuple[int, ...]]
"""Shapes by the names of inputs."""

_SHAPE_ARITHMETIC = frozenset({
    "Gather", "Slice", "Concat", "Mul", "Add", "Sub", "Div", "Mod", "Min", "Max", "Neg", "Cast", "Unsqueeze", "Squeeze",
    "Reshape", "Identity", "Range", "Where", "Equal", "ReduceProd", "Split",
})  # fmt: skip
"""Operators that are evaluated when all their operands are known and follow from shapes."""

_INTEGERS = frozenset({"int64", "int32", "bool"})


def is_symbolic(ports: Sequence[Port]) -> bool:
    """Tell whether any size of these ports is not fixed."""
    return any(port.shape is None or not all(isinstance(size, int) for size in port.shape) for port in ports)


def bindings(declared: Sequence[tuple[str, tuple[Dim, ...] | None]], shapes: InputShapes) -> dict[str, int]:
    """Return the size of each symbol when values declared as (name, shape) have these shapes.

    Raises ModelError when a shape does not fit its declaration, or a symbol would have two sizes.
    """
    bound: dict[str, int] = {}
    for name, shape in declared:
        given = shapes.get(name)
        if shape is None or given is None:
            continue
        if len(shape) != len(given):
            raise ModelError(f"'{name}' has {len(given)} axes where {len(shape)} are declared")
        for want, have in zip(shape, given, strict=True):
            if (bound.setdefault(want, have) if isinstance(want, str) else want) not in (None, have):
                raise ModelError(f"'{name}' has size {have} where {want} is declared")
    return bound


def specialised(model: Model, shapes: InputShapes) -> Model:
    """Return `model` with its inputs declared to have `shapes`, and every symbol with a known size replaced by it.

    Raises ModelError when `shapes` contradict the declarations.
    """
    graph = model.graph
    declared = [(info.name, info.type.shape) for info in graph.inputs if isinstance(info.type, TensorType)]
    bound = bindings(declared, shapes)
    inputs = tuple(
        replace(info, type=replace(info.type, shape=shapes[info.name]))
        if info.name in shapes and isinstance(info.type, TensorType)
        else info
        for info in graph.inputs
    )
    outputs = tuple(ValueInfo(info.name, _bound(info.type, bound)) for info in graph.outputs)
    types = {name: known for name, kind in graph.types.items() if (known := _bound(kind, bound)) is not None}
    return replace(model, graph=replace(graph, inputs=inputs, outputs=outputs, types=types))


def _bound(kind: ValueType | None, bound: Mapping[str, int]) -> ValueType | None:
    if not isinstance(kind, TensorType) or kind.shape is None:
        return kind
    return replace(kind, shape=tuple(bound.get(size, size) if isinstance(size, str) else size for size in kind.shape))


def folded(model: Model) -> Model:
    """Return `model` with constants in place of structural operands that follow from known shapes.

    Nodes that only served to compute them are removed, except producers of graph outputs. Inputs must be declared
    with fixed sizes. Nodes that cannot be typed do not change.
    """
    folder = _Folder(model)
    for node in model.graph.nodes:
        folder.meet(node)
    return replace(model, graph=folder.graph(model.graph))


class _Folder:
    def __init__(self, model: Model) -> None:
        graph = model.graph
        self._opset = model.opset
        self._types: dict[str, ValueType] = {}
        for info in graph.inputs:
            if info.type is not None:
                self._types[info.name] = info.type
        self._known: dict[str, Tensor] = {}
        self._from_shapes: set[str] = set()
        for name, value in graph.initializers.items():
            self._types[name] = TensorType(value.dtype, value.shape)
            self._learn(name, value)

    def meet(self, node: Node) -> None:
        """Infer the types of the node's results, and evaluate them where they follow from shapes."""
        value = constant_of(node)
        if value is not None:
            self._types[node.outputs[0]] = TensorType(value.dtype, value.shape)
            self._learn(node.outputs[0], value)
            return
        if node.domain or not all(name in self._types for name in node.inputs if name) or any(node.subgraphs()):
            return
        results = self._values(node)
        if results is not None:
            for name, value in zip(node.outputs, results, strict=True):
                self._from_shapes.add(name)
                self._types[name] = TensorType(value.dtype, value.shape)
                self._learn(name, value)
            return
        known = {name: self._known[name] for name in node.inputs if name in self._known}
        try:
            kinds = infer(node, self._types, self._opset, known)
        except ModelError:
            return
        self._types.update({name: kind for name, kind in zip(node.outputs, kinds, strict=True) if name and kind})

    def graph(self, graph: Graph) -> Graph:
        """Return `graph` with constants in place of the evaluated values."""
        outputs = {info.name for info in graph.outputs}
        constants = dict(graph.initializers)
        names: dict[str, str] = {}
        nodes: list[Node] = []
        for node in graph.nodes:
            made = self._from_shapes.intersection(node.outputs)
            for name in sorted(made):
                names[name] = f"miscompile_size_{name}" if name in outputs else name
                constants[names[name]] = self._known[name]
            if not made or made & outputs:
                nodes.append(redirect(node, names))
        return replace(graph, nodes=tuple(nodes), initializers=constants)

    def _learn(self, name: str, value: Tensor) -> None:
        if value.dtype in _INTEGERS and value.array.size <= STRUCTURAL_SIZE:
            self._known[name] = value

    def _values(self, node: Node) -> list[Tensor] | None:
        """Return the node's results if they follow from shapes, otherwise None."""
        if node.op in ("Shape", "Size"):
            return self._measure(node)
        given = [name for name in node.inputs if name]
        if node.op not in _SHAPE_ARITHMETIC or not self._from_shapes.intersection(given):
            return None
        if not all(name in self._known for name in given):
            return None
        model = onnx.ModelProto(ir_version=10, opset_import=[onnx.helper.make_opsetid("", self._opset)])
        model.graph.name = "sizes"
        model.graph.node.append(node_proto(node))
        model.graph.input.extend(onnx.ValueInfoProto(name=name) for name in dict.fromkeys(given))
        model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in node.outputs)
        try:
            results = ReferenceEvaluator(model).run(None, {name: self._known[name].array for name in given})
        except Exception:  # noqa: BLE001 - the interpreter may raise anything; the node is then not folded
            return None
        arrays = [np.asarray(result) for result in results]
        if any(array.dtype.name not in _INTEGERS or array.size > STRUCTURAL_SIZE for array in arrays):
            return None
        return [Tensor(array.dtype.name, array) for array in arrays]

    def _measure(self, node: Node) -> list[Tensor] | None:
        kind = self._types[node.inputs[0]]
        if not isinstance(kind, TensorType) or kind.shape is None:
            return None
        sizes = [size for size in kind.shape if isinstance(size, int)]
        if len(sizes) < len(kind.shape):
            return None
        if node.op == "Size":
            return [Tensor("int64", np.array(int(np.prod(sizes, dtype=np.int64)), np.int64))]
        start, end = (node.attributes[name].value if name in node.attributes else None for name in ("start", "end"))
        return [Tensor("int64", np.array(sizes[start:end], np.int64))]
