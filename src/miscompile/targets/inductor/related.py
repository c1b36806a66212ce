"""Replacement of calls in a graph of torch's functions and methods by related operators that compute the same.

Standalone scripts contain the text of this file, so it has plain functions and few imports.
"""

import functools
import random
from typing import Any

import torch

from miscompile.targets.inductor.relations import COMPOSED, METHODS, NAMED_APART, SAME, SPREAD


def with_related(module: Any, seed: int, share: float) -> Any:  # noqa: ANN401 - a module of torch.fx
    """Return `module` with a `share` of the calls of related operators replaced, in its bodies too.

    Each draw depends only on `seed` and the name of the call, not on other calls.
    """
    related = related_operators()
    for path, body in list(module.named_modules()):
        if not isinstance(body, torch.fx.GraphModule):
            continue
        for node in list(body.graph.nodes):
            numbers = random.Random(f"{seed} {path} {node.name}")
            ways = ways_for(node, related)
            if ways and numbers.random() < share:
                replace_call(body.graph, node, numbers.choice(ways))
        body.recompile()
    return module


def related_operators() -> dict[Any, list[list[Any]]]:
    """Return the replacements of each operator: chains of operators to apply one after another.

    A function is represented by itself, a method by its name. Operators that this release lacks are omitted.
    """
    groups = [*map(str.split, SAME), *([f"torch.{name}", f"Tensor.{name}"] for name in METHODS.split())]
    chains = {first: [[operator_of(second), operator_of(then)]] for first, second, then in COMPOSED}
    found: dict[Any, list[list[Any]]] = {}
    for group in groups:
        ways = [[operator_of(name)] for name in group]
        ways += [chain for name in group for chain in chains.get(name, [])]
        ways = [way for way in ways if None not in way]
        found |= {way[0]: [other for other in ways if other != way] for way in ways if len(way) == 1}
    return found


def operator_of(path: str) -> Any:  # noqa: ANN401 - a function, a name or None
    """Return the function at a path, or the name of a method; None if there is none."""
    owner, *names = path.split(".")
    if owner == "Tensor":
        return names[0]
    return functools.reduce(lambda found, name: getattr(found, name, None), names, torch)


def ways_for(node: Any, related: dict[Any, list[list[Any]]]) -> list[list[Any]]:  # noqa: ANN401 - a node of torch.fx
    """Return the chains of operators that may stand for the call `node`: none unless its first operand is a tensor."""
    if node.op not in ("call_function", "call_method") or not node.args or NAMED_APART & set(node.kwargs):
        return []
    first = node.args[0].meta.get("example_value") if isinstance(node.args[0], torch.fx.Node) else None
    if not isinstance(first, torch.Tensor):
        return []
    alone = len(node.args) == 1 and not node.kwargs and first.is_floating_point()
    return [way for way in related.get(node.target, []) if len(way) == 1 or alone]


def replace_call(graph: Any, node: Any, way: list[Any]) -> None:  # noqa: ANN401 - of torch.fx
    """Replace the call `node` by the operators of `way`, one after another."""
    value, *rest = node.args
    if node.target in SPREAD and rest and not isinstance(rest[0], (tuple, list)):
        rest = [tuple(rest)]
    with graph.inserting_before(node):
        for operator in way:
            kind = "call_method" if isinstance(operator, str) else "call_function"
            value = graph.create_node(kind, operator, (value, *rest), dict(node.kwargs))
            value.meta = dict(node.meta)
    node.replace_all_uses_with(value)
    graph.erase_node(node)
