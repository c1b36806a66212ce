"""Translation of a selection back to a model: equal computations once, old names where values keep their meaning.

Values are numbered first, so that states that compute the same from the same become one value; then they are named;
then nodes are written. A node of the program whose term is kept is written unchanged with its operands redirected; a
term made by a rule becomes a new node.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from miscompile.core.tensor import Tensor
from miscompile.graph.model import Graph, Model, Node
from miscompile.graph.rename import NameSupply, redirect
from miscompile.transforms.egraph.choice import Selection, State
from miscompile.transforms.egraph.program import LEAVES, TermProgram, is_constant
from miscompile.transforms.rules.terms import Symbol, TermType
from miscompile.transforms.rules.translation.nodes import nodes_of

NodeMaker = tuple[object, ...]
"""Key of a computation: a program's node by position, or a symbol without its output; then the operands' values."""


@dataclass(slots=True)
class RestoredNode:
    """A node of the new graph; `outputs` maps its needed outputs to values."""

    symbol: Symbol
    place: int
    reads: tuple[int, ...]
    outputs: dict[int, int] = field(default_factory=dict)

    @property
    def is_constant(self) -> bool:
        """Whether it becomes an initialiser."""
        return self.place < 0 and self.symbol.op == "Constant"


@dataclass(slots=True)
class Layout:
    """A selection with its values numbered: leaves by name, instances in topological order."""

    leaves: dict[int, str]
    instances: list[RestoredNode]
    values: dict[State, int]

    @property
    def operators(self) -> int:
        """The number of operators of the graph."""
        return sum(1 for instance in self.instances if not instance.is_constant)


def layout(selection: Selection) -> Layout:
    """Return `selection` with equal computations merged."""
    return _Numbering().layout(selection)


class _Numbering:
    def __init__(self) -> None:
        self._found = Layout({}, [], {})
        self._made: dict[NodeMaker, RestoredNode] = {}
        self._leaves: dict[str, int] = {}
        self._count = 0

    def layout(self, selection: Selection) -> Layout:
        values, options, operands = self._found.values, selection.options, selection.operands
        for state in selection.order:
            symbol, _, _, place, _ = options[state]
            if symbol.op in LEAVES:
                values[state] = self._leaf(str(symbol.parameters[0]))
                continue
            reads = tuple([values[below] for below in operands[state]])
            maker: NodeMaker = (place, *reads) if place >= 0 else (symbol.op, symbol.parameters, *reads)
            instance = self._made.get(maker)
            if instance is None:
                instance = self._made[maker] = RestoredNode(symbol, place, reads)
                self._found.instances.append(instance)
            value = instance.outputs.get(symbol.output)
            if value is None:
                value = instance.outputs[symbol.output] = self._new()
            values[state] = value
        return self._found

    def _leaf(self, name: str) -> int:
        value = self._leaves.get(name)
        if value is None:
            value = self._leaves[name] = self._new()
            self._found.leaves[value] = name
        return value

    def _new(self) -> int:
        self._count += 1
        return self._count - 1


@dataclass(frozen=True, slots=True)
class Restored:
    """A model, and a lazy computation of the types of its inner values."""

    model: Model
    ask: Callable[[], dict[str, TermType]]

    @property
    def types(self) -> Mapping[str, TermType]:
        """The types of those inner values that the model's nodes compute and whose types are concrete."""
        return self.ask()


def restore(program: TermProgram, selection: Selection, found: Layout) -> Restored:
    """Return the model that a selection, laid out as `found`, describes.

    Inputs, outputs, opset imports and functions are those of the program. Raises RejectedDraft when the program's opset
    cannot express a term.
    """
    writer = _Writer(program, selection, found)
    return Restored(writer.model(), writer.types)


