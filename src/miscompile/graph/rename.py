"""Fresh names, renaming of values everywhere, and replacement of uses."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from miscompile.base.errors import ModelError
from miscompile.graph.edges import all_names, defined, map_bodies
from miscompile.graph.model import Graph, Node, ValueInfo

Value = TypeVar("Value")


class NameSupply:
    """A supply of unused value names. Construct it with every name of a model, bodies included."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._next: dict[str, int] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._taken

    def fresh(self, base: str) -> str:
        """Reserve and return `base`, or `base_1`, `base_2`, ... when it is taken."""
        name, number = base, self._next.get(base, 0)
        while not name or name in self._taken:
            number += 1
            name = f"{base}_{number}"
        self._next[base] = number
        self._taken.add(name)
        return name

    def claim(self, name: str) -> str:
        """Reserve exactly `name`. Raises ModelError when it is taken."""
        if name in self._taken:
            raise ModelError(f"there is already a value named {name!r}")
        self._taken.add(name)
        return name


def rename(graph: Graph, names: Mapping[str, str]) -> Graph:
    """Return `graph` with values renamed wherever they occur: defined, used or captured, bodies included.

    Names that `names` lacks do not change. Raises ModelError when two values would get one name.
    """
    present = all_names(graph)
    if len({names.get(name, name) for name in present}) < len(present):
        raise ModelError("renaming would give two values one name")
    return _rename(graph, names)


def rename_nodes(nodes: Iterable[Node], names: Mapping[str, str]) -> tuple[Node, ...]:
    """Return `nodes` renamed as by `rename`, without its check; a value may become "", an omitted one."""
    return tuple(
        replace(
            map_bodies(node, lambda body: _rename(body, names)),
            inputs=_each(node.inputs, names),
            outputs=_each(node.outputs, names),
        )
        for node in nodes
    )


def redirect(node: Node, names: Mapping[str, str]) -> Node:
    """Return `node` using `names[v]` wherever it uses `v`, in bodies too, unless a body defines its own `v`."""
    inputs = _each(node.inputs, names)
    changed = map_bodies(node, lambda body: _redirect_body(body, names))
    return changed if inputs == node.inputs else replace(changed, inputs=inputs)


def _redirect_body(body: Graph, names: Mapping[str, str]) -> Graph:
    own = defined(body)
    outer = {old: new for old, new in names.items() if old not in own}
    if not outer:
        return body
    nodes = tuple(redirect(node, outer) for node in body.nodes)
    outputs = _infos(body.outputs, outer)
    same = outputs == body.outputs and all(new is old for new, old in zip(nodes, body.nodes, strict=True))
    return body if same else replace(body, nodes=nodes, outputs=outputs)


def _rename(graph: Graph, names: Mapping[str, str]) -> Graph:
    return Graph(
        graph.name,
        _infos(graph.inputs, names),
        _infos(graph.outputs, names),
        rename_nodes(graph.nodes, names),
        _keys(graph.initializers, names),
        _keys(graph.sparse_initializers, names),
        _keys(graph.types, names),
    )


def _each(values: tuple[str, ...], names: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(names.get(value, value) for value in values)


def _infos(infos: tuple[ValueInfo, ...], names: Mapping[str, str]) -> tuple[ValueInfo, ...]:
    return tuple(ValueInfo(names.get(info.name, info.name), info.type) for info in infos)


def _keys(values: Mapping[str, Value], names: Mapping[str, str]) -> dict[str, Value]:
    return {names.get(name, name): value for name, value in values.items()}


def refresh(nodes: Iterable[Node], names: Mapping[str, str], supply: Callable[[str], str]) -> tuple[Node, ...]:
    """Return copies of `nodes` renamed by `names`; all other values that they define get names from `supply`.

    Used values keep their names if the nodes do not define them and `names` lacks them. Node names are dropped,
    because they must be unique.
    """
    copies = tuple(replace(node, name="") for node in nodes)
    mapping = dict(names)
    for name in _defined_inside(copies):
        if name not in mapping:
            mapping[name] = supply(name)
    return rename_nodes(copies, mapping)


def _defined_inside(nodes: Iterable[Node]) -> list[str]:
    found: dict[str, None] = {}
    for node in nodes:
        found.update(dict.fromkeys(name for name in node.outputs if name))
        for body in node.subgraphs():
            found.update(dict.fromkeys(info.name for info in body.inputs))
            found.update(dict.fromkeys((*body.initializers, *body.sparse_initializers)))
            found.update(dict.fromkeys(_defined_inside(body.nodes)))
    return list(found)
