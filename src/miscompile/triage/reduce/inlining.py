"""Inlining of bodies: function bodies replace calls, and a branch replaces its If."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from miscompile.base.errors import ModelError
from miscompile.graph.edges import all_names
from miscompile.graph.inline import inline
from miscompile.graph.model import Graph, Node
from miscompile.graph.rename import NameSupply, rename_nodes
from miscompile.triage.reduce.draft import Draft


@dataclass(frozen=True, slots=True)
class InlineFunctions:
    """Replaces the calls of model-local functions by their bodies, at every depth."""

    def edits(self, draft: Draft) -> Iterator[Draft]:
        """Yield the draft without functions."""
        if draft.model.functions:
            try:
                yield replace(draft, model=inline(draft.model))
            except ModelError:
                return  # functions of another opset cannot be inlined


@dataclass(frozen=True, slots=True)
class OneBranch:
    """Replaces an If by its then branch, or by its else branch."""

    def edits(self, draft: Draft) -> Iterator[Draft]:
        """Yield drafts in which one If is a branch of it."""
        nodes = draft.graph.nodes
        for place, node in enumerate(nodes):
            if node.op != "If" or node.domain:
                continue
            for branch in node.subgraphs():
                yield _with_branch(draft, place, node, branch)


def _with_branch(draft: Draft, place: int, node: Node, branch: Graph) -> Draft:
    """Replace the If by the nodes of the branch; an Identity gives each result the name of the If's result."""
    nodes = draft.graph.nodes
    supply = NameSupply(all_names(draft.graph))
    made = [name for inner in branch.nodes for name in inner.outputs if name]
    results = list(zip((info.name for info in branch.outputs), node.outputs, strict=False))
    names = {inner: outer for inner, outer in reversed(results) if inner in set(made) and outer}
    relays = [
        Node("Identity", (names.get(inner, inner),), (outer,))
        for inner, outer in results
        if outer and names.get(inner) != outer
    ]
    names |= {name: supply.fresh(name) for name in branch.initializers}
    relays = [
        Node("Identity", tuple(names.get(name, name) for name in relay.inputs), relay.outputs) for relay in relays
    ]
    return draft.with_graph(
        nodes=(*nodes[:place], *rename_nodes(branch.nodes, names), *relays, *nodes[place + 1 :]),
        initializers={**draft.graph.initializers, **{names[k]: value for k, value in branch.initializers.items()}},
    )
