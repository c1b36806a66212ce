"""The passes, in the order in which they run. Each changes a graph in place and tells whether it did."""

from collections.abc import Callable, Mapping

from acme_compiler.graph import Graph


def remove_identity(graph: Graph) -> bool:
    """Identity(x) -> x."""
    found = [node for node in graph.nodes if node.op == "Identity"]
    for node in found:
        graph.replace(node.output, node.inputs[0])
        graph.nodes.remove(node)
    return bool(found)


def merge_transposes(graph: Graph) -> bool:
    """Transpose(Transpose(x, p), q) -> Transpose(x, p[q])."""
    changed = False
    for node in graph.nodes:
        inner = graph.maker(node.inputs[0]) if node.op == "Transpose" else None
        if inner is not None and inner.op == "Transpose" and {"perm"} <= node.attributes.keys() & inner.attributes:
            first, second = inner.attributes["perm"], node.attributes["perm"]
            node.attributes = {"perm": [first[axis] for axis in second]}
            node.inputs, changed = inner.inputs, True
    return changed


def add_neg_to_sub(graph: Graph) -> bool:
    """Add(x, Neg(y)) -> Sub(x, y), and Add(Neg(x), y) -> Sub(y, x).

    The planted bug: the second form is made without swapping the operands.
    """
    changed = False
    for node in graph.nodes:
        for place in (1, 0):
            neg = graph.maker(node.inputs[place]) if node.op == "Add" else None
            if neg is not None and neg.op == "Neg":
                operands = list(node.inputs)
                operands[place] = neg.inputs[0]
                node.op, node.inputs, changed = "Sub", tuple(operands), True
    return changed


def dead_code(graph: Graph) -> bool:
    """Remove what nothing reads."""
    needed, before = set(graph.outputs), len(graph.nodes)
    for node in reversed(graph.nodes):
        if node.output in needed:
            needed.update(node.inputs)
    graph.nodes = [node for node in graph.nodes if node.output in needed]
    return len(graph.nodes) < before


PASSES: Mapping[str, Callable[[Graph], bool]] = {
    "RemoveIdentity": remove_identity,
    "MergeTransposes": merge_transposes,
    "AddNegToSub": add_neg_to_sub,
    "DeadCode": dead_code,
}
