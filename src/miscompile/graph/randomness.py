"""Which operators draw numbers, so that what they give differs from run to run."""

from miscompile.graph.model import Node

RANDOM = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)
"""Operators of the standard domain that always draw numbers. Dropout does so in training mode alone."""

_STANDARD = ("", "ai.onnx")


def plain(node: Node) -> bool:
    """Tell whether `node`, with all that its bodies hold, is of the standard domain and gives the same each time."""
    if node.domain not in _STANDARD or node.op in RANDOM:
        return False
    if node.op == "Dropout" and len(node.inputs) > 2 and node.inputs[2]:
        return False  # it may be in training mode
    return all(plain(inner) for body in node.subgraphs() for inner in body.nodes)