class _Writer:
    """Names values and writes nodes."""

    def __init__(self, program: TermProgram, selection: Selection, found: Layout) -> None:
        self._program = program
        self._layout = found
        self._graph: Graph = program.model.graph
        self._names = NameSupply(program.taken)
        self._called: dict[int, str] = dict(found.leaves)
        self._copies: list[Node] = []
        self._initializers: dict[str, Tensor] = {}
        self._constants = {node.outputs[0]: node for node in self._graph.nodes if is_constant(node)}
        self._spent: set[str] = set()
        self._opset = program.model.opset
        self._outputs(selection)
        self._name(selection)
        self._claimed = {*self._called.values(), *(info.name for info in self._graph.outputs)}

    def _outputs(self, selection: Selection) -> None:
        """Name values after outputs; an output whose value has another name already becomes a copy."""
        constants = {each.outputs[0] for each in self._layout.instances if each.is_constant}
        for info in self._graph.outputs:
            value = self._layout.values[selection.roots[info.name]]
            if value in constants and value not in self._called:
                self._called[value] = self._names.fresh(f"{info.name}_value")
            if value not in self._called:
                self._called[value] = info.name
            elif self._called[value] != info.name:
                self._copies.append(Node("Identity", (self._called[value],), (info.name,)))

    def _name(self, selection: Selection) -> None:
        """Name the program's values, on the highest layer where each is computed."""
        graph = self._graph
        used = {*self._called.values(), *graph.initializers, *graph.sparse_initializers, *self._constants}
        used.update(info.name for info in (*graph.inputs, *graph.outputs))
        old = selection.space.names
        symbols = {value: each.symbol for each in self._layout.instances for value in each.outputs.values()}
        for state in sorted(selection.order, key=lambda state: (not state[2], -state[1])):
            value = self._layout.values[state]
            if value in self._called:
                continue
            known = [state[2]] if state[2] else old.get(state[0], [])
            name = next((name for name in known if name not in used), None)
            if name is None:
                name = self._names.fresh(known[0] if known else symbols[value].op.lower())
            used.add(name)
            self._called[value] = name

    def model(self) -> Model:
        """Return the model."""
        nodes = [node for instance in self._layout.instances for node in self._nodes(instance)]
        nodes.extend(self._copies)
        graph = self._graph
        read = {name for node in nodes for name in node.inputs}
        read.update(self._called.values())
        read.update(info.name for info in (*graph.inputs, *graph.outputs))
        constants = [node for name, node in self._constants.items() if name in read]
        kept = {name: value for name, value in graph.initializers.items() if name in read}
        changed = replace(
            graph,
            nodes=(*constants, *nodes),
            initializers={**kept, **self._initializers},
            sparse_initializers={k: v for k, v in graph.sparse_initializers.items() if k in read},
            types={name: known for name, known in graph.types.items() if name in read},
        )
        return replace(self._program.model, graph=changed)

    def types(self) -> dict[str, TermType]:
        """Return the types of the instances' results."""
        kinds, find = self._program.graph.types, self._program.graph.find
        known = {value: kinds[find(state[0])] for state, value in self._layout.values.items()}
        made = [value for each in self._layout.instances for value in each.outputs.values()]
        found = {self._called[value]: known[value] for value in made}
        return {name: kind for name, kind in found.items() if kind is not None and name not in self._initializers}

    def _nodes(self, instance: RestoredNode) -> tuple[Node, ...]:
        reads = tuple([self._called[value] for value in instance.reads])
        outputs = {output: self._called[value] for output, value in instance.outputs.items()}
        if instance.place < 0:
            fresh = self._names.fresh
            nodes, constants = nodes_of(instance.symbol, reads, outputs, self._opset, fresh)
            self._initializers.update(constants)
            return nodes
        origin = self._program.origins[instance.place]
        names = {old: new for old, new in zip(origin.reads, reads, strict=True) if old != new}
        node = _redirected(origin.node, names) if names else origin.node
        results = tuple([outputs.get(place) or self._unwanted(name) for place, name in enumerate(node.outputs)])
        name = node.name if node.name not in self._spent else ""
        if results != node.outputs or name != node.name:
            node = Node(node.op, node.inputs, results, node.attributes, node.domain, name, node.overload)
        self._spent.add(origin.node.name)
        return (node,)

    def _unwanted(self, name: str) -> str:
        """Return the name of an unused result: its own, unless another value has that name."""
        if name in self._claimed:
            return self._names.fresh(name)
        if name:
            self._claimed.add(name)
        return name


def _redirected(node: Node, names: Mapping[str, str]) -> Node:
    """Return `redirect(node, names)`, made faster for nodes without bodies."""
    if any(True for _ in node.subgraphs()):
        return redirect(node, names)
    inputs = tuple([names.get(name, name) for name in node.inputs])
    return Node(node.op, inputs, node.outputs, node.attributes, node.domain, node.name, node.overload)
