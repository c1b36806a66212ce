"""Bug predicates: the conditions under which a known bug shows, as a pattern that other programs are held against.

A predicate is made of the reduced program of a finding (`triage/relaxation.py` finds the conditions that matter). It
is one JSON object, so that a person can read and edit it, and it lies with the finding under the fact `predicate`:

    {"target": "onnxruntime", "kind": "shape", "stage": "", "message": "", "passes": ["DivMulFusion"], "transform": "",
     "nodes": [{"op": "Div", "inputs": ["one", "x"], "outputs": ["a"], "attributes": {}},
               {"op": "Mul", "inputs": ["a", "y"], "outputs": ["b"], "attributes": {}}],
     "values": {"one": {"constant": true, "elements": [1.0]}, "y": {"rank": 1}}}

A condition that is absent is no condition: an attribute that is not listed may have any value, and a value without
`dtype` any element type.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from miscompile.base.dtypes import DTYPES
from miscompile.base.errors import ModelError, StoreError
from miscompile.core.finding import Signature
from miscompile.core.outcome import Outcome
from miscompile.core.run import Build
from miscompile.core.tensor import Tensor
from miscompile.core.verdict import Evidence, FindingKind
from miscompile.findings.folder import Stored
from miscompile.graph.bodies import Typing, typing_of
from miscompile.graph.edges import reads
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueType
from miscompile.graph.randomness import plain
from miscompile.graph.read import read
from miscompile.graph.wire import operator_field
from miscompile.ops.registry import having
from miscompile.triage.signature import Symptom, operator_class, similar, symptom_of

ANY_OPERAND = "?"
"""In the inputs of a node pattern: an operand without conditions, which may also be absent."""

FLOATS = "float"
"""In a value pattern's `dtype`: any floating-point type. A single type is named as in ONNX."""

ANY_SIZE = -1
"""In a value pattern's `shape`: a dimension of any size."""

MOST_ELEMENTS = 16
"""Elements of a constant that a predicate holds at most."""


@dataclass(frozen=True, slots=True)
class ValuePattern:
    """Conditions on one value of a program; None is no condition.

    `dtype` is an element type or `FLOATS`; `shape` has `ANY_SIZE` where any size will do; `constant` tells whether the
    value is known when the program is compiled; `elements` are the numbers of a constant, flat.
    """

    dtype: str | None = None
    rank: int | None = None
    shape: tuple[int, ...] | None = None
    constant: bool | None = None
    elements: tuple[Any, ...] | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the conditions without those that are absent."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True)
