"""Removal of nodes, initialisers and functions that no output needs."""

from collections.abc import Iterable
from dataclasses import replace

from miscompile.graph.edges import map_bodies, reads
from miscompile.graph.model import Function, Graph, Model, Node

FunctionKey = tuple[str, str, str]
"""Domain, name and overload, by which a call finds its function."""


def prune(model: Model, *, inputs: bool = False) -> Model:
    """Return `model` without the nodes, initialisers, inner types and functions that no output needs.

    Bodies and functions are pruned too. A value that a needed body captures is needed. Graph inputs and their
    defaults remain, unless `inputs` requests the removal of unused ones; inputs of bodies always remain.
    """
    graph = prune_graph(model.graph, inputs=inputs)
    functions = {function_key(function): _prune_function(function) for function in model.functions}
    wanted = list(_calls(graph.nodes, functions))
    reached: set[FunctionKey] = set()
    while wanted:
        key = wanted.pop()
        if key not in reached:
            reached.add(key)
            wanted.extend(_calls(functions[key].nodes, functions))
    return replace(
        model, graph=graph, functions=tuple(function for key, function in functions.items() if key in reached)
    )


def prune_graph(graph: Graph, *, inputs: bool = False) -> Graph:
    """Return `graph` without the nodes, initialisers and inner types that its outputs do not need; see `prune`."""
    nodes, needed = _needed(graph.nodes, (info.name for info in graph.outputs))
    kept_inputs = tuple(info for info in graph.inputs if not inputs or info.name in needed)
    needed.update(info.name for info in kept_inputs)
    made = {name for node in nodes for name in node.outputs}
    return replace(
        graph,
        inputs=kept_inputs,
        nodes=nodes,
        initializers={name: value for name, value in graph.initializers.items() if name in needed},
        sparse_initializers={name: value for name, value in graph.sparse_initializers.items() if name in needed},
        types={name: known for name, known in graph.types.items() if name in needed or name in made},
    )


def function_key(function: Function) -> FunctionKey:
    """Return the key by which a call refers to `function`; both names of the standard domain give the same key."""
    return _domain(function.domain), function.name, function.overload


def callee_key(node: Node) -> FunctionKey:
    """Return the key of the function that `node` calls, if there is one."""
    return _domain(node.domain), node.op, node.overload


def _domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


def _needed(nodes: tuple[Node, ...], outputs: Iterable[str]) -> tuple[tuple[Node, ...], set[str]]:
    """Return the nodes that `outputs` need, their bodies pruned, and every value that is needed."""
    made = {name: place for place, node in enumerate(nodes) for name in node.outputs if name}
    needed: set[str] = set()
    kept: dict[int, Node] = {}
    wanted = list(outputs)
    while wanted:
        name = wanted.pop()
        if name in needed:
            continue
        needed.add(name)
        place = made.get(name)
        if place is not None and place not in kept:
            kept[place] = map_bodies(nodes[place], prune_graph)
            wanted.extend(reads(kept[place]))
    return tuple(kept[place] for place in sorted(kept)), needed


def _prune_function(function: Function) -> Function:
    nodes, needed = _needed(function.nodes, function.outputs)
    made = {name for node in nodes for name in node.outputs}
    types = {name: known for name, known in function.types.items() if name in needed or name in made}
    return replace(function, nodes=nodes, types=types)


def _calls(nodes: Iterable[Node], functions: dict[FunctionKey, Function]) -> Iterable[FunctionKey]:
    for node in nodes:
        if callee_key(node) in functions:
            yield callee_key(node)
        for body in node.subgraphs():
            yield from _calls(body.nodes, functions)
