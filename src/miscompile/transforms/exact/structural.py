"""Structural values: sizes, axes, trip counts and quantisation parameters, which many compilers require as constants.

A value is structural when it reaches such an operand through any operators but Shape and Size, bodies and functions
included. The analysis is conservative: it may include more values, never fewer.
"""

from collections.abc import Iterable

from miscompile.graph.edges import reads
from miscompile.graph.model import Graph, Model, Node
from miscompile.graph.prune import FunctionKey, callee_key, function_key
from miscompile.ops.operand_roles import wanted_constant
from miscompile.ops.registry import having


def structural_values(model: Model) -> frozenset[str]:
    """Return the structural values of the main graph and of its bodies, by name.

    Values of the main graph that depend on fed elements are excluded, because no compiler can know them.
    """
    search = _Search(model)
    search.graph(model.graph, whole=False)
    return frozenset(search.found - _fed(model.graph))


def _fed(graph: Graph) -> set[str]:
    """Return the values of `graph` that depend on its inputs, beyond their shapes."""
    found = {info.name for info in graph.inputs} - graph.initializers.keys()
    ends = having("reads-shape")
    for node in graph.nodes:
        if node.op not in ends and not found.isdisjoint(reads(node)):
            found.update(filter(None, node.outputs))
    return found


class _Search:
    def __init__(self, model: Model) -> None:
        self.found: set[str] = set()
        self._model = model
        self._functions = {function_key(function): function for function in model.functions}
        self._formals: dict[FunctionKey, tuple[frozenset[int], frozenset[int]]] = {}

    def graph(self, graph: Graph, *, whole: bool) -> None:
        """Search a graph; with `whole`, all of its outputs are structural."""
        if whole:
            self.found.update(info.name for info in graph.outputs)
        self.nodes(graph.nodes)

    def nodes(self, nodes: Iterable[Node]) -> None:
        for node in reversed(tuple(nodes)):
            self._node(node)

    def _node(self, node: Node) -> None:
        key = callee_key(node)
        wanted = not self.found.isdisjoint(filter(None, node.outputs))
        if key in self._functions:
            always, when_wanted = self._operands(key)
            self._mark(node, always | (when_wanted if wanted else frozenset()))
            return
        self._mark(node, wanted_constant().get(node.op, ()))
        for _ in range(2):  # the second time for the values that a Loop carries
            for body in node.subgraphs():
                self.graph(body, whole=wanted)
                wanted = wanted or not self.found.isdisjoint(info.name for info in body.inputs)
        if wanted and node.op not in having("reads-shape"):
            self._mark(node, range(len(node.inputs)))

    def _mark(self, node: Node, slots: Iterable[int]) -> None:
        self.found.update(node.inputs[slot] for slot in slots if slot < len(node.inputs) and node.inputs[slot])

    def _operands(self, key: FunctionKey) -> tuple[frozenset[int], frozenset[int]]:
        """Return which operands of a function are structural in any case, and which if a result is."""
        if key not in self._formals:
            function = self._functions[key]
            self._formals[key] = frozenset(), frozenset()  # no valid model has a recursive function
            sets = []
            for whole in (False, True):
                inner = _Search(self._model)
                inner._formals = self._formals
                inner.found.update(function.outputs if whole else ())
                inner.nodes(function.nodes)
                sets.append(frozenset(i for i, name in enumerate(function.inputs) if name in inner.found))
            self._formals[key] = sets[0], sets[1]
        return self._formals[key]
