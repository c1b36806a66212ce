"""Splicing: a pattern inside a seed that reads earlier values and is read by later nodes.

The seed is replayed up to a random point, the pattern is placed on the values there, and in the rest of the replay some
operands are replaced by the pattern's outputs (OATest, section 3.2.1). There is never a cycle, because the pattern
reads only values before the point and is read only by nodes after it. The program is always valid, because every call
is typed, checked against intervals and rejected where it may be undefined.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from miscompile.base.errors import RejectedDraft
from miscompile.graph.edges import reads
from miscompile.ops.spec import Operand
from miscompile.patterns.language import Motif
from miscompile.patterns.pattern import Pattern
from miscompile.producers.guards import guard
from miscompile.producers.motifs.plant import NONE, Mutations
from miscompile.producers.replay import Player
from miscompile.producers.scope import Scope
from miscompile.producers.synthesis.bridge import bridge
from miscompile.producers.synthesis.host import Host, Socket
from miscompile.producers.synthesis.places import PlacedPattern, context_of, place

_JOINS = 8
"""Attempts to choose consumers before a pattern's outputs become outputs of the graph only."""
_OUTPUTS = 3
"""Greatest number of a pattern's outputs that are joined to the seed; others are outputs of the graph."""
_ABSTRACT = 0.3
"""Probability that a consumer of another size is tried when none of the same type exists."""


@dataclass(frozen=True, slots=True)
class Spliced:
    """The result of a synthesis.

    `point` is the number of the seed's nodes before the pattern, `first` and `last` enclose the pattern's own nodes
    (with its bridges) in the scope. `inner_in`: the pattern reads a result of one of the seed's nodes. `inner_out`: one
    of the seed's nodes reads an output of the pattern. `outputs` are the names of the graph's outputs.
    """

    placed: PlacedPattern
    point: int
    first: int
    last: int
    inner_in: bool
    inner_out: bool
    bridges: int
    outputs: tuple[str, ...]


@dataclass(slots=True)
class _Joints:
    """Replacements for operands of later nodes."""

    instead: dict[int, dict[int, Operand]] = field(default_factory=dict)
    bridges: int = 0


def splice(
    scope: Scope, host: Host, pattern: Pattern, mutations: Mutations = NONE, noops: Sequence[Motif] = ()
) -> Spliced:
    """Replay `host` in an empty scope with `pattern` inside. Raises RejectedDraft when the pattern fits nowhere."""
    nodes = host.seed.graph.nodes
    points = host.points or (len(nodes),)
    point = points[int(scope.rng.random() * len(points))]
    player = _begun(scope, host, point)
    first = len(scope.nodes)
    context = context_of(scope, host.fed if host.fixed else None)
    placed = place(scope, pattern, context, mutations, noops)
    last = len(scope.nodes)
    joints = _joined(scope, host, player, placed, point)
    outputs = [player.known[info.name].name for info in host.seed.graph.outputs]
    outputs += [name for name, op in scope.producer.items() if op and op != "Constant" and not scope.uses[name]]
    inner = not context.inner.isdisjoint(_read_by(scope, placed.outputs, first, last))
    joined = bool(joints.instead)
    bridges = placed.bridges + joints.bridges
    return Spliced(placed, point, first, last, inner, joined, bridges, tuple(dict.fromkeys(outputs)))


def _begun(scope: Scope, host: Host, point: int) -> Player:
    """Replay the nodes of the seed before the point."""
    player = Player(scope, host.seed, strict=host.strict, before=host.values)
    if host.fixed:
        mark, player.names_in_bodies = host.marks[point]
        scope.take_over(host.scope, mark)
        player.known = dict(host.values)
        return player
    player.begin()
    for node in host.seed.graph.nodes[:point]:
        player.play(node)
    return player


def _read_by(scope: Scope, outputs: Sequence[Operand], first: int, last: int) -> set[str]:
    """Return the values outside the nodes `first` to `last` that `outputs` depend on through these nodes."""
    needed = {operand.name for operand in outputs}
    for node in reversed(scope.nodes[first:last]):
        if not needed.isdisjoint(node.outputs):
            needed.update(reads(node))
    return needed


def _joined(scope: Scope, host: Host, player: Player, placed: PlacedPattern, point: int) -> _Joints:
    """Replay the rest of the seed with the pattern's outputs in it, or without them if no consumer accepts one."""
    rest = host.seed.graph.nodes[point:]
    sockets = [socket for socket in host.sockets if socket.node >= point]
    mark, known = scope.mark(), dict(player.known)
    for attempt in range(_JOINS if sockets else 0):
        try:
            joints = _joints(scope, host, placed.outputs, sockets, gentle=attempt > 1)
            for number, node in enumerate(rest, point):
                player.play(node, joints.instead.get(number, {}))
        except RejectedDraft:
            scope.rollback(mark)
            player.known = dict(known)
        else:
            return joints
    for node in rest:
        player.play(node)
    return _Joints()


def _joints(
    scope: Scope, host: Host, outputs: Sequence[Operand], sockets: Sequence[Socket], *, gentle: bool
) -> _Joints:
    """Choose a socket for each output. `gentle`: it has the type and the interval of the replaced operand."""
    joints = _Joints()
    rng = scope.rng
    chosen = list(outputs) if len(outputs) <= _OUTPUTS else rng.sample(list(outputs), _OUTPUTS)
    if gentle:
        chosen = [rng.choice(chosen)]
    free = list(sockets)
    for output in chosen:
        socket = _socket(scope, output, free, host.values)
        if socket is None:
            continue
        free = [one for one in free if (one.node, one.place) != (socket.node, socket.place)]
        operand, bridged = _fitted(scope, output, host.values[socket.name], gentle=gentle)
        joints.instead.setdefault(socket.node, {})[socket.place] = operand
        joints.bridges += bridged
    return joints


def _socket(scope: Scope, output: Operand, sockets: Sequence[Socket], values: Mapping[str, Operand]) -> Socket | None:
    """Choose a compatible socket, else any."""
    if not sockets:
        return None
    alike = [one for one in sockets if (values[one.name].dtype, values[one.name].shape) == (output.dtype, output.shape)]
    return scope.rng.choice(alike or list(sockets))


def _fitted(scope: Scope, output: Operand, old: Operand, *, gentle: bool) -> tuple[Operand, bool]:
    """Return `output` itself if it can replace `old`, else a bridge from it."""
    alike = (output.dtype, output.shape) == (old.dtype, old.shape)
    if not alike and not gentle and output.dtype == old.dtype and scope.rng.random() < _ABSTRACT:
        return output, False
    found = output if alike else bridge(scope, output, old.dtype, old.shape)
    if gentle and old.dtype != "bool" and not found.facts.inside(old.facts.lo, old.facts.hi):
        found = guard(scope, found, (old.facts.lo, old.facts.hi))
    return found, not alike
