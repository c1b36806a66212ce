"""Whether a node keeps the conditions of its operator's page."""

from miscompile.instances.instance import Instance
from miscompile.oracles.unspecified.pages.node import NodeView
from miscompile.oracles.unspecified.pages.table import CONDITIONS, OF_ALL


def broken(instance: Instance) -> str:
    """Return the first condition of its operator's page that a node breaks, empty if it fulfils all."""
    if instance.library != "onnx":
        return ""
    node = NodeView(instance)
    for words, holds in (*OF_ALL, *CONDITIONS.get(instance.api, ())):
        if not holds(node):
            return f"the operator's page: {words}"
    return ""