class NodePattern:
    """Conditions on one node. `attributes` are those that must have the given values.

    `bodies` are the operators that the node's subgraphs contain at least, with repetition.
    """

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    domain: str = ""
    bodies: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the conditions; domain and bodies only where there are any."""
        data = {"op": self.op, "inputs": self.inputs, "outputs": self.outputs, "attributes": dict(self.attributes)}
        return {
            **data,
            **({"domain": self.domain} if self.domain else {}),
            **({"bodies": self.bodies} if self.bodies else {}),
        }


@dataclass(frozen=True, slots=True)
class BugPredicate:
    """A known bug: the symptom, the passes that must be on, the transform, and the pattern that programs contain.

    `passes` are the names of all passes without which the bug does not show. `transform` is the name of the transform
    of the faulty build. `nodes` are in topological order; `values` maps the names of the pattern's values.
    `by_default` is false for a bug that shows only in builds with some passes off.
    """

    target: str
    kind: FindingKind
    stage: str
    message: str
    passes: tuple[str, ...]
    transform: str
    nodes: tuple[NodePattern, ...]
    values: Mapping[str, ValuePattern]
    by_default: bool = True

    @property
    def symptom(self) -> Symptom:
        """The symptom of the bug, as examinations show it."""
        return Symptom(self.kind, self.stage, self.message)

    @property
    def operators(self) -> Mapping[bytes, int]:
        """The operators of the pattern as a serialised program contains them, with their numbers."""
        return Counter(operator_field(node.op) for node in self.nodes)

    def as_json(self) -> dict[str, Any]:
        """Return the predicate as JSON values."""
        plain = ("target", "kind", "stage", "message", "transform")
        return {
            **{name: getattr(self, name) for name in plain},
            "passes": list(self.passes),
            "nodes": [node.as_json() for node in self.nodes],
            "values": {name: value.as_json() for name, value in self.values.items()},
            **({} if self.by_default else {"by_default": False}),
        }

    def possible(self, build: Build) -> bool:
        """Tell whether `build` has what the bug needs: its passes are on, others off if need be."""
        transform = build.transform.name if build.transform else ""
        switched = self.by_default or bool(build.disabled)
        return switched and transform == self.transform and build.disabled.isdisjoint(self.passes)

    def explains(self, evidence: Evidence, outcome: Outcome | None) -> bool:
        """Tell whether a violation has the symptom of this bug, in a build that can have it.

        It is this bug if the program contains the pattern as well. `outcome` is that of the faulty run.
        """
        return (
            evidence.faulty.target == self.target
            and self.possible(evidence.faulty.build)
            and similar(symptom_of(evidence, outcome), self.symptom)
        )

    def matches(self, program: "Described", *, surely: bool = False) -> bool:
        """Tell whether `program` contains the pattern, in its main graph, in a body or in a function.

        A condition on a type or on elements that `program` does not know holds, unless the answer is to be sure.
        """
        return any(_found(self, graph, surely) for graph in program.graphs)


def underlies(known: Stored, fresh: Stored) -> bool:
    """Tell whether a triaged finding is the cause of another one, whose further passes meet what the known one breaks.

    A fusion that drops a dimension makes later passes fail in ways of their own, each with other culprits and another
    message. `fresh` is reduced, so that every node of its program is needed. It follows from `known` if it needs all of
    the known bug's passes and more, and its program contains the known bug's pattern, whatever the ranks and sizes.
    """
    pattern, own = (one.finding.facts.get("predicate") for one in (known, fresh))
    culprits = fresh.finding.property.signature.culprits
    needed = known.finding.property.signature.culprits
    if not pattern or not own or not needed or not set(needed) < set(culprits):
        return False
    bug, other = predicate_from(pattern), predicate_from(own)
    if (bug.target, bug.transform) != (other.target, other.transform):
        return False
    values = {name: replace(one, rank=None, shape=None) for name, one in bug.values.items()}
    try:
        return replace(bug, values=values).matches(described(read(fresh.finding.case.program.payload)))
    except ModelError:
        return False


_ASPECTS = ("elements", "shape", "rank", "dtype", "constant")
"""Conditions on values, in the order in which they are dropped: the least specific to a bug first."""


def widened(predicate: BugPredicate, program: "Described") -> BugPredicate:
    """Return the predicate without the conditions that `program` does not meet, because `program` shows the bug.

    Reduction may have changed attributes, or made one value of two equal ones, so that attributes and further uses of
    a value are conditions too. Every node and the first use of each value stay, and in a pattern of one node all uses,
    because it would match too much without: the predicate comes back unchanged when these are not found in `program`.
    """
    if predicate.matches(program):
        return predicate
    bare = replace(predicate, nodes=tuple(replace(node, attributes={}, bodies=()) for node in predicate.nodes))
    if replace(bare, values={}).matches(program):
        loose = bare
    else:
        loose = _apart(bare) if len(bare.nodes) > 1 else bare
        if not replace(loose, values={}).matches(program):
            return predicate
        loose = _joined_again(loose, bare, program)
    return _with_values(_with_attributes(loose, predicate, program), program)


def _apart(predicate: BugPredicate) -> BugPredicate:
    """Return the pattern in which each operand that was used before is a value of its own, with the same conditions."""
    uses: Counter[str] = Counter()
    values = dict(predicate.values)

    def own(name: str) -> str:
        uses[name] += 1
        if uses[name] == 1 or name in ("", ANY_OPERAND):
            return name
        fresh = f"{name}#{uses[name]}"
        if name in values:
            values[fresh] = values[name]
        return fresh

    nodes = tuple(replace(node, inputs=tuple(map(own, node.inputs))) for node in predicate.nodes)
    return replace(predicate, nodes=nodes, values=values)


def _joined_again(loose: BugPredicate, full: BugPredicate, program: "Described") -> BugPredicate:
    """Return the pattern with the further uses of values that `program` has as well."""
    for place, node in enumerate(full.nodes):
        for operand, name in enumerate(node.inputs):
            held = loose.nodes[place]
            inputs = (*held.inputs[:operand], name, *held.inputs[operand + 1 :])
            tighter = _with_node(loose, place, replace(held, inputs=inputs))
            if replace(tighter, values={}).matches(program):
                loose = tighter
    names = {name for node in loose.nodes for name in (*node.inputs, *node.outputs)}
    return replace(loose, values={name: one for name, one in loose.values.items() if name in names})


def _with_attributes(loose: BugPredicate, full: BugPredicate, program: "Described") -> BugPredicate:
    """Return the pattern with the attributes and bodies of `full` that `program` has as well."""
    for place, node in enumerate(full.nodes):
        for name, value in node.attributes.items():
            held = {**loose.nodes[place].attributes, name: value}
            tighter = _with_node(loose, place, replace(loose.nodes[place], attributes=held))
            if replace(tighter, values={}).matches(program):
                loose = tighter
        tighter = _with_node(loose, place, replace(loose.nodes[place], bodies=node.bodies))
        if replace(tighter, values={}).matches(program):
            loose = tighter
    return loose


def _with_node(predicate: BugPredicate, place: int, node: NodePattern) -> BugPredicate:
    return replace(predicate, nodes=(*predicate.nodes[:place], node, *predicate.nodes[place + 1 :]))


def _with_values(predicate: BugPredicate, program: "Described") -> BugPredicate:
    """Return the pattern with the conditions on values that `program` meets; its nodes are found there."""
    values = dict(predicate.values)
    for aspect in _ASPECTS:
        if replace(predicate, values=values).matches(program):
            break
        values = {name: replace(one, **{aspect: None}) for name, one in values.items()}
    for name, full in predicate.values.items():
        for aspect in _ASPECTS:
            back = {**values, name: replace(values[name], **{aspect: getattr(full, aspect)})}
            if replace(predicate, values=back).matches(program):
                values = back
    kept = {name: one for name, one in values.items() if one != ValuePattern()}
    return replace(predicate, values=kept)


def predicate_from(data: Mapping[str, Any]) -> BugPredicate:
    """Read back what `BugPredicate.as_json` returned. Raises StoreError for other data."""
    try:
        nodes = tuple(
            NodePattern(
                one["op"], tuple(one["inputs"]), tuple(one["outputs"]), dict(one.get("attributes", {})),
                one.get("domain", ""), tuple(one.get("bodies", ())),
            )
            for one in data["nodes"]
        )  # fmt: skip
        values = {name: _value_pattern(one) for name, one in data.get("values", {}).items()}
        if not isinstance(data["nodes"], list) or not (nodes or values):
            raise KeyError("no nodes and no values")
        return BugPredicate(
            data["target"], data["kind"], data.get("stage", ""), data.get("message", ""),
            tuple(data.get("passes", ())), data.get("transform", ""), nodes, values, bool(data.get("by_default", True)),
        )  # fmt: skip
    except (KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"a bug predicate is damaged: {error!r}") from None


def has_pattern(pattern: Mapping[str, Any], model: Model) -> bool:
    """Tell whether a program contains the `nodes` and `values` of a pattern. Raises StoreError for a damaged one."""
    nodes = {"nodes": [], **pattern}
    return predicate_from({"target": "", "kind": "", **nodes}).matches(described(model), surely=True)


def _value_pattern(data: Mapping[str, Any]) -> ValuePattern:
    lists = {name: tuple(data[name]) for name in ("shape", "elements") if data.get(name) is not None}
    return ValuePattern(**{**data, **lists})


@dataclass(frozen=True, slots=True)
class DescribedGraph:
    """One graph with the types and constants that conditions on its values refer to.

    Conditions on the type of a value that is not in `types` hold. `constants` are the values that are known when the
    program is compiled; None for one that the compiler computes from others.
    """

    nodes: tuple[Node, ...]
    types: Mapping[str, ValueType | None]
    constants: Mapping[str, Tensor | None]
    places: Mapping[str, list[int]] = field(init=False, compare=False, repr=False)
    """The indices of the nodes of each operator."""

    def __post_init__(self) -> None:
        places: dict[str, list[int]] = {}
        for place, node in enumerate(self.nodes):
            places.setdefault(node.op, []).append(place)
        object.__setattr__(self, "places", places)


@dataclass(frozen=True, slots=True)
class Described:
    """A program in the form that predicates are held against: main graph, its bodies at any depth, and functions.

    Compilers inline functions, so that a bug shows in them as well. Nothing is known about the types of their values.
    """

    graphs: tuple[DescribedGraph, ...]


def described(model: Model) -> Described:
    """Return `model` in the form that predicates are held against.

    For a model that breaks the operators' rules, values have the types that the model declares.
    """
    try:
        typing = typing_of(model)
    except ModelError:
        infos = (*model.graph.inputs, *model.graph.outputs)
        declared = {info.name: info.type for info in infos if info.type is not None}
        typing = Typing({**model.graph.types, **declared}, {}, model.opset)
    bodies = (DescribedGraph(function.nodes, {}, {}) for function in model.functions)
    return Described((*_graphs(model.graph, typing, {}), *bodies))


def _graphs(graph: Graph, typing: Typing, outer: Mapping[str, Tensor | None]) -> Iterator[DescribedGraph]:
    constants: dict[str, Tensor | None] = {**outer, **graph.initializers}
    for node in graph.nodes:
        value = node.attributes.get("value")
        if node.op == "Constant" and value is not None and value.kind == "tensor":
            constants[node.outputs[0]] = value.value
        elif plain(node) and all(name in constants for name in reads(node)):
            constants.update((name, typing.constants.get(name)) for name in node.outputs)
    yield DescribedGraph(graph.nodes, typing.types, constants)
    for node in graph.nodes:
        if any(True for _ in node.subgraphs()):
            for body, inner in zip(node.subgraphs(), typing.bodies(node), strict=True):
                yield from _graphs(body, inner, constants)


def inner_operators(node: Node) -> tuple[str, ...]:
    """Return the operators in the bodies of `node`, at any depth, sorted."""
    found: list[str] = []
    for body in node.subgraphs():
        for inner in body.nodes:
            found += [inner.op, *inner_operators(inner)]
    return tuple(sorted(found))


def plain_attribute(value: Any) -> Any:  # noqa: ANN401 - values of attributes
    """Return an attribute's value as a JSON value; None for graphs, types and tensors, which no condition demands."""
    if isinstance(value, int | float | str):
        return value
    if isinstance(value, tuple) and all(isinstance(item, int | float | str) for item in value):
        return list(value)
    return None


