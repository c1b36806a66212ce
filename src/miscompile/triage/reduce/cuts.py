"""Cuts through the graph: drop the nodes after a value, or replace the nodes before it by captured values."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from miscompile.core.tensor import Tensor
from miscompile.graph.edges import reads
from miscompile.graph.model import Node, TensorType, ValueInfo
from miscompile.triage.reduce.capture import Capture, Captured
from miscompile.triage.reduce.draft import Draft


@dataclass(frozen=True, slots=True)
class BackCut:
    """Makes single inner values the only outputs, the earliest first, because all nodes after them go.

    Then all values that live across a middle position become the outputs at once, for bugs that need several of them.
    """

    def edits(self, draft: Draft) -> Iterator[Draft]:
        """Yield drafts that end earlier."""
        nodes = draft.graph.nodes
        for node in nodes:
            for name in filter(None, node.outputs):
                yield draft.with_graph(outputs=(ValueInfo(name, None),))
        for length in _halves(len(nodes)):
            made = [name for node in nodes[:length] for name in node.outputs if name]
            later = {name for node in nodes[length:] for name in reads(node)} | {i.name for i in draft.graph.outputs}
            live = tuple(ValueInfo(name, None) for name in made if name in later)
            if live:
                yield draft.with_graph(nodes=nodes[:length], outputs=live)


@dataclass(frozen=True, slots=True)
class FrontCut:
    """Turns inner values into inputs that are fed the captured values, so that all nodes before them go.

    First replaces whole front parts of the graph, then the producers of single values, the latest first.
    """

    capture: Capture

    def edits(self, draft: Draft) -> Iterator[Draft]:
        """Yield drafts that begin later. Yields nothing when no value can be captured."""
        captured = self.capture(draft)
        if not captured:
            return
        nodes = draft.graph.nodes
        for length in sorted(_halves(len(nodes)), reverse=True):
            cut = _cut(draft, captured, nodes[:length])
            if cut is not None:
                yield cut
        for node in reversed(nodes):
            cut = _cut(draft, captured, (node,))
            if cut is not None:
                yield cut


def _halves(count: int) -> list[int]:
    """Return the lengths of front parts to try: quarters of the graph, without its ends."""
    return sorted({count * quarter // 4 for quarter in (1, 2, 3)} - {0, count})


def _cut(draft: Draft, captured: Captured, front: Sequence[Node]) -> Draft | None:
    """Replace `front` by inputs; None when a needed value was not captured, or changes type over the feeds."""
    graph = draft.graph
    dropped = {id(node) for node in front}
    kept = [node for node in graph.nodes if id(node) not in dropped]
    wanted = {name for node in kept for name in reads(node)} | {info.name for info in graph.outputs}
    names = [name for node in front for name in node.outputs if name and name in wanted]
    inputs = []
    for name in names:
        if name in {info.name for info in graph.outputs} or any(name not in known for known in captured):
            return None
        types = {(known[name].dtype, known[name].shape) for known in captured}
        if len(types) != 1:
            return None
        inputs.append(ValueInfo(name, TensorType(*types.pop())))
    feeds = tuple(
        {**feed, **{name: _own(known[name]) for name in names}}
        for feed, known in zip(draft.feeds, captured, strict=True)
    )
    model = draft.with_graph(nodes=tuple(kept), inputs=(*graph.inputs, *inputs)).model
    return Draft(model, feeds)


def _own(value: Tensor) -> Tensor:
    """Return a copy, which does not keep a worker's whole reply in memory."""
    return Tensor(value.dtype, value.array.copy())
