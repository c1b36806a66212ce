"""Inlining of model-local functions.

onnx's inliner loses default attribute values of a function when a call passes them to a nested function (observed
with onnx 1.23), so this module has its own.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from onnx import defs

from miscompile.base.errors import ModelError
from miscompile.graph.edges import all_names, map_bodies
from miscompile.graph.model import NO_ATTRIBUTES, Attribute, Function, Graph, Model, Node
from miscompile.graph.prune import FunctionKey, callee_key, function_key
from miscompile.graph.rename import NameSupply, refresh


def inline(model: Model) -> Model:
    """Return `model` with every call to a model-local function replaced by the function's body, at any depth.

    References to attributes are resolved, inlined values get fresh names, inlined nodes lose theirs. The model also
    imports the domains that only functions import. Raises ModelError when functions call each other recursively, and
    when a function's body has another meaning under the model's operator sets.
    """
    inliner = _Inliner(model)
    graph = inliner.graph(model.graph, ())
    return replace(model, graph=graph, opsets=inliner.opsets, functions=())


class _Inliner:
    def __init__(self, model: Model) -> None:
        self.opsets = dict(model.opsets)
        self._functions = {function_key(function): function for function in model.functions}
        self._names = NameSupply(all_names(model.graph))
        self._sound: set[FunctionKey] = set()

    def graph(self, graph: Graph, path: tuple[FunctionKey, ...]) -> Graph:
        nodes = self._nodes(graph.nodes, path)
        same = len(nodes) == len(graph.nodes) and all(new is old for new, old in zip(nodes, graph.nodes, strict=True))
        return graph if same else replace(graph, nodes=nodes)

    def _nodes(self, nodes: Iterable[Node], path: tuple[FunctionKey, ...]) -> tuple[Node, ...]:
        """Expand `nodes`; `path` contains the functions in whose bodies they occur."""
        found: list[Node] = []
        for node in nodes:
            key = callee_key(node)
            if key not in self._functions:
                found.append(map_bodies(node, lambda body: self.graph(body, path)))
                continue
            if key in path:
                raise ModelError(f"function {node.op!r} of domain {node.domain!r} calls itself")
            self._admit(key)
            found.extend(self._nodes(self._expand(node, self._functions[key]), (*path, key)))
        return tuple(found)

    def _expand(self, call: Node, function: Function) -> tuple[Node, ...]:
        if len(call.inputs) > len(function.inputs) or len(call.outputs) > len(function.outputs):
            raise ModelError(f"a call of function {function.name!r} has too many inputs or outputs")
        given = {**function.defaults, **call.attributes}
        names = dict.fromkeys(function.inputs, "")
        names.update(zip(function.inputs, call.inputs, strict=False))
        copies: list[Node] = []
        for formal, actual in zip(function.outputs, call.outputs, strict=False):
            if not actual:
                continue
            if formal not in names:
                names[formal] = actual
            elif names[formal]:  # an input, or an output that occurs twice, cannot have a second name
                copies.append(Node("Identity", (names[formal],), (actual,)))
            else:
                raise ModelError(f"function {function.name!r} returns its input {formal!r}, which a call leaves out")
        body = refresh(function.nodes, names, self._names.fresh)
        # Only now, because a body in an attribute of the call refers to values at the call, not in the function.
        return (*(_resolve(node, given) for node in body), *copies)

    def _admit(self, key: FunctionKey) -> None:
        """Check that a function's body has the same meaning under the model's opsets, and import missing domains."""
        if key in self._sound:
            return
        self._sound.add(key)
        function = self._functions[key]
        for domain, version in function.opsets.items():
            here = self.opsets.setdefault(domain, version)
            if here != version:
                _same_operators(function.nodes, domain, version, here, function.name)


def _same_operators(nodes: Iterable[Node], domain: str, version: int, here: int, function: str) -> None:
    for node in nodes:
        if node.domain == domain and _since(node.op, version, domain) != _since(node.op, here, domain):
            raise ModelError(
                f"function {function!r} cannot be inlined: it means {node.op} of opset {version}, the model's is {here}"
            )
        for body in node.subgraphs():
            _same_operators(body.nodes, domain, version, here, function)


def _since(op: str, version: int, domain: str) -> int:
    try:
        return int(defs.get_schema(op, version, domain).since_version)
    except defs.SchemaError:
        return -version  # an operator that onnx does not know may change with every version


def _resolve(node: Node, given: Mapping[str, Attribute]) -> Node:
    """Return `node` with references to the function's attributes replaced by the call's attributes, where it has
    them."""
    attributes: dict[str, Attribute] = {}
    for name, attribute in node.attributes.items():
        if attribute.kind != "ref":
            attributes[name] = attribute
        elif attribute.value in given:
            attributes[name] = given[attribute.value]
    resolved = replace(node, attributes=attributes or NO_ATTRIBUTES)
    return map_bodies(resolved, lambda body: replace(body, nodes=tuple(_resolve(inner, given) for inner in body.nodes)))