def _found(predicate: BugPredicate, graph: DescribedGraph, surely: bool) -> bool:
    """Search for the pattern by backtracking, node by node in the pattern's order.

    A pattern without nodes is about constants, whatever reads them.
    """
    if not predicate.nodes:
        return bool(predicate.values) and all(
            any(_value_fits(wanted, name, graph, surely) for name in graph.constants)
            for wanted in predicate.values.values()
        )
    places = graph.places
    if not all(node.op in places for node in predicate.nodes):
        return False

    def search(number: int, bound: Mapping[str, str], used: frozenset[int]) -> bool:
        if number == len(predicate.nodes):
            return True
        wanted = predicate.nodes[number]
        for place in places.get(wanted.op, ()):
            if place in used or not _node_fits(wanted, graph.nodes[place]):
                continue
            for more in _bindings(wanted, graph.nodes[place], bound):
                if all(
                    _value_fits(predicate.values.get(name), more[name], graph, surely)
                    for name in more.keys() - bound.keys()
                ) and search(number + 1, more, used | {place}):
                    return True
        return False

    return search(0, {}, frozenset())


def _node_fits(wanted: NodePattern, node: Node) -> bool:
    if node.domain.replace("ai.onnx", "") != wanted.domain:
        return False
    for name, value in wanted.attributes.items():
        held = node.attributes.get(name)
        if held is None or plain_attribute(held.value) != value:
            return False
    return not Counter(wanted.bodies) - Counter(inner_operators(node)) if wanted.bodies else True


