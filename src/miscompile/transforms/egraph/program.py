"""Translation of a model to an e-graph: the class of each value, and the term of each node.

Nodes outside the language stay unchanged: other operators, blocks (If, Loop, Scan), calls of functions, random
operators, sequences, and nodes with a symbolic or unknown size. Such a node is an opaque term that equals no other, so
that it is never duplicated; each of its results is a class.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from zlib import crc32

from miscompile.base.errors import ModelError
from miscompile.core.tensor import Tensor
from miscompile.graph.bodies import is_static
from miscompile.graph.edges import all_names, reads
from miscompile.graph.infer import infer
from miscompile.graph.model import Graph, Model, Node, SparseTensorType, TensorType, ValueType
from miscompile.graph.structural import STRUCTURAL_SIZE
from miscompile.graph.typing import value_types
from miscompile.transforms.egraph.engine import EGraph
from miscompile.transforms.rules.kinds import ELEMENTS
from miscompile.transforms.rules.terms import Symbol, TermType, constant, typed
from miscompile.transforms.rules.translation.nodes import term_of

VALUE = "value"
"""Symbol of an input or an initialiser, with its name."""

PINNED = "pinned"
"""Symbol of a constant that a node outside the language reads: it must stay a constant, so no other term equals it."""

OPAQUE = "opaque"
"""Symbol of a node outside the language, with its position; the parameters of these three are no ONNX parameters."""

LEAVES = frozenset({VALUE, PINNED})


_OLDEST = 13
"""The first opset whose operators the language knows."""


def is_constant(node: Node) -> bool:
    """Tell whether a node holds a constant tensor."""
    return node.op == "Constant" and not node.domain and "value" in node.attributes


def name_key(name: str) -> int:
    """Return the stable key of the value called `name`."""
    return crc32(name.encode("utf-8", "surrogateescape"))


@dataclass(frozen=True, slots=True)
class SourceNode:
    """A node of the model as a term: the names and classes of its operands, in the order of the term's."""

    node: Node
    reads: tuple[str, ...]
    operands: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Own:
    """The model's computation of a value: the symbol, and the position of the node (-1: input or initialiser)."""

    symbol: Symbol
    place: int


@dataclass(frozen=True, slots=True)
class TermProgram:
    """A model in an e-graph.

    `values` holds the class of each value that a node makes or reads and of each output, in topological order, and
    `own` the model's computation of it. `origins` are the nodes of the model, `constants` the classes of constants,
    `taken` all names of values in the model.
    """

    model: Model
    graph: EGraph
    values: Mapping[str, int]
    own: Mapping[str, Own]
    origins: tuple[SourceNode, ...]
    constants: frozenset[int]
    taken: frozenset[str]

    def names(self) -> dict[int, list[str]]:
        """Return the names of the values of each class as it is now."""
        found: dict[int, list[str]] = {}
        for name, number in self.values.items():
            found.setdefault(self.graph.find(number), []).append(name)
        return found

    def operators(self) -> int:
        """Return the number of operators of the model that its outputs need."""
        found: set[int] = set()
        waiting = [info.name for info in self.model.graph.outputs]
        while waiting:
            own = self.own.get(waiting.pop())
            if own is not None and own.place >= 0 and own.place not in found:
                found.add(own.place)
                waiting.extend(self.origins[own.place].reads)
        return len(found)


def program_of(model: Model) -> TermProgram:
    """Return `model` in a new e-graph. Raises ModelError when a value is used that nothing defines."""
    return _Reader(model).read()


