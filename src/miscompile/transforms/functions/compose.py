"""Making a function of a set of nodes: its parameters, results, attributes, constants and names."""

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from miscompile.base.errors import RejectedDraft
from miscompile.core.tensor import Tensor
from miscompile.graph.edges import map_bodies, names_in, reads, toposort
from miscompile.graph.model import Attribute, Function, Graph, Model, Node
from miscompile.graph.prune import FunctionKey
from miscompile.graph.rename import NameSupply, rename_nodes
from miscompile.ops.registry import schema
from miscompile.transforms.functions.convex_sets import used_outside
from miscompile.transforms.functions.regions import Region

DOMAIN = "local"
PASSED = frozenset({"int", "float", "string", "tensor", "ints", "floats", "strings"})
"""Kinds of attributes that calls can pass."""

_IR_FUNCTIONS, _IR_DEFAULTS, _IR_OVERLOADS = 8, 9, 10
"""IR versions that brought model-local functions, default values of their attributes, and overloads."""

_DEFAULT = 0.3
"""Share of a function's attributes with a default value, which the first call omits."""

_ALIASES = {"float32": "float", "float64": "double"}


@dataclass(frozen=True, slots=True)
class Traits:
    """Options of new functions: shares of `attributes` that calls pass and of `constants` that move inside."""

    attributes: float
    constants: float
    overloads: bool


