"""Attributes that count axes, after the operands of a call have gained or lost their first axis.

Triage asks which ranks show a bug, reductions lower ranks, and a check looks for a rank that a compiler takes.
"""

from dataclasses import replace

from miscompile.graph.model import Attribute, Node


def behind_new_axis(node: Node) -> Node:
    """Return a node whose attributes count axes from the front behind a leading axis that its operands have gained."""
    moved = dict(node.attributes)
    for name, attribute in node.attributes.items():
        if name == "axis" and attribute.kind == "int" and attribute.value >= 0:
            moved[name] = replace(attribute, value=attribute.value + 1)
        elif name == "axes" and attribute.kind == "ints":
            moved[name] = replace(attribute, value=tuple(axis + (axis >= 0) for axis in attribute.value))
        elif name == "perm" and attribute.kind == "ints":
            moved[name] = replace(attribute, value=(0, *(axis + 1 for axis in attribute.value)))
    return replace(node, attributes=moved) if moved else node


def without_first_axis(node: Node) -> Node:
    """Reduce attributes that count axes from the front by one, because the leading axis is removed."""
    attributes = {name: _without_first(name, attribute) for name, attribute in node.attributes.items()}
    return replace(node, attributes=attributes) if attributes else node


def _without_first(name: str, attribute: Attribute) -> Attribute:
    if name == "axis" and attribute.kind == "int" and attribute.value > 0:
        return replace(attribute, value=attribute.value - 1)
    if name == "axes" and attribute.kind == "ints":
        return replace(attribute, value=tuple(axis - 1 if axis > 0 else axis for axis in attribute.value))
    if name == "perm" and attribute.kind == "ints" and attribute.value[:1] == (0,):
        return replace(attribute, value=tuple(axis - 1 for axis in attribute.value[1:]))
    return attribute