class _Reader:
    """Walks over the nodes of a main graph in their order."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.graph = EGraph()
        self.values: dict[str, int] = {}
        self.own: dict[str, Own] = {}
        self.origins: list[SourceNode] = []
        self.types: dict[str, TermType] = {}
        """Values of concrete type, the only ones in the language."""
        main = model.graph
        given = {info.name for info in main.inputs}
        self.constants: dict[str, Tensor] = {k: v for k, v in main.initializers.items() if k not in given}
        self._kinds: dict[str, ValueType] = dict(main.types)
        self._constant_classes: set[int] = set()
        self._opset = model.opset
        self._asked = False

    def read(self) -> TermProgram:
        main = self.model.graph
        self._ports(main)
        for place, node in enumerate(main.nodes):
            self._node(place, node)
        for info in main.outputs:
            self._use(info.name)
        self.graph.rebuild()
        constants = frozenset(map(self.graph.find, self._constant_classes))
        taken = frozenset(all_names(main))
        return TermProgram(self.model, self.graph, self.values, self.own, tuple(self.origins), constants, taken)

    def _ports(self, main: Graph) -> None:
        for name, value in main.initializers.items():
            self._know(name, TensorType(value.dtype, value.shape))
        for name, sparse in main.sparse_initializers.items():
            self._kinds[name] = SparseTensorType(sparse.values.dtype, sparse.shape)
        for info in main.inputs:
            if info.type is not None:
                self._know(info.name, info.type)

    def _know(self, name: str, kind: ValueType) -> None:
        self._kinds[name] = kind
        concrete = _concrete(kind)
        if concrete is not None:
            self.types[name] = concrete

    def _node(self, place: int, node: Node) -> None:
        if is_constant(node):  # an initialiser in another place
            value = node.attributes["value"].value
            self.constants[node.outputs[0]] = value
            self._know(node.outputs[0], TensorType(value.dtype, value.shape))
            self.origins.append(SourceNode(node, (), ()))
            return
        terms = term_of(node, self.types, self.constants) if self._opset >= _OLDEST else None
        if terms is None or not _plain(node, terms[0][1]):
            self._opaque(place, node)
            return
        children = terms[0][1]
        operands = tuple([self._use(child) for child in children])
        self.origins.append(SourceNode(node, children, operands))
        for name, (symbol, _) in zip(node.outputs, terms, strict=True):
            kind = typed(symbol, tuple([self.types[child] for child in children]))
            self._place(name, symbol, operands, kind, place)
            if kind is not None:
                self._know(name, TensorType(*kind))

    def _opaque(self, place: int, node: Node) -> None:
        read = tuple(dict.fromkeys(reads(node)))
        operands = tuple([self._pin(name) if name in self.constants else self._use(name) for name in read])
        self.origins.append(SourceNode(node, read, operands))
        for output, (name, kind) in enumerate(zip(node.outputs, self._results(node), strict=True)):
            if not name:
                continue
            if kind is not None:
                self._know(name, kind)
            self._place(name, Symbol(OPAQUE, (place,), output), operands, self.types.get(name), place)

    def _place(self, name: str, symbol: Symbol, operands: tuple[int, ...], kind: TermType | None, place: int) -> None:
        graph = self.graph
        number = graph.intern(symbol)
        self.values[name] = graph.add(number, operands, kind, name_key(name))
        self.own[name] = Own(symbol, place)
        node = graph.node(number, operands)
        if node is not None:
            graph.origins.setdefault(node, place)

    def _use(self, name: str) -> int:
        """Return the class of a value that is read; inputs and initialisers get theirs when they are first read."""
        found = self.values.get(name)
        if found is not None:
            return found
        graph, value = self.graph, self.constants.get(name)
        if name not in self._kinds and not any(info.name == name for info in self.model.graph.inputs):
            raise ModelError(f"{name!r} is used but nothing defines it")
        number = self._leaf(VALUE, name, self.types.get(name))
        self.values[name] = number
        self.own[name] = Own(Symbol(VALUE, (name,)), -1)
        if value is not None:
            self._constant_classes.add(number)
            known = constant(value)
            if known is not None:
                graph.attach(graph.intern(known), (), number, name_key(name))
                graph.rebuild()
        return graph.find(number)

    def _pin(self, name: str) -> int:
        return self._leaf(PINNED, name, None)

    def _leaf(self, op: str, name: str, kind: TermType | None) -> int:
        graph = self.graph
        symbol = graph.intern(Symbol(op, (name,)))
        number = graph.add(symbol, (), kind, name_key(name))
        node = graph.node(symbol, ())
        if node is not None:
            graph.origins[node] = -1
        return number

    def _results(self, node: Node) -> list[ValueType | None]:
        """Return the types of an opaque node's results, None where they are unknown."""
        kinds = [self._kinds.get(name) for name in node.outputs]
        if all(kinds[place] is not None for place, name in enumerate(node.outputs) if name):
            return kinds
        if not any(True for _ in node.subgraphs()) and all(not name or name in self._kinds for name in node.inputs):
            known = {
                name: self.constants[name]
                for name in node.inputs
                if name in self.constants and self.constants[name].array.size <= STRUCTURAL_SIZE
            }
            try:
                found = infer(node, self._kinds, self._opset, known)
            except ModelError:
                found = ()
            if found and any(found):
                return list(found)
        self._ask()
        return [self._kinds.get(name) for name in node.outputs]

    def _ask(self) -> None:
        """Infer the types of the whole model, once, for types that inference of a single node does not find."""
        if self._asked:
            return
        self._asked = True
        for name, kind in value_types(self.model, strict=False).items():
            self._kinds.setdefault(name, kind)


def _concrete(kind: ValueType | None) -> TermType | None:
    if isinstance(kind, TensorType) and kind.dtype in ELEMENTS and is_static(kind):
        return TermType(kind.dtype, kind.shape)  # type: ignore[arg-type]  # static: the sizes are numbers
    return None


def _plain(node: Node, children: tuple[str, ...]) -> bool:
    """Tell whether no name is operand and structural input at once.

    Otherwise a replacement of one use would replace the other too.
    """
    inputs = node.inputs
    return children == inputs or all(inputs.count(name) == children.count(name) for name in children)
