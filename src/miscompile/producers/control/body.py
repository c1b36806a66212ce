"""The scope of a body: a nested graph under construction, which can capture values of the outer graph."""

from collections.abc import Callable, Sequence

from miscompile.base.dtypes import PLAIN
from miscompile.base.errors import RejectedDraft
from miscompile.core.tensor import Tensor
from miscompile.graph.edges import captured
from miscompile.graph.model import Graph, ValueInfo
from miscompile.graph.prune import prune_graph
from miscompile.ops.facts import Facts
from miscompile.ops.spec import Operand, Shape
from miscompile.ops.values import Range
from miscompile.producers.finish import leaves
from miscompile.producers.scope import Mark, Scope, tensor_type

_OWN_VALUES = 0.4
"""Share of new values that are the body's own constants; the others are inputs of the main graph that it captures."""

_OUTER_CONSTANTS = 0.25
"""Share of given constants that are defined in the outer scope and captured."""

_DEAD_CODE = 0.1
"""Share of bodies that keep dead nodes, so that dead-code elimination has work."""


class BodyScope(Scope):
    """The scope of a body of operator `op` within `outer`; its results are of `dtypes`.

    Outer values can be operands here (`captures`), as long as the body is open.

    Values that are created here become parameters (`parameter`), constants of the body (`own`; else Constant nodes), or
    inputs and constants of the graph around it. Names are unique over all scopes, as ONNX demands
    (https://onnx.ai/onnx/repo-docs/IR.html#names-within-a-graph). Facts of parameters must hold on every iteration.
    """

    def __init__(
        self, outer: Scope, op: str, dtypes: Sequence[str] = PLAIN, *, captures: bool = True, own: bool = True
    ) -> None:
        super().__init__(outer.rng, outer.opset, outer.limits, outer.style, outer.support)
        self.outer = outer
        self.op = op
        self.carried = dtypes
        self.parameters: list[Operand] = []
        self.depth: int = outer.depth + 1 if isinstance(outer, BodyScope) else 1
        self._captures, self._own = captures, own
        self._fresh = outer._fresh
        if captures:
            for operand in outer.operands.values():
                self._register(operand, "")

    def rollback(self, mark: Mark) -> None:
        """Forget everything that came after `mark`, but reuse no name, because the outer scope may still have it."""
        fresh = self._fresh
        super().rollback(mark)
        self._fresh = fresh

    def parameter(self, dtype: str, shape: Shape, facts: Facts, *, hidden: bool = False) -> Operand:
        """Add an input of the body; a `hidden` one is not offered as an operand."""
        operand = Operand(self._name("b"), dtype, shape, facts)
        self.parameters.append(operand)
        return operand if hidden else self._register(operand, "")

    def new_input(self, dtype: str, shape: Shape, span: Range) -> Operand:
        """Add a value drawn from `span`: an input of the main graph, or a constant of the body's own."""
        if not self._captures or self.rng.random() < _OWN_VALUES:
            return self.drawn_constant(dtype, shape, span)
        return self._outside(lambda: self.outer.new_input(dtype, shape, span))

    def new_pinned(self, value: Tensor) -> Operand:
        """Add an input of the main graph that is always fed `value`; a constant if the body must not capture."""
        if not self._captures:
            return self.new_constant(value)
        return self._outside(lambda: self.outer.new_pinned(value))

    def new_cycled(self, values: tuple[Tensor, ...], facts: Facts) -> Operand:
        """Add an input of the main graph that is fed `values` in turn. Raises RejectedDraft if it must not capture."""
        if not self._captures:
            raise RejectedDraft("the body captures nothing")
        return self._outside(lambda: self.outer.new_cycled(values, facts))

    def new_constant(self, value: Tensor, *, as_node: bool = False) -> Operand:
        """Add a constant to the body or, with probability `_OUTER_CONSTANTS`, to the outer scope."""
        if self._captures and not as_node and self.rng.random() < _OUTER_CONSTANTS:
            return self._outside(lambda: self.outer.new_constant(value))
        return super().new_constant(value, as_node=as_node or not self._own)

    def drawn_constant(self, dtype: str, shape: Shape, span: Range) -> Operand:
        """Add a constant with elements drawn from `span`: an initialiser of the body, if it may have any."""
        if self._own:
            return super().drawn_constant(dtype, shape, span)
        if not self._captures:
            raise RejectedDraft("the body can have no values of its own")
        return self._outside(lambda: self.outer.drawn_constant(dtype, shape, span))

    def made(self) -> list[str]:
        """Return the names of the operator results of the body, those that nothing uses last."""
        ends = leaves(self)
        inner = [name for name, op in self.producer.items() if op and op != "Constant" and self.uses[name]]
        return inner + ends

    def close(self, outputs: Sequence[Operand]) -> Graph:
        """Return the body with these outputs, which must be different results of its own operators.

        The outer scope continues the numbering of names.
        """
        infos = tuple(ValueInfo(x.name, tensor_type(x.dtype, x.shape)) for x in self.parameters)
        results = tuple(ValueInfo(x.name, tensor_type(x.dtype, x.shape)) for x in outputs)
        graph = Graph(f"body_{self._fresh}", infos, results, tuple(self.nodes), dict(self.initializers))
        if self.rng.random() >= _DEAD_CODE:
            graph = prune_graph(graph)
        else:
            used = {name for node in graph.nodes for name in node.inputs} | set().union(
                *(captured(body) for node in graph.nodes for body in node.subgraphs())
            )
            kept = {name: value for name, value in graph.initializers.items() if name in used}
            graph = Graph(graph.name, infos, results, graph.nodes, kept)
        self.outer._fresh = max(self.outer._fresh, self._fresh + 1)
        return graph

    def _outside(self, make: Callable[[], Operand]) -> Operand:
        self.outer._fresh = self._fresh
        operand = make()
        self._fresh = self.outer._fresh
        return self._register(operand, "")
