"""Attributes that count axes, after the operands of a call have gained or lost their first axis.

Triage asks which ranks show a bug, reductions lower ranks, and a check looks for a rank that a compiler takes.
"""

from dataclasses import replace

from miscompile.graph.model import Attribute, Node

_PER_AXIS = frozenset({"kernel_shape", "strides", "dilations", "output_padding", "output_shape"})
"""Attributes with an element for each axis of a window."""

_PER_END = frozenset({"pads"})
"""Attributes with two elements for each axis of a window: all beginnings, then all ends."""


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


def without_window_axis(node: Node, *, last: bool) -> Node:
    """Remove the last or the first axis of a node's window, because that of its operands is removed."""
    kept = slice(None, -1) if last else slice(1, None)
    attributes = {name: _narrowed_attribute(name, attribute, kept) for name, attribute in node.attributes.items()}
    return replace(node, attributes=attributes) if attributes else node


def _narrowed_attribute(name: str, attribute: Attribute, kept: slice) -> Attribute:
    if name in _PER_AXIS:
        return replace(attribute, value=tuple(attribute.value[kept]))
    if name in _PER_END:
        half = len(attribute.value) // 2
        return replace(attribute, value=(*attribute.value[:half][kept], *attribute.value[half:][kept]))
    return attribute


def with_window_axis(node: Node) -> Node:
    """Return a node whose window has one more axis, of one element without padding, behind the others."""
    attributes = {name: _widened_attribute(name, attribute) for name, attribute in node.attributes.items()}
    return replace(node, attributes=attributes) if attributes else node


def _widened_attribute(name: str, attribute: Attribute) -> Attribute:
    more = int(name in ("kernel_shape", "strides", "dilations", "output_shape"))
    if name in _PER_AXIS:
        return replace(attribute, value=(*attribute.value, more))
    if name in _PER_END:
        half = len(attribute.value) // 2
        return replace(attribute, value=(*attribute.value[:half], 0, *attribute.value[half:], 0))
    return attribute
