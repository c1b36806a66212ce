"""The drawing of a program's graph: a box for each input, node and output, with what a reader asks first inside.

Constants are lines in the boxes of the nodes that read them, because they would double the boxes. The text form of the
model stands below each drawing and has everything else.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from miscompile.base.errors import MiscompileError
from miscompile.core.case import Program
from miscompile.graph.edges import reads
from miscompile.graph.model import Attribute, Graph, Node, ValueType
from miscompile.graph.read import read
from miscompile.graph.text.elements import format_elements
from miscompile.graph.text.printer import print_node, print_type
from miscompile.reports.site.layout import layered_layout

MOST_NODES = 60
"""A larger graph is not drawn: its boxes would be too small to read."""

_WIDEST = 34
_CHARACTER, _LINE, _PAD = 7.3, 17.0, 9.0
"""Width of a character at the page's font size, height of a line, and padding, in SVG units."""

_MARGIN = 6.0
_FEW = 4


@dataclass(frozen=True, slots=True)
class Box:
    """A box of a drawing: its place, its lines of text, the whole text for the pointer, and its role."""

    x: float
    y: float
    width: float
    height: float
    lines: Sequence[str]
    title: str
    role: Literal["input", "node", "output", "wrong"]


@dataclass(frozen=True, slots=True)
class Line:
    """An edge of a drawing: the data of an SVG path, the value's name and type, and whether it is marked."""

    path: str
    title: str
    marked: bool


@dataclass(frozen=True, slots=True)
class Drawing:
    """A drawn graph, in SVG units."""

    width: float
    height: float
    boxes: Sequence[Box]
    lines: Sequence[Line]


def draw_program(program: Program, wrong: str = "", marks: Collection[tuple[str, str]] = ()) -> Drawing | None:
    """Return the drawing of a program; None for one that is no ONNX model, cannot be read, or is too large.

    `wrong` is the name of the output to mark. `marks` are pairs of a value and one made from it, whose edge is marked.
    """
    if program.kind != "onnx":
        return None
    try:
        graph = read(program.payload).graph
    except MiscompileError:
        return None
    return draw_graph(graph, wrong, marks) if len(graph.nodes) <= MOST_NODES else None


def draw_graph(graph: Graph, wrong: str = "", marks: Collection[tuple[str, str]] = ()) -> Drawing:
    """Return the drawing of a graph, as `draw_program` does."""
    inputs = [info for info in graph.inputs if info.name not in graph.initializers]
    made_by = {info.name: place for place, info in enumerate(inputs)}
    texts = [[info.name, _type(info.type)] for info in inputs]
    roles: list[Literal["input", "node", "output", "wrong"]] = ["input"] * len(inputs)
    titles = [f"{info.name}: {_type(info.type)}" for info in inputs]
    edges: dict[tuple[int, int], tuple[str, bool]] = {}
    for node in graph.nodes:
        here = len(texts)
        for name in reads(node):
            if name in made_by:
                edges[made_by[name], here] = (name, any((name, out) in marks for out in node.outputs))
        made_by.update({name: here for name in node.outputs if name})
        texts.append(_lines(node, graph))
        titles.append(print_node(node, graph.types))
        roles.append("node")
    for info in graph.outputs:
        if info.name in made_by:
            edges[made_by[info.name], len(texts)] = (info.name, False)
        texts.append([info.name, _type(info.type)])
        titles.append(f"output {info.name}: {_type(info.type)}")
        roles.append("wrong" if info.name == wrong else "output")
    lines = [[_short(line) for line in text if line] for text in texts]
    sizes = [(max(map(len, text), default=0) * _CHARACTER + 2 * _PAD, len(text) * _LINE + 2 * _PAD) for text in lines]
    found = layered_layout(sizes, list(edges), range(len(inputs)))
    boxes = [
        Box(x - width / 2 + _MARGIN, y - height / 2 + _MARGIN, width, height, text, title[:2000], role)
        for (x, y), (width, height), text, title, role in zip(found.centres, sizes, lines, titles, roles, strict=True)
    ]
    types = {info.name: info.type for info in inputs} | dict(graph.types)
    drawn = [
        Line(_curve(route), _typed(name, types.get(name)), marked)
        for route, (name, marked) in zip(found.routes, edges.values(), strict=True)
    ]
    return Drawing(found.width + 2 * _MARGIN, found.height + 2 * _MARGIN, boxes, drawn)


def marks_of(facts: Mapping[str, object]) -> set[tuple[str, str]]:
    """Return the edges on which a barrier heals the bug, as pairs of values, from the fact `resisted`."""
    resisted = facts.get("resisted")
    edges = resisted.get("edges", ()) if isinstance(resisted, Mapping) else ()
    found = set()
    for edge in edges if isinstance(edges, Sequence) else ():
        one, arrow, other = str(edge).partition(":")[0].partition(">")
        if arrow:
            found.add((one, other))
    return found


def _lines(node: Node, graph: Graph) -> list[str]:
    """Return operator, attributes, constants and outputs of a node, each a line."""
    shown = [f"{name}={_attribute(attribute)}" for name, attribute in node.attributes.items()]
    constants = [name for name in dict.fromkeys(reads(node)) if name in graph.initializers]
    return [
        f"{node.domain}::{node.op}" if node.domain else node.op,
        *shown[:_FEW],
        *(["..."] if len(shown) > _FEW else []),
        *(f"{name} = {_constant(graph, name)}" for name in constants),
        *(f"> {_typed(name, graph.types.get(name) or _declared(graph, name))}" for name in node.outputs if name),
    ]


def _declared(graph: Graph, name: str) -> ValueType | None:
    return next((info.type for info in graph.outputs if info.name == name), None)


def _constant(graph: Graph, name: str) -> str:
    value = graph.initializers[name]
    kind = f"{value.dtype}[{','.join(map(str, value.shape))}]"
    if value.dtype == "string" or value.array.size > _FEW:
        return kind
    return f"{kind} {' '.join(format_elements(value))}"


def _attribute(attribute: Attribute) -> str:
    if attribute.kind == "graph":
        return f"{{{' '.join(node.op for node in attribute.value.nodes)}}}"
    if attribute.kind in ("int", "string"):
        return str(attribute.value)
    if attribute.kind == "float":
        return f"{attribute.value:.6g}"
    if attribute.kind in ("ints", "floats", "strings"):
        return f"[{', '.join(f'{one:.6g}' if isinstance(one, float) else str(one) for one in attribute.value)}]"
    return f"({attribute.kind})"


def _typed(name: str, kind: ValueType | None) -> str:
    """Return a value's name, with its type where the model declares it: none is inferred, because shape inference of a
    program that breaks compilers may take all memory."""
    return name if kind is None else f"{name}: {print_type(kind)}"


def _type(kind: ValueType | None) -> str:
    return print_type(kind) if kind is not None else "?"


def _short(line: str) -> str:
    flat = " ".join(line.split())
    return flat if len(flat) <= _WIDEST else f"{flat[: _WIDEST - 3]}..."


def _curve(route: Sequence[tuple[float, float]]) -> str:
    """Return the data of an SVG path through the points of an edge, with tangents straight down."""
    points = [(x + _MARGIN, y + _MARGIN) for x, y in route]
    parts = [f"M{points[0][0]:.1f} {points[0][1]:.1f}"]
    for (x, y), (to_x, to_y) in pairwise(points):
        middle = (y + to_y) / 2
        parts.append(f"C{x:.1f} {middle:.1f} {to_x:.1f} {middle:.1f} {to_x:.1f} {to_y:.1f}")
    return " ".join(parts)
