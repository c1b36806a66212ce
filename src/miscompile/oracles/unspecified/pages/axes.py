"""Conditions on attributes that name axes."""

from onnx import defs

from miscompile.oracles.unspecified.pages.node import NodeView

_COUNTED_FROM_THE_BACK = 11
"""The operator set since which all operators count negative axes from the back."""

_WORDS = ("counting", "[-", "-1")
"""What the older descriptions say where a negative axis is allowed."""


def axes_are_counted_from_the_front(node: NodeView) -> bool:
    """Tell whether no axis is negative, unless the page of the version allows it or the axis is the default one."""
    instance = node.instance
    if instance.version >= _COUNTED_FROM_THE_BACK:
        return True
    try:
        known = defs.get_schema(instance.api, instance.version).attributes
    except defs.SchemaError:
        return True  # the version has no such operator
    for name in ("axis", "axes"):
        given = node.whole_list(name) or [node.whole(name, 0)]
        if name not in known or min(given) >= 0 or any(word in known[name].description for word in _WORDS):
            continue
        default = known[name].default_value
        if not default.HasField("i") or given != [default.i]:
            return False
    return True
