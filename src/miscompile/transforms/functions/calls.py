"""Several calls of one function: for all nodes of one operator, and by duplicating a call."""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from miscompile.base.errors import RejectedDraft
from miscompile.graph.edges import reads
from miscompile.graph.model import Attribute, Function, Model, Node
from miscompile.graph.prune import callee_key, function_key
from miscompile.graph.randomness import MAY_DRAW
from miscompile.graph.rename import NameSupply, redirect
from miscompile.ops.registry import version_of
from miscompile.transforms.functions.compose import PASSED, FunctionPiece, Traits, call_of, function_of, with_function
from miscompile.transforms.functions.convex_sets import wrappable
from miscompile.transforms.functions.regions import Region, names_of, regions

STANDARD = frozenset({"", "ai.onnx", "ai.onnx.ml"})

_Place = tuple[int, int]
"""A node of a model: the number of its region and its position there."""

_SOME = 0.3
"""Share of the shared operators of which only some nodes are replaced."""


def share_operator(model: Model, rng: random.Random, traits: Traits) -> Model:
    """Return `model` with nodes of one operator, in all regions, replaced by calls of one function.

    Attributes become attributes of the call, and calls omit an operand that only others have. Raises RejectedDraft when
    no operator is suitable.
    """
    known = regions(model)
    groups: dict[object, list[_Place]] = {}
    for number, region in enumerate(known):
        for place in sorted(wrappable(region)):
            key = _group(region.nodes[place], region.opsets)
            if key is not None:
                groups.setdefault(key, []).append((number, place))
    if not groups:
        raise RejectedDraft("no operator can be a function of its own")
    members = rng.choice([group for group in groups.values() if len(group) > 1] or list(groups.values()))
    if rng.random() < _SOME:
        members = rng.sample(members, rng.randint(1, len(members)))
    nodes = [known[number].nodes[place] for number, place in members]
    piece = _single(nodes, known[members[0][0]].opsets)
    function = function_of(piece, model, f"every_{nodes[0].op}", rng, replace(traits, overloads=False))
    return with_function(_calling(model, function, piece, frozenset(members)), function, rng)


def _calling(model: Model, function: Function, piece: FunctionPiece, members: frozenset[_Place]) -> Model:
    """Return `model` with each of `members` replaced by a call of `function`, which was made of `piece`."""
    for number in sorted({number for number, _ in members}):
        region = regions(model)[number]  # replacing nodes without bodies changes neither number nor order of regions
        nodes = tuple(
            _call_like(node, function, piece) if (number, place) in members else node
            for place, node in enumerate(region.nodes)
        )
        model = region.put(nodes)
    return model


def _call_like(node: Node, function: Function, piece: FunctionPiece) -> Node:
    """Return a call of `function`, made of a piece of one node, equivalent to `node`."""
    slots = [place for place, formal in enumerate(piece.nodes[0].inputs) if formal]
    return call_of(function, (node.inputs[slot] for slot in slots), filter(None, node.outputs), node.attributes)


def _group(node: Node, opsets: Mapping[str, int]) -> object:
    """Return the key of nodes that can call one function; None for nodes that cannot."""
    domain = "" if node.domain == "ai.onnx" else node.domain
    if domain not in STANDARD or not node.inputs or not any(node.outputs):
        return None
    kinds = sorted((name, a.ref_kind if a.kind == "ref" else a.kind) for name, a in node.attributes.items())
    if not all(kind in PASSED for _, kind in kinds):
        return None
    version = opsets.get(node.domain, opsets.get(domain, 1))
    meaning = version_of(node.op, version, domain), version
    return node.op, node.domain, node.overload, len(node.inputs), tuple(map(bool, node.outputs)), tuple(kinds), meaning


def _formal(place: int) -> str:
    return f"p{place}"


def _single(nodes: Sequence[Node], opsets: Mapping[str, int]) -> FunctionPiece:
    """Return a piece that all `nodes` of one group can call: all attributes come from the call."""
    first = nodes[0]
    given = [any(node.inputs[place] for node in nodes) for place in range(len(first.inputs))]
    inputs = tuple(_formal(place) if there else "" for place, there in enumerate(given))
    outputs = tuple(f"r{place}" if name else "" for place, name in enumerate(first.outputs))
    attributes = {
        name: Attribute("ref", name, a.ref_kind if a.kind == "ref" else a.kind) for name, a in first.attributes.items()
    }
    node = Node(first.op, inputs, outputs, attributes, first.domain, "", first.overload)
    names = {"", "ai.onnx"} if first.domain in ("", "ai.onnx") else {first.domain}
    imports = {domain: version for domain, version in opsets.items() if domain in names}
    formals, results = tuple(filter(None, inputs)), tuple(filter(None, outputs))
    return FunctionPiece((node,), formals, results, {}, first.attributes, {}, imports)


def split_call(model: Model, rng: random.Random) -> Model:
    """Return `model` with a duplicated call of the same inputs, and its users divided between the two.

    Raises RejectedDraft when no deterministic call has two users.
    """
    functions = {function_key(function): function for function in model.functions}
    found = [
        (region, place, uses)
        for region in regions(model)
        for place, node in enumerate(region.nodes)
        if callee_key(node) in functions and pure(functions[callee_key(node)].nodes, model)
        for uses in (_uses(region, node),)
        if len(uses) > 1 and any(user is not None for _, user in uses)
    ]
    if not found:
        raise RejectedDraft("no call has users to divide")
    region, place, uses = rng.choice(found)
    movable = [(name, user) for name, user in uses if user is not None]
    moved = rng.sample(movable, rng.randint(1, min(len(movable), len(uses) - 1)))
    call, names = region.nodes[place], NameSupply(names_of(model))
    twin = replace(call, name="", outputs=tuple(names.fresh(name) if name else "" for name in call.outputs))
    instead = dict(zip(call.outputs, twin.outputs, strict=True))
    nodes = [
        redirect(node, {name: instead[name] for name, user in moved if user == here})
        for here, node in enumerate(region.nodes)
    ]
    return region.put((*nodes[: place + 1], twin, *nodes[place + 1 :]))


def _uses(region: Region, call: Node) -> list[tuple[str, int | None]]:
    """Return the uses of the results of `call`: each value with the position of its user, None for an output."""
    uses: list[tuple[str, int | None]] = [(name, None) for name in call.outputs if name and name in region.outputs]
    for place, node in enumerate(region.nodes):
        used = set(reads(node))
        uses += [(name, place) for name in call.outputs if name in used]
    return uses


def pure(nodes: Iterable[Node], model: Model) -> bool:
    """Tell whether `nodes` are known to be deterministic; operators of other domains are not."""
    functions = {function_key(function): function for function in model.functions}
    for node in nodes:
        callee = functions.get(callee_key(node))
        if callee is not None:
            if not pure(callee.nodes, model):
                return False
        elif node.domain not in STANDARD or node.op in MAY_DRAW:
            return False
        if not all(pure(body.nodes, model) for body in node.subgraphs()):
            return False
    return True