@dataclass(frozen=True, slots=True)
class FunctionPiece:
    """A set of nodes prepared as the body of a function, still with the names of their region.

    `constants` are the initialisers that move inside, `given` the attributes that the call passes, and `defaults` those
    with a default value.
    """

    nodes: tuple[Node, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    constants: Mapping[str, Tensor]
    given: Mapping[str, Attribute]
    defaults: Mapping[str, Attribute]
    opsets: Mapping[str, int]


def cut(region: Region, places: frozenset[int], rng: random.Random, traits: Traits) -> FunctionPiece:
    """Return the nodes at `places`, a convex set, as a piece. Raises RejectedDraft when no other node uses a result of
    theirs.
    """
    nodes = tuple(region.nodes[place] for place in sorted(places))
    outputs = used_outside(region, places)
    if not outputs:
        raise RejectedDraft("nothing uses what these nodes make")
    made = {name for node in nodes for name in node.outputs}
    inputs = sorted({name for node in nodes for name in reads(node)} - made)
    constants = {
        name: region.constants[name]
        for name in inputs
        if name in region.constants and rng.random() < traits.constants and _holds(region, region.constants[name])
    }
    inputs = [name for name in inputs if name not in constants]
    rng.shuffle(inputs)
    rng.shuffle(outputs)
    attributes = _Attributes(rng, traits.attributes, nodes)
    nodes = tuple(map(attributes.hand_over, nodes))
    opsets = {domain: region.opsets[domain] for domain in region.opsets if domain in _domains(nodes, bool(constants))}
    return FunctionPiece(nodes, tuple(inputs), tuple(outputs), constants, attributes.given, attributes.defaults, opsets)


def _holds(region: Region, value: Tensor) -> bool:
    """Tell whether a Constant of the region's operator set can have the type of `value`."""
    known = schema("Constant", region.opsets.get("", region.opsets.get("ai.onnx", 1)))
    return known is not None and f"tensor({_ALIASES.get(value.dtype, value.dtype)})" in known.outputs[0].types


def _domains(nodes: Iterable[Node], constants: bool) -> set[str]:
    """Return the domains whose operators `nodes` use, under both names of the standard one."""
    found = {"", "ai.onnx"} if constants else set()
    for node in nodes:
        found.update({"", "ai.onnx"} if node.domain in ("", "ai.onnx") else {node.domain})
        for body in node.subgraphs():
            found |= _domains(body.nodes, constants=False)
    return found


class _Attributes:
    """Turns attributes of nodes into attributes of the function, and records the values for the call."""

    def __init__(self, rng: random.Random, share: float, nodes: Iterable[Node]) -> None:
        self.given: dict[str, Attribute] = {}
        self.defaults: dict[str, Attribute] = {}
        self._rng, self._share = rng, share
        self._names = NameSupply()
        for name, attribute in _references(nodes):
            self.given[name] = attribute
            self._names.fresh(name)

    def hand_over(self, node: Node) -> Node:
        """Return `node`, with its bodies, reading some of its attributes from the function's."""
        attributes = {name: self._attribute(name, attribute) for name, attribute in node.attributes.items()}
        changed = replace(node, attributes=attributes) if attributes else node
        return map_bodies(
            changed, lambda body: replace(body, nodes=tuple(self.hand_over(inner) for inner in body.nodes))
        )

    def _attribute(self, name: str, attribute: Attribute) -> Attribute:
        if attribute.kind not in PASSED or self._rng.random() >= self._share:
            return attribute
        name = self._names.fresh(name)
        where = self.defaults if self._rng.random() < _DEFAULT else self.given
        where[name] = attribute
        return Attribute("ref", name, attribute.kind)


def _references(nodes: Iterable[Node]) -> Iterator[tuple[str, Attribute]]:
    """Yield the references to attributes of the enclosing function; a call inside it must pass these on."""
    for node in nodes:
        for attribute in node.attributes.values():
            if attribute.kind == "ref":
                yield attribute.value, attribute
        for body in node.subgraphs():
            yield from _references(body.nodes)


def function_of(piece: FunctionPiece, model: Model, base: str, rng: random.Random, traits: Traits) -> Function:
    """Return a new function for `model` that is equivalent to `piece`; its name starts with `base`.

    Its values have the names of the region, fresh ones, or permuted ones. Names inside a function are local, and an
    inliner must not confuse them with those outside.
    """
    constants = tuple(
        Node("Constant", (), (name,), {"value": Attribute("tensor", value)}) for name, value in piece.constants.items()
    )
    nodes = (*constants, *piece.nodes)
    names = _naming(rng, sorted({*piece.inputs, *names_in(nodes)}))
    domain, name, overload = _key(model, base, rng, traits)
    return Function(
        domain,
        name,
        tuple(names[name] for name in piece.inputs),
        tuple(names[name] for name in piece.outputs),
        rename_nodes(nodes, names),
        piece.opsets,
        tuple(piece.given),
        piece.defaults,
        overload,
    )


def _naming(rng: random.Random, names: list[str]) -> dict[str, str]:
    match rng.randrange(3):
        case 0:
            return {name: name for name in names}
        case 1:
            return {name: f"v{place}" for place, name in enumerate(names)}
        case _:
            others = rng.sample(names, len(names))
            return dict(zip(names, others, strict=True))


def _key(model: Model, base: str, rng: random.Random, traits: Traits) -> FunctionKey:
    """Return domain, name and overload that no function of `model` has, in a domain of this tool."""
    domain = own_domain(model)
    ours = [function for function in model.functions if function.domain == domain]
    if traits.overloads and ours and rng.random() < 0.5:
        name = rng.choice(ours).name
        return domain, name, NameSupply(function.overload for function in ours if function.name == name).fresh("other")
    return domain, NameSupply(function.name for function in ours).fresh(base), ""


def own_domain(model: Model) -> str:
    """Return the domain of functions that this module made before, if any, or else one that `model` does not use."""
    functions = {function.domain for function in model.functions}
    taken = set(model.opsets) - functions
    return NameSupply(taken).fresh(DOMAIN)


def call_of(function: Function, inputs: Iterable[str], outputs: Iterable[str], given: Mapping[str, Attribute]) -> Node:
    """Return a call of `function`."""
    return Node(function.name, tuple(inputs), tuple(outputs), given, function.domain, "", function.overload)


def splice(nodes: tuple[Node, ...], places: frozenset[int], call: Node) -> tuple[Node, ...]:
    """Return `nodes` with `call` instead of those at `places`, in topological order."""
    last = max(places)
    kept = [call if place == last else node for place, node in enumerate(nodes) if place == last or place not in places]
    return toposort(Graph("", (), (), tuple(kept))).nodes


def with_function(model: Model, function: Function, rng: random.Random) -> Model:
    """Return `model` with `function` at a random place among its functions.

    The IR version rises to the one that the function needs.
    """
    needed = _IR_OVERLOADS if function.overload else _IR_DEFAULTS if function.defaults else _IR_FUNCTIONS
    place = rng.randint(0, len(model.functions))
    functions = (*model.functions[:place], function, *model.functions[place:])
    return replace(model, functions=functions, ir_version=max(model.ir_version, needed))


def importing(model: Model) -> Model:
    """Return `model` with the domain of our functions imported wherever they are called."""
    domain = own_domain(model)
    functions = tuple(
        replace(function, opsets={**function.opsets, domain: 1})
        if domain not in function.opsets and domain in _domains(function.nodes, constants=False)
        else function
        for function in model.functions
    )
    return replace(model, opsets={domain: 1, **model.opsets}, functions=functions)
