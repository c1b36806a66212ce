"""Fewer inputs, feeds and constants."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from miscompile.core.tensor import Tensor
from miscompile.graph.model import Node, TensorType, ValueInfo
from miscompile.triage.reduce.draft import Draft, rewired
from miscompile.triage.reduce.leaves import leaves, operands_with


@dataclass(frozen=True, slots=True)
class OneFeed:
    """Keeps one feed of several."""

    def edits(self, draft: Draft) -> Iterator[Draft]:
        """Yield the draft with each single feed."""
        if len(draft.feeds) > 1:
            for feed in draft.feeds:
                yield replace(draft, feeds=(feed,))


@dataclass(frozen=True, slots=True)
class ConstantNodes:
    """Turns Constant nodes that hold a tensor into initialisers, all at once and then one at a time."""

    def edits(self, draft: Draft) -> Iterator[Draft]:
        """Yield drafts with fewer Constant nodes."""
        held = [node for node in draft.graph.nodes if _held(node) is not None]
        for chosen in ([held] if len(held) > 1 else []) + [[node] for node in held]:
            names = {node.outputs[0]: _held(node) for node in chosen}
            constants = {name: value for name, value in names.items() if value is not None}
            yield draft.with_graph(
                nodes=tuple(node for node in draft.graph.nodes if node.outputs[0] not in constants),
                initializers={**draft.graph.initializers, **constants},
            )


@dataclass(frozen=True, slots=True)
class Frozen:
    """Turns inputs into initialisers, all at once and then one at a time; only when all feeds agree on the value."""

    def edits(self, draft: Draft) -> Iterator[Draft]:
        """Yield drafts with fewer inputs."""
        if not draft.feeds:
            return
        first = draft.feeds[0]
        names = [name for name in first if all(feed[name].same(first[name]) for feed in draft.feeds)]
        for chosen in ([names] if len(names) > 1 else []) + [[name] for name in names]:
            frozen = draft.with_graph(
                inputs=tuple(info for info in draft.graph.inputs if info.name not in chosen),
                initializers={**draft.graph.initializers, **{name: first[name] for name in chosen}},
            )
            feeds = tuple({k: v for k, v in feed.items() if k not in chosen} for feed in draft.feeds)
            yield replace(frozen, feeds=feeds)


def thawed(draft: Draft) -> Draft:
    """Return the draft with its initialisers as inputs, but for those that compilers want as constants.

    A bug may need passes switched off only because they would fold its constants.
    """
    kept = operands_with(draft, "shape", "size", "control", "setting")
    given = {name: value for name, value in draft.graph.initializers.items() if name not in kept}
    infos = [ValueInfo(name, TensorType(value.dtype, value.shape)) for name, value in given.items()]
    melted = draft.with_graph(
        inputs=(*draft.fed(), *infos),
        initializers={name: value for name, value in draft.graph.initializers.items() if name in kept},
    )
    return replace(melted, feeds=tuple({**feed, **given} for feed in draft.feeds))


@dataclass(frozen=True, slots=True)
class SharedConstants:
    """Merges initialisers of one type: all of a type at once, then two at a time."""

    def edits(self, draft: Draft) -> Iterator[Draft]:
        """Yield drafts with fewer initialisers."""
        kinds: dict[tuple[str, tuple[int, ...]], list[str]] = {}
        for leaf in leaves(draft):
            if not leaf.fed:
                kinds.setdefault((leaf.value.dtype, leaf.value.shape), []).append(leaf.name)
        for names in kinds.values():
            if len(names) > 2:
                yield rewired(draft, dict.fromkeys(names[1:], names[0]))
            for first, second in pairwise(names):
                yield rewired(draft, {second: first})


def _held(node: Node) -> Tensor | None:
    value = node.attributes.get("value") if node.op == "Constant" and not node.domain else None
    return value.value if value is not None and value.kind == "tensor" else None
