"""Other names for inner values, nodes, and the parameters of functions.

Passes generate names for inserted nodes, look values up by name, and pass names to code generators, so an unexpected
name alone can trigger a bug. Inputs and outputs keep their names, which are the model's signature. Source:
https://onnx.ai/onnx/repo-docs/IR.html#names-within-a-graph (names are C90 identifiers); exporters deviate from it with
slashes, dots, colons, and numbers.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal
from urllib.parse import quote

from miscompile.base.digest import digest_bytes
from miscompile.base.errors import SpecError
from miscompile.graph.edges import all_names, map_bodies, names_in
from miscompile.graph.model import Function, Graph, Model, Node
from miscompile.graph.rename import NameSupply, rename, rename_nodes
from miscompile.transforms.exact.placed import Placed

NameStyle = Literal["identifier", "usual", "any"]
"""identifier: C90 identifiers only; usual: also what exporters write; any: also text that no page forbids outright."""

_IDENTIFIERS = (
    "Relu", "Constant", "If", "None", "self", "lambda", "import_", "main", "graph", "x", "X", "_", "__", "__init__",
    "l" * 300, "input", "output", "float32", "Relu_token", "Transpose_0", "std", "fused",
)  # fmt: skip
_USUAL = (
    "0", "1", "17", "1.5", "-1", "model/layer.0/Relu_output_0", "/Relu", "a/b:0", "a:0", "a.b.c", "onnx::Add_7", "^a",
    "model/" + "block/" * 60 + "y", "batch-norm", "x;y", "T@cpu", "w[0]", "a_quantized", "a_scale", "a_zero_point",
)  # fmt: skip
_ANY = (
    "héllo",
    "变量",
    "a b",
    "%s",
    "%d%n",
    "'",
    '"',
    "\\",
    "{}",
    "<y>",
    "a\tb",
    "$x",
    "#",
    "?",
    "😀",
    "..",
    "a,b",
    "=",
)
_BASES: Mapping[str, tuple[str, ...]] = {
    "identifier": _IDENTIFIERS, "usual": (*_IDENTIFIERS, *_USUAL), "any": (*_IDENTIFIERS, *_USUAL, *_ANY),
}  # fmt: skip
_NAMELESS = 0.4
"""Share of the nodes that lose their name; the others get one of the chosen style."""


@dataclass(frozen=True, slots=True)
class Rename(Placed):
    """Renames inner values and nodes. Places are the names of values, in functions by their path.

    A node is renamed with its first result. Names are unique over the whole model, although scopes would allow more.
    """

    stream_name: ClassVar[str] = "Rename"

    style: NameStyle = "usual"

    def __post_init__(self) -> None:
        """Raise SpecError for an unknown style or a share out of range."""
        if self.style not in _BASES or not 0 <= self.share <= 1:
            raise SpecError(f"style is one of {', '.join(_BASES)}, and share a number from 0 to 1")

    def places(self, model: Model) -> tuple[str, ...]:
        """Return the values that can be renamed."""
        found = [_place("", name) for name in _inner(model.graph)]
        for function in model.functions:
            found += [_place(_path(function), name) for name in _values(function)]
        return tuple(found)

    def apply(self, model: Model) -> Model:
        """Return `model` with other names. Raises RejectedDraft when it has no inner value."""
        picked, names = self.picked(self.places(model)), NameSupply(all_names(model.graph))

        def renamed(name: str, path: str) -> str:
            place = _place(path, name)
            base = self.stream(place).choice(_BASES[self.style])
            return names.fresh(f"{base}_{digest_bytes(place.encode(), length=6)}" if base in names else base)

        instead = {name: renamed(name, "") for name in _inner(model.graph) if _place("", name) in picked}
        graph = rename(model.graph, instead)
        return replace(
            model,
            graph=replace(graph, nodes=self._named(graph.nodes, instead, NameSupply())),
            functions=tuple(self._function(function, picked, renamed) for function in model.functions),
        )

    def _function(self, function: Function, picked: frozenset[str], renamed: Callable[[str, str], str]) -> Function:
        path = _path(function)
        instead = {name: renamed(name, path) for name in _values(function) if _place(path, name) in picked}
        nodes = self._named(rename_nodes(function.nodes, instead), instead, NameSupply())
        inputs, outputs = (
            tuple(instead.get(name, name) for name in names) for names in (function.inputs, function.outputs)
        )
        types = {instead.get(name, name): known for name, known in function.types.items()}
        return replace(function, inputs=inputs, outputs=outputs, nodes=nodes, types=types)

    def _named(self, nodes: tuple[Node, ...], instead: Mapping[str, str], names: NameSupply) -> tuple[Node, ...]:
        """Return `nodes`, and those in their bodies, with other names where their first result has one."""
        old = {new: name for name, new in instead.items()}

        def each(node: Node) -> Node:
            inner = map_bodies(node, lambda body: replace(body, nodes=tuple(map(each, body.nodes))))
            first = next(filter(None, node.outputs), "")
            if first not in old:
                return replace(inner, name=names.fresh(node.name)) if node.name else inner
            rng = self.stream(old[first], "node")
            empty = rng.random() < _NAMELESS
            return replace(inner, name="" if empty else names.fresh(rng.choice((*_BASES[self.style], first, node.op))))

        return tuple(map(each, nodes))


def _inner(graph: Graph) -> list[str]:
    """Return the values of a main graph and of its bodies that are neither inputs nor outputs of the graph."""
    fixed = {info.name for info in (*graph.inputs, *graph.outputs)}
    return sorted(all_names(graph) - fixed)


def _values(function: Function) -> list[str]:
    return sorted({*function.inputs, *function.outputs, *names_in(function.nodes)} - {""})


def _path(function: Function) -> str:
    return ":".join(("fn", *(quote(part, safe="") for part in (function.domain, function.name, function.overload))))


def _place(path: str, name: str) -> str:
    written = quote(name, safe="")
    return f"{path}/{written}" if path else written
