"""Short names, which are given last, so that the report is easy to read."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from miscompile.graph.edges import all_names, map_bodies
from miscompile.graph.model import Node
from miscompile.graph.rename import rename
from miscompile.triage.reduce.draft import Draft


@dataclass(frozen=True, slots=True)
class ShortNames:
    """Calls inputs x0, x1.., constants c0.., results v0.., and drops the names of nodes."""

    def edits(self, draft: Draft) -> Iterator[Draft]:
        """Yield the draft with short names, then with its nodes unnamed only."""
        nameless = draft.with_graph(name="g", nodes=tuple(map(_nameless, draft.graph.nodes)))
        yield _short(nameless)
        yield nameless


def _short(draft: Draft) -> Draft:
    graph = draft.graph
    names = {info.name: f"x{place}" for place, info in enumerate(graph.inputs)}
    constants = [name for name in (*graph.initializers, *graph.sparse_initializers) if name not in names]
    names |= {name: f"c{place}" for place, name in enumerate(constants)}
    made = [name for node in graph.nodes for name in node.outputs if name]
    names |= {name: f"v{place}" for place, name in enumerate(made)}
    rest = sorted(all_names(graph) - names.keys() - {""})
    names |= {name: f"b{place}" for place, name in enumerate(rest)}
    feeds = tuple({names[name]: value for name, value in feed.items()} for feed in draft.feeds)
    return Draft(replace(draft.model, graph=rename(graph, names)), feeds)


def _nameless(node: Node) -> Node:
    bare = replace(node, name="") if node.name else node
    return map_bodies(bare, lambda body: replace(body, nodes=tuple(map(_nameless, body.nodes))))
