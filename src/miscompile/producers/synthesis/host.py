"""Hosts: seeds prepared for synthesis, with the facts of every value."""

import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from miscompile.core.tensor import Tensor
from miscompile.graph.edges import reads
from miscompile.graph.model import Graph, Node, ValueInfo
from miscompile.ops.registry import schema, specs, version_of
from miscompile.ops.seed import Seed
from miscompile.ops.spec import Operand, OperatorLimits
from miscompile.ops.support import Support
from miscompile.ops.values import Range, Style
from miscompile.patterns.language import MotifCall
from miscompile.patterns.pattern import Pattern
from miscompile.producers.replay import Player, has_bodies
from miscompile.producers.scope import Mark, Scope, tensor_type

ROOM = 16384
"""Greatest number of elements of a value: patterns add their own sizes to the seed."""


class Socket(NamedTuple):
    """A place where a node reads a value that can be replaced."""

    node: int
    place: int
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Host:
    """A seed that the target supports under `opset`.

    `values` holds operands with facts by name. `strict`: no value can overflow, and none may after synthesis. `points`
    are the positions at which a pattern can read a result of an earlier node and be read by a later one. `sockets` are
    the operand positions that can be replaced, in order. `patterns` are the names of the patterns that it contains
    already.

    `scope` is the one in which the seed was replayed, `marks` its state before each node and at the end, with the
    number of names in bodies. `fed` holds the values in it that depend on an input. `fixed`: no replay draws anything,
    so that each begins like that scope.
    """

    seed: Seed
    opset: int
    values: Mapping[str, Operand]
    strict: bool
    points: tuple[int, ...]
    sockets: tuple[Socket, ...]
    scope: Scope
    marks: tuple[tuple[Mark, int], ...]
    fed: frozenset[str]
    fixed: bool
    patterns: tuple[str, ...] = ()

    @property
    def order(self) -> int:
        """Number of patterns in the seed."""
        return len(self.patterns)


def new_scope(rng: random.Random, opset: int, support: Support, limits: OperatorLimits, style: Style) -> Scope:
    """Return an empty scope with room for a seed and patterns."""
    return Scope(rng, opset, limits, style, support, ROOM)


def prepared(
    seed: Seed,
    opset: int,
    support: Support,
    limits: OperatorLimits,
    patterns: Iterable[str] = (),
    built: Mapping[str, Operand] = MappingProxyType({}),
) -> Host:
    """Return `seed` as a host. Raises RejectedDraft when the target does not support it, or it may be undefined.

    `built` holds the seed's values in the scope of the same opset and support that it was made from, if there is one.
    """
    graph = seed.graph
    blocks = [node for node in graph.nodes if has_bodies(node)]
    for node in blocks:  # a scope may know more of their results than a replay does
        built = {name: operand for name, operand in built.items() if name not in node.outputs}
    scope = new_scope(random.Random(0), opset, support, limits, Style(integral=False, full=False))
    player = Player(scope, seed, strict=not blocks, before=built)
    player.begin()
    marks = [(scope.mark(), 0)]
    for node in graph.nodes:
        player.play(node)
        marks.append((scope.mark(), player.names_in_bodies))
    values = player.known
    fed = live(graph.nodes, [info.name for info in graph.inputs])
    sockets = [
        Socket(number, place, node.inputs[place])
        for number, node in enumerate(graph.nodes)
        for place in open_places(node, values)
    ]
    return Host(
        seed, opset, values, not blocks, _points(graph, values, fed, sockets), tuple(sockets), scope, tuple(marks),
        frozenset(values[name].name for name in fed if name in values),
        not seed.pinned and all(info.name in seed.ranges for info in graph.inputs), tuple(patterns),
    )  # fmt: skip


def live(nodes: Iterable[Node], inputs: Iterable[str]) -> set[str]:
    """Return the values that depend on an input, because constant folding removes all others first."""
    names = set(inputs)
    for node in nodes:
        if not names.isdisjoint(reads(node)):
            names.update(node.outputs)
    return names


def _points(
    graph: Graph, values: Mapping[str, Operand], fed: Collection[str], sockets: Sequence[Socket]
) -> tuple[int, ...]:
    for place, node in enumerate(graph.nodes if sockets else ()):
        if any(name in fed and _flows(values, name) for name in node.outputs):
            return tuple(range(place + 1, sockets[-1].node + 1))
    return ()


def open_places(node: Node, values: Mapping[str, Operand]) -> Iterator[int]:
    """Yield the operand positions of a node that can be replaced: no constants, and no values that a body captures."""
    if not has_bodies(node):
        yield from (place for place, name in enumerate(node.inputs) if _flows(values, name))


def _flows(values: Mapping[str, Operand], name: str) -> bool:
    return name in values and values[name].value is None


def same_meaning(seed: Seed, opset: int) -> bool:
    """Tell whether every operator of `seed` has the same version in `opset` as in the seed's own opset."""
    return all(version_of(op, opset) == version_of(op, seed.opset) for op in _operators(seed.graph.nodes))


def takes(pattern: Pattern, opset: int) -> bool:
    """Tell whether `opset` has the operators of a form of `pattern`, with unchanged meaning."""
    motif = pattern.motif
    if motif is not None and all(_stands(call, opset) for call in motif.statements if isinstance(call, MotifCall)):
        return True
    return pattern.seed is not None and same_meaning(pattern.seed, opset)


@cache
def _stands(call: MotifCall, opset: int) -> bool:
    """Tell whether `opset` has the operator of a call with its operands and attributes; axes may be an operand."""
    known = schema(call.op, opset, specs()[call.op].domain)
    if known is None or len(call.arguments) > known.max_input:
        return False
    named = {*known.attributes, *(formal.name for formal in known.inputs if formal.name == "axes")}
    return all(name in named for name, _ in call.attributes)


def _operators(nodes: Iterable[Node]) -> set[str]:
    found: set[str] = set()
    for node in nodes:
        found.add(node.op)
        for body in node.subgraphs():
            found |= _operators(body.nodes)
    return found


def seed_of(scope: Scope, outputs: Iterable[str], source: str) -> Seed:
    """Return the graph in `scope` as a seed with these outputs, so that it can be a host later.

    Constant nodes become initialisers. An input that cycles through values becomes one that is fed any of them.
    """
    literals: dict[str, Tensor] = {}
    nodes: list[Node] = []
    for node in scope.nodes:
        value = node.attributes.get("value") if node.op == "Constant" else None
        if value is not None and isinstance(value.value, Tensor):
            literals[node.outputs[0]] = value.value
        else:
            nodes.append(node)
    types = {name: tensor_type(known.dtype, known.shape) for name, known in scope.operands.items()}
    fed = [name for name in (*scope.inputs, *scope.cycled, *scope.pinned) if scope.uses[name]]
    constants = {name: value for name, value in {**scope.initializers, **literals}.items() if scope.uses[name]}
    results = tuple(dict.fromkeys(outputs))
    graph = Graph(
        "seed",
        tuple(ValueInfo(name, types[name]) for name in fed),
        tuple(ValueInfo(name, types[name]) for name in results),
        tuple(nodes),
        constants,
        types={name: kind for name, kind in types.items() if name not in results},
    )
    turns = {name: _span(scope.operands[name]) for name in scope.cycled}
    ranges = {name: span for name, span in {**scope.inputs, **turns}.items() if scope.uses[name]}
    pinned = {name: value for name, value in scope.pinned.items() if scope.uses[name]}
    return Seed(source, graph, scope.opset, ranges, pinned)


def _span(operand: Operand) -> Range:
    return Range(operand.facts.lo, operand.facts.hi, integral=operand.facts.integral)
