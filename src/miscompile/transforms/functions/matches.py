"""Search for further occurrences of the nodes of a function, so that it is called from several places."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from miscompile.graph.equality import difference
from miscompile.graph.model import Attribute, Function, Model, Node
from miscompile.graph.prune import callee_key, function_key
from miscompile.transforms.functions.compose import FunctionPiece, call_of, splice
from miscompile.transforms.functions.convex_sets import links, used_outside, wrappable
from miscompile.transforms.functions.regions import Region, regions

_LOOKS = 400
"""Limit on the steps of the search for one more occurrence."""


@dataclass(frozen=True, slots=True)
class _Match:
    """A correspondence of nodes with a piece: positions by the piece's nodes, actual names and attributes by the
    piece's.
    """

    places: tuple[int, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    given: Mapping[str, Attribute] = field(default_factory=dict)


def call_again(model: Model, function: Function, piece: FunctionPiece, most: int) -> Model:
    """Return `model` with up to `most` further occurrences of `piece` replaced by calls of `function`, made of it."""
    if any(node for node in piece.nodes for _ in node.subgraphs()):
        return model
    for _ in range(most):
        for region in regions(model):
            places = _occurrence(region, function, piece)
            if places is not None:
                chosen, call = places
                model = region.put(splice(region.nodes, chosen, call))
                break
        else:
            return model
    return model


def _occurrence(region: Region, function: Function, piece: FunctionPiece) -> tuple[frozenset[int], Node] | None:
    """Return another occurrence of `piece` in `region`, and the call that replaces it."""
    if region.function == function_key(function) or not _same_meaning(region.opsets, piece):
        return None
    budget = [_LOOKS]
    for match in _matches(region, piece, _Match(), sorted(wrappable(region)), budget):
        if _replaceable(region, piece, match):
            inputs = (match.names[name] for name in piece.inputs)
            outputs = (match.names[name] for name in piece.outputs)
            return frozenset(match.places), call_of(function, inputs, outputs, {**piece.defaults, **match.given})
    return None


def _replaceable(region: Region, piece: FunctionPiece, match: _Match) -> bool:
    """Tell whether one call can replace the nodes of `match`.

    Its inputs must not be results of these nodes, its outputs must include all that others use, and no path may leave
    and re-enter the set.
    """
    places = frozenset(match.places)
    made = {name for place in places for name in region.nodes[place].outputs}
    return (
        made.isdisjoint(match.names[name] for name in piece.inputs)
        and {match.names[name] for name in piece.outputs}.issuperset(used_outside(region, places))
        and links(region.nodes).closed(places) == places
    )


def _same_meaning(opsets: Mapping[str, int], piece: FunctionPiece) -> bool:
    return all(opsets.get(domain) == version for domain, version in piece.opsets.items())


def _matches(
    region: Region, piece: FunctionPiece, so_far: _Match, allowed: Sequence[int], budget: list[int]
) -> Iterator[_Match]:
    if len(so_far.places) == len(piece.nodes):
        yield so_far
        return
    wanted = piece.nodes[len(so_far.places)]
    for place in allowed:
        if budget[0] <= 0:
            return
        budget[0] -= 1
        if place in so_far.places or region.nodes[place].op != wanted.op:
            continue
        grown = _extended(region, piece, so_far, wanted, place)
        if grown is not None:
            yield from _matches(region, piece, grown, allowed, budget)


def _extended(region: Region, piece: FunctionPiece, so_far: _Match, wanted: Node, place: int) -> _Match | None:
    """Return the match extended by the node at `place` for `wanted`; None when they differ."""
    node = region.nodes[place]
    if callee_key(node) != callee_key(wanted) or len(node.inputs) != len(wanted.inputs):
        return None
    if [bool(name) for name in node.outputs] != [bool(name) for name in wanted.outputs]:
        return None
    given = _bound_attributes(wanted, node, so_far.given)
    names = _bound_inputs(region, piece, wanted, node, so_far.names)
    if given is None or names is None:
        return None
    names.update((formal, actual) for formal, actual in zip(wanted.outputs, node.outputs, strict=True) if formal)
    return _Match((*so_far.places, place), names, given)


def _bound_inputs(
    region: Region, piece: FunctionPiece, wanted: Node, node: Node, known: Mapping[str, str]
) -> dict[str, str] | None:
    names = dict(known)
    for formal, actual in zip(wanted.inputs, node.inputs, strict=True):
        if bool(formal) != bool(actual):
            return None
        if formal in piece.constants:
            value = region.constants.get(actual)
            if value is None or not value.same(piece.constants[formal]):
                return None
        elif formal and names.setdefault(formal, actual) != actual:
            return None
    return names


def _bound_attributes(wanted: Node, node: Node, known: Mapping[str, Attribute]) -> dict[str, Attribute] | None:
    if wanted.attributes.keys() != node.attributes.keys():
        return None
    given = dict(known)
    for name, formal in wanted.attributes.items():
        actual = node.attributes[name]
        if formal.kind != "ref":
            if difference(formal, actual) is not None:
                return None
            continue
        kind = actual.ref_kind if actual.kind == "ref" else actual.kind
        if kind != formal.ref_kind or difference(given.setdefault(formal.value, actual), actual) is not None:
            return None
    return given