def _bindings(wanted: NodePattern, node: Node, bound: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
    """Yield the ways in which the pattern's names can stand for the node's operands and results."""
    orders: list[Sequence[str]] = [node.inputs]
    if wanted.op in having("commutative") and len(node.inputs) == 2:
        orders.append(node.inputs[::-1])
    for operands in orders:
        more = dict(bound)
        if all(_bind(name, _at(operands, place), more) for place, name in enumerate(wanted.inputs)) and all(
            _bind(name, _at(node.outputs, place), more) for place, name in enumerate(wanted.outputs)
        ):
            yield more


def _at(names: Sequence[str], place: int) -> str:
    return names[place] if place < len(names) else ""


def _bind(name: str, held: str, bound: dict[str, str]) -> bool:
    if name == ANY_OPERAND:
        return True
    if not name or not held:
        return name == held
    return bound.setdefault(name, held) == held


def _value_fits(wanted: ValuePattern | None, name: str, graph: DescribedGraph, surely: bool) -> bool:
    if wanted is None:
        return True
    constant = graph.constants.get(name)
    if wanted.constant is not None and wanted.constant != (name in graph.constants):
        return False
    if wanted.elements is not None:
        if name not in graph.constants or (constant is None and surely):
            return False
        if constant is not None and not _same_elements(wanted.elements, constant):
            return False
    if wanted.dtype is None and wanted.rank is None and wanted.shape is None:
        return True
    kind = TensorType(constant.dtype, constant.shape) if constant is not None else graph.types.get(name)
    return not surely if kind is None else isinstance(kind, TensorType) and _type_fits(wanted, kind, surely)


def _type_fits(wanted: ValuePattern, kind: TensorType, surely: bool) -> bool:
    if wanted.dtype == FLOATS:
        if DTYPES[kind.dtype].kind != "float":
            return False
    elif wanted.dtype is not None and kind.dtype != wanted.dtype:
        return False
    if kind.shape is None:
        return not surely or (wanted.rank is None and wanted.shape is None)
    if wanted.rank is not None and len(kind.shape) != wanted.rank:
        return False
    return wanted.shape is None or (
        len(kind.shape) == len(wanted.shape)
        and all(
            want == ANY_SIZE or size == want or (not isinstance(size, int) and not surely)
            for size, want in zip(kind.shape, wanted.shape, strict=True)
        )
    )


def elements_of(value: Tensor) -> tuple[Any, ...] | None:
    """Return the numbers of a small constant, flat; None for a large one, and for types without JSON numbers."""
    if value.array.size > MOST_ELEMENTS or DTYPES[value.dtype].kind in ("complex", "string"):
        return None
    return tuple(value.numbers().ravel().tolist())


def _same_elements(wanted: Sequence[Any], value: Tensor) -> bool:
    held = elements_of(value)
    return held is not None and len(held) == len(wanted) and all(
        one == other or (one != one and other != other) for one, other in zip(held, wanted, strict=True)
    )  # fmt: skip


def told_apart(fresh: Stored, known: Stored) -> Signature | None:
    """Return a signature of its own for `fresh` if it is another bug than `known`, which has the same signature.

    Both are triaged findings. They are two bugs when the same passes are to blame, and neither reduced program's
    operators are among the other's, or the target's list of known bugs has only one of them. Otherwise None: one bug.
    """
    signature = fresh.finding.property.signature
    patterns = [one.finding.facts.get("predicate") for one in (fresh, known)]
    if not signature.culprits or not all(patterns):
        return None
    one, other = (_telling(predicate_from(data)) for data in patterns if data)
    listed = [bool(stored.finding.facts.get("known")) for stored in (fresh, known)]
    if not one or not other or (listed[0] == listed[1] and (one <= other or other <= one)):
        return None
    message = signature.text if signature.kind == "exception" and not signature.is_switched else ""
    told = replace(signature, text=": ".join(filter(None, (">".join(sorted(one)), message))))
    return told.switched() if signature.is_switched else told


_PLUMBING = frozenset({"Identity", "Cast", "CastLike", "Constant"})
"""Operators that programs of all kinds contain, so that they tell no bugs apart."""


def _telling(predicate: BugPredicate) -> frozenset[str]:
    return frozenset(operator_class(node.op) for node in predicate.nodes) - _PLUMBING
