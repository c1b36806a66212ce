"""The regions of a model (main graph, functions, and bodies in either), and the calls between functions."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from miscompile.base.errors import ModelError
from miscompile.core.tensor import Tensor
from miscompile.graph.edges import all_names, defined, map_bodies, names_in
from miscompile.graph.model import Attribute, Function, Graph, Model, Node
from miscompile.graph.prune import FunctionKey, callee_key, function_key

Put = Callable[[tuple[Node, ...]], Model]
"""Returns the model with the nodes of one region replaced."""


@dataclass(frozen=True, slots=True)
class Region:
    """The nodes of one scope of a model.

    `outputs` are the outputs of the scope, `constants` the visible initialisers that nothing can override, `barred` the
    values that no function can have as input (sparse initialisers), `opsets` the versions by domain, and `function` the
    enclosing function (None: the main graph). `put` returns the model with other nodes here, without the types of
    removed values.
    """

    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]
    constants: Mapping[str, Tensor]
    barred: frozenset[str]
    opsets: Mapping[str, int]
    function: FunctionKey | None
    put: Put


def regions(model: Model) -> list[Region]:
    """Return every region of `model`: the main graph first, each region before the bodies in it."""
    top = Region((), (), {}, frozenset(), model.opsets, None, lambda _: model)
    found = list(_of_graph(model.graph, top, lambda graph: replace(model, graph=graph)))
    for place, function in enumerate(model.functions):
        found.extend(_of_function(model, place, function))
    return found


def _of_function(model: Model, place: int, function: Function) -> Iterator[Region]:
    def put(nodes: tuple[Node, ...]) -> Model:
        kept = {*function.inputs, *(name for node in nodes for name in node.outputs)}
        types = {name: known for name, known in function.types.items() if name in kept}
        return _with_function(model, place, replace(function, nodes=nodes, types=types))

    own = Region(function.nodes, function.outputs, {}, frozenset(), function.opsets, function_key(function), put)
    yield own
    yield from _of_bodies(own, put)


def _with_function(model: Model, place: int, function: Function) -> Model:
    return replace(model, functions=(*model.functions[:place], function, *model.functions[place + 1 :]))


def _of_graph(graph: Graph, outer: Region, put: Callable[[Graph], Model]) -> Iterator[Region]:
    """Yield the region of `graph` and of the bodies in it; `outer` is the enclosing region."""
    inputs = {info.name for info in graph.inputs}
    fixed = {name: value for name, value in graph.initializers.items() if name not in inputs}

    def put_nodes(nodes: tuple[Node, ...]) -> Model:
        changed = replace(graph, nodes=nodes)
        kept = defined(changed)
        return put(replace(changed, types={name: known for name, known in graph.types.items() if name in kept}))

    own = replace(
        outer,
        nodes=graph.nodes,
        outputs=tuple(info.name for info in graph.outputs),
        constants={**outer.constants, **fixed},
        barred=outer.barred.union(graph.sparse_initializers),
        put=put_nodes,
    )
    yield own
    yield from _of_bodies(own, lambda nodes: put(replace(graph, nodes=nodes)))


def _of_bodies(region: Region, put: Put) -> Iterator[Region]:
    for place, node in enumerate(region.nodes):
        for name, attribute in node.attributes.items():
            if attribute.kind == "graph":
                yield from _of_graph(attribute.value, region, _body_put(region.nodes, place, name, put))


def _body_put(nodes: tuple[Node, ...], place: int, name: str, put: Put) -> Callable[[Graph], Model]:
    def put_graph(graph: Graph) -> Model:
        attributes = {**nodes[place].attributes, name: Attribute("graph", graph)}
        return put((*nodes[:place], replace(nodes[place], attributes=attributes), *nodes[place + 1 :]))

    return put_graph


def map_nodes(model: Model, change: Callable[[Node, Mapping[str, int]], Node]) -> Model:
    """Return `model` with every node replaced by `change(node, opsets)`, with the operator sets that apply to it.

    The nodes come in the order of `regions`; a body's nodes come before the node of the body.
    """

    def each(nodes: tuple[Node, ...], opsets: Mapping[str, int]) -> tuple[Node, ...]:
        return tuple(change(map_bodies(node, lambda body: inside(body, opsets)), opsets) for node in nodes)

    def inside(body: Graph, opsets: Mapping[str, int]) -> Graph:
        return replace(body, nodes=each(body.nodes, opsets))

    functions = tuple(replace(function, nodes=each(function.nodes, function.opsets)) for function in model.functions)
    return replace(model, graph=inside(model.graph, model.opsets), functions=functions)


def calls(model: Model) -> list[tuple[FunctionKey | None, Node]]:
    """Return every call of a model-local function, with the calling function (None: the main graph)."""
    keys = {function_key(function) for function in model.functions}
    return [(region.function, node) for region in regions(model) for node in region.nodes if callee_key(node) in keys]


def call_depth(model: Model) -> int:
    """Return the nesting depth of calls: 0 without calls. Raises ModelError for recursion."""
    called: dict[FunctionKey | None, dict[FunctionKey, None]] = {}
    for caller, call in calls(model):
        called.setdefault(caller, {})[callee_key(call)] = None

    def below(caller: FunctionKey | None, path: tuple[FunctionKey | None, ...]) -> int:
        if caller in path:
            raise ModelError("a function calls itself")
        return max((1 + below(callee, (*path, caller)) for callee in called.get(caller, ())), default=0)

    return below(None, ())


def names_of(model: Model) -> set[str]:
    """Return every value name of the main graph, of the functions and of all bodies."""
    names = all_names(model.graph)
    for function in model.functions:
        names.update(function.inputs, function.outputs, names_in(function.nodes))
    return names
