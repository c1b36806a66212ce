"""Operators that draw random numbers, so that their results differ between runs."""

from miscompile.graph.model import Node

RANDOM = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)
"""Operators of the standard domain that always draw random numbers. Dropout draws them only in training mode."""

MAY_DRAW = RANDOM | {"Dropout"}
"""Operators that draw random numbers always, or, like Dropout, in training mode."""

_STANDARD = ("", "ai.onnx")


def plain(node: Node) -> bool:
    """Tell whether `node` and all nodes in its bodies are deterministic operators of the standard domain."""
    return deterministic(node) and all(plain(inner) for body in node.subgraphs() for inner in body.nodes)


def deterministic(node: Node) -> bool:
    """Tell whether `node`, apart from its bodies, is a deterministic operator of the standard domain."""
    if node.domain not in _STANDARD or node.op in RANDOM:
        return False
    return not (node.op == "Dropout" and len(node.inputs) > 2 and node.inputs[2])  # which may be in training mode
