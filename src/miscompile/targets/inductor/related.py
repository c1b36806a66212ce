"""Related operators: in a graph of torch's functions and methods, calls become others that compute the same.

A script has this file's text in it: hence plain functions and few imports.
"""

import functools
import random
from typing import Any

import torch

from miscompile.targets.inductor.relations import COMPOSED, METHODS, NAMED_APART, SAME, SPREAD


def with_related(module: Any, seed: int, share: float) -> Any:  # noqa: ANN401 - a module of torch.fx
    """Return `module` with a `share` of the calls that have a relation changed, in its bodies as well.

    Each draw is by `seed` and the name of the call, so that it does not depend on other calls.
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
    """Return what may stand for each operator: chains of operators to apply one after another.

    A function is itself, a method its name. What this release lacks is left out.
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
    """Return the function at a path, None where there is none; of a method the name."""
    owner, *names = path.split(".")
    if owner == "Tensor":
        return names[0]
    return functools.reduce(lambda found, name: getattr(found, name, None), names, torch)


def ways_for(node: Any, related: dict[Any, list[list[Any]]]) -> list[list[Any]]:  # noqa: ANN401 - a node of torch.fx
    """Return the chains of operators that may stand for the call `node`: none unless it is one of a tensor."""
    if node.op not in ("call_function", "call_method") or not node.args or NAMED_APART & set(node.kwargs):
        return []
    first = node.args[0].meta.get("example_value") if isinstance(node.args[0], torch.fx.Node) else None
    if not isinstance(first, torch.Tensor):
        return []
    alone = len(node.args) == 1 and not node.kwargs and first.is_floating_point()
    return [way for way in related.get(node.target, []) if len(way) == 1 or alone]


def replace_call(graph: Any, node: Any, way: list[Any]) -> None:  # noqa: ANN401 - of torch.fx
    """Put the operators of `way`, one after another, in the place of the call `node`."""
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
