"""Calls of model-local functions replaced by the bodies of these functions.

Compilers inline before, between or after their other passes, and each has its own inliner; an inlined model must give
the same results.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from miscompile.graph.inline import inline
from miscompile.graph.model import Function, Model, Node
from miscompile.graph.prune import callee_key, function_key
from miscompile.transforms.exact.placed import Placed
from miscompile.transforms.exact.scopes import NodeScope, rewrite, scopes

_KEPT = "miscompile kept: "
"""Temporary prefix of the overload of calls that stay."""


@dataclass(frozen=True, slots=True)
class Inline(Placed):
    """Inlines calls of functions, with all calls inside them. Places are calls outside functions."""

    stream_name: ClassVar[str] = "Inline"

    def places(self, model: Model) -> tuple[str, ...]:
        """Return the calls in the main graph and in its bodies."""
        keys = {function_key(function) for function in model.functions}
        return tuple(
            scope.place_of(node)
            for scope in scopes(model)
            if not scope.in_function
            for node in scope.nodes
            if callee_key(node) in keys
        )

    def apply(self, model: Model) -> Model:
        """Return `model` with calls inlined, and without functions that nothing calls any more.

        Raises RejectedDraft when the model has no calls, ModelError when a body changes its meaning under the model's
        operator sets.
        """
        return inlined(model, self.picked(self.places(model)))


def inlined(model: Model, picked: frozenset[str]) -> Model:
    """Return `model` with the calls at the places `picked` inlined, and all others left alone. Raises ModelError."""
    keys = {function_key(function) for function in model.functions}

    def marked(scope: NodeScope) -> NodeScope:
        return _mapped(scope, lambda node: _marked(node) if _stays(scope, node) else node)

    def _stays(scope: NodeScope, node: Node) -> bool:
        return callee_key(node) in keys and scope.place_of(node) not in picked

    done = inline(rewrite(model, marked))
    bare = rewrite(done, lambda scope: _mapped(scope, _unmarked))
    return replace(bare, functions=tuple(_called(bare, model.functions)))


def _mapped(scope: NodeScope, change: Callable[[Node], Node]) -> NodeScope:
    if scope.in_function:
        return scope
    nodes = tuple(map(change, scope.nodes))
    same = all(new is old for new, old in zip(nodes, scope.nodes, strict=True))
    return scope if same else scope.with_nodes(nodes)


def _marked(node: Node) -> Node:
    return replace(node, overload=f"{_KEPT}{node.overload}")


def _unmarked(node: Node) -> Node:
    return replace(node, overload=node.overload[len(_KEPT) :]) if node.overload.startswith(_KEPT) else node


def _called(model: Model, functions: Iterable[Function]) -> Iterator[Function]:
    """Yield those of `functions`, in order, that `model` or another of them needs."""
    known = {function_key(function): function for function in functions}
    waiting = [node for scope in scopes(model) for node in scope.nodes]
    reached = set()
    while waiting:
        node = waiting.pop()
        key = callee_key(node)
        waiting.extend(inner for body in node.subgraphs() for inner in body.nodes)
        if key in known and key not in reached:
            reached.add(key)
            waiting.extend(known[key].nodes)
    yield from (function for key, function in known.items() if key in reached)
