"""Hosts: seeds prepared for synthesis, with the facts of every value."""

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

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
from miscompile.producers.replay import Player
from miscompile.producers.scope import Scope, tensor_type

ROOM = 16384
"""Greatest number of elements of a value: patterns add their own sizes to the seed."""


@dataclass(frozen=True, slots=True, eq=False)
class Host:
    """A seed that the target supports under `opset`.

    `values` holds operands with facts by name. `strict`: no value can overflow, and none may after synthesis. `points`
    are the positions at which a pattern can read a result of an earlier node and be read by a later one. `patterns` are
    the names of the patterns that it contains already.
    """

    seed: Seed
    opset: int
    values: Mapping[str, Operand]
    strict: bool
    points: tuple[int, ...]
    patterns: tuple[str, ...] = ()

    @property
    def order(self) -> int:
        """Number of patterns in the seed."""
        return len(self.patterns)


def new_scope(rng: random.Random, opset: int, support: Support, limits: OperatorLimits, style: Style) -> Scope:
    """Return an empty scope with room for a seed and patterns."""
    return Scope(rng, opset, limits, style, support, ROOM)


def prepared(seed: Seed, opset: int, support: Support, limits: OperatorLimits, patterns: Iterable[str] = ()) -> Host:
    """Return `seed` as a host. Raises RejectedDraft when the target does not support it, or it may be undefined."""
    strict = not any(True for node in seed.graph.nodes for _ in node.subgraphs())
    scope = new_scope(random.Random(0), opset, support, limits, Style(integral=False, full=False))
    player = Player(scope, seed, strict=strict)
    values = player.run()
    return Host(seed, opset, values, strict, _points(seed, values), tuple(patterns))


def live(nodes: Iterable[Node], inputs: Iterable[str]) -> set[str]:
    """Return the values that depend on an input, because constant folding removes all others first."""
    names = set(inputs)
    for node in nodes:
        if not names.isdisjoint(reads(node)):
            names.update(node.outputs)
    return names


def _points(seed: Seed, values: Mapping[str, Operand]) -> tuple[int, ...]:
    nodes = seed.graph.nodes
    fed = live(nodes, [info.name for info in seed.graph.inputs])
    makers = [place for place, node in enumerate(nodes) if any(_flows(values, name) for name in fed & {*node.outputs})]
    readers = [place for place, node in enumerate(nodes) if any(True for _ in open_places(node, values))]
    return tuple(range(makers[0] + 1, readers[-1] + 1)) if makers and readers else ()


def open_places(node: Node, values: Mapping[str, Operand]) -> Iterator[int]:
    """Yield the operand positions of a node that can be replaced: no constants, and no values that a body captures."""
    if not any(True for _ in node.subgraphs()):
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
    """Tell whether `opset` has the operator of a call with its attributes; axes may be an operand instead."""
    known = schema(call.op, opset, specs()[call.op].domain)
    if known is None:
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
