"""Fewer and plainer attributes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from miscompile.graph.model import Attribute
from miscompile.triage.reduce.draft import Draft

_BODIES = ("graph", "graphs")


@dataclass(frozen=True, slots=True)
class FewerAttributes:
    """Removes attributes, so that defaults hold: all of a node at once, then one at a time."""

    def edits(self, draft: Draft) -> Iterator[Draft]:
        """Yield drafts with fewer attributes on one node."""
        for place, node in enumerate(draft.graph.nodes):
            plain = [name for name, attribute in node.attributes.items() if attribute.kind not in _BODIES]
            if len(plain) > 1:
                yield _with(draft, place, {name: node.attributes[name] for name in node.attributes.keys() - {*plain}})
            for name in plain:
                yield _with(draft, place, {key: value for key, value in node.attributes.items() if key != name})


@dataclass(frozen=True, slots=True)
class PlainerAttributes:
    """Sets numbers to 0 or 1, lists to zeros or ones, and single entries of lists."""

    def edits(self, draft: Draft) -> Iterator[Draft]:
        """Yield drafts with one attribute changed."""
        for place, node in enumerate(draft.graph.nodes):
            for name, attribute in node.attributes.items():
                for plainer in _plainer(attribute):
                    yield _with(draft, place, {**node.attributes, name: plainer})


def _with(draft: Draft, place: int, attributes: Mapping[str, Attribute]) -> Draft:
    nodes = list(draft.graph.nodes)
    nodes[place] = replace(nodes[place], attributes=attributes)
    return draft.with_nodes(nodes)


def _plainer(attribute: Attribute) -> Iterator[Attribute]:
    value = attribute.value
    if attribute.kind in ("int", "float"):
        make = int if attribute.kind == "int" else float
        for plain in (0, 1, 2):
            if value != plain and (abs(value) >= plain or value != round(value)):
                yield replace(attribute, value=make(plain))
        if attribute.kind == "float" and value != round(value):
            yield replace(attribute, value=float(round(value)))
    elif attribute.kind in ("ints", "floats") and value:
        make = int if attribute.kind == "ints" else float
        for plain in (0, 1):
            yield replace(attribute, value=(make(plain),) * len(value))
        for place, item in enumerate(value):
            for plain in (0, 1):
                if abs(item) > plain:
                    yield replace(attribute, value=(*value[:place], make(plain), *value[place + 1 :]))
