"""Instances of ONNX as models of one node.

The tensors that the node is given become inputs of the model and its feed. A program's inputs and outputs are dense
tensors. A sequence or an optional among the operands is therefore built from tensor inputs by nodes before the one
under test, and one among the results is decomposed by nodes after it; the node under test is then called `operator`.
Values that a body captures are in the instance's `options`, by their names.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from miscompile.base.dtypes import DTYPES
from miscompile.base.errors import ModelError
from miscompile.core.case import Case
from miscompile.core.tensor import Tensor, tensor
from miscompile.graph.edges import all_names, captured
from miscompile.graph.emit import to_program
from miscompile.graph.infer import infer
from miscompile.graph.model import (
    Attribute,
    Graph,
    Model,
    Node,
    OptionalType,
    SequenceType,
    TensorType,
    ValueInfo,
    ValueType,
)
from miscompile.instances.instance import Instance
from miscompile.instances.values import Drawn, Held, Made, Value, tensor_of
from miscompile.producers.instances.evaluation import evaluated
from miscompile.producers.instances.onnx_values import (
    OPTIONAL,
    SEQUENCE,
    array_value,
    attribute_value,
    attributes_of,
    from_array,
    operand_type,
    schema_of,
    to_array,
    value_type,
)

ConstantPolicy = Literal["none", "known", "rest"]
"""Which operands are initialisers: none; those without which the shapes of the results are not known (the shape of a
Reshape); or all but the first, as in OPERA's templates. An instance that says which operands are fed overrides it."""

UNDER_TEST = "operator"
"""Name of the node under test."""

_AROUND = 18
"""Operator set of the nodes around one of another domain."""


def split_api(api: str) -> tuple[str, str]:
    """Return domain and operator of an instance's `api`."""
    domain, _, op = api.rpartition(".")
    return domain, op


@dataclass(slots=True)
class _Draft:
    """A model under construction."""

    taken: set[str]
    nodes: list[Node] = field(default_factory=list)
    inputs: list[ValueInfo] = field(default_factory=list)
    feed: list[Tensor] = field(default_factory=list)
    initializers: dict[str, Tensor] = field(default_factory=dict)
    known: dict[str, ValueType] = field(default_factory=dict)

    def fresh(self, stem: str) -> str:
        name = next(name for name in _names(stem) if name not in self.taken)
        self.taken.add(name)
        return name

    def input(self, value: Tensor, *, constant: bool, name: str = "") -> str:
        name = name or self.fresh(f"x{len(self.inputs)}" if not constant else f"c{len(self.initializers)}")
        self.known[name] = TensorType(value.dtype, value.shape)
        if constant:
            self.initializers[name] = value
        else:
            self.inputs.append(ValueInfo(name, self.known[name]))
            self.feed.append(value)
        return name

    def operand(self, value: Value, *, constant: bool, name: str = "") -> str:
        """Add an input, an initialiser or nodes for an operand; return the name of its value."""
        match value:
            case None:
                return ""
            case Held() | Drawn():
                return self.input(tensor_of(value), constant=constant, name=name)
            case Made(api, (tuple(items), kind)) if api == SEQUENCE:
                parts = tuple(self.operand(item, constant=constant) for item in items)
                element = value_type(kind)
                assert isinstance(element, TensorType)
                code = {"dtype": Attribute("int", DTYPES[element.dtype].code)}
                made = Node("SequenceConstruct", parts, ()) if parts else Node("SequenceEmpty", (), (), code)
                return self._made(value, made, name)
            case Made(api, args) if api == OPTIONAL:
                parts = tuple(self.operand(item, constant=constant) for item in args[1:])
                given = {} if parts else {"type": Attribute("type", value_type(args[0]))}
                return self._made(value, Node("Optional", parts, (), given), name)
        raise ModelError(f"{value!r:.80} is no input of an ONNX node")

    def _made(self, value: Value, node: Node, name: str) -> str:
        name = name or self.fresh("s")
        kind = operand_type(value)
        assert kind is not None
        self.known[name] = kind
        self.nodes.append(replace(node, outputs=(name,)))
        return name


def _names(stem: str) -> Iterable[str]:
    yield stem
    place = 0
    while True:
        place += 1
        yield f"{stem}_{place}"


def to_onnx_case(instance: Instance, constants: ConstantPolicy = "none") -> Case:
    """Return the program of one node with the feed that its test gave it. Raises ModelError as `to_model` does."""
    model, feed = to_model(instance, constants)
    recipe = {"api": instance.api, "source": instance.source, "origin": instance.origin}
    return Case(to_program(model), (feed,), recipe)


def node_instance(node: Node, operands: Mapping[str, Value], version: int) -> Instance:
    """Return a node as an instance, with its operands and the values that its bodies capture.

    Raises ModelError for an attribute that an instance cannot hold.
    """
    return Instance(
        "onnx",
        f"{node.domain}.{node.op}" if node.domain else node.op,
        "node",
        kwargs={name: attribute_value(one) for name, one in node.attributes.items()},
        inputs=tuple(operands[name] if name else None for name in node.inputs),
        options={name: operands[name] for name in _around(node)},
        version=version,
        results=tuple(bool(name) for name in node.outputs),
    )


def _around(node: Node) -> list[str]:
    return sorted({name for body in node.subgraphs() for name in captured(body)})


def to_model(instance: Instance, constants: ConstantPolicy = "none") -> tuple[Model, tuple[Tensor, ...]]:
    """Return the model of a node and the tensors that its inputs are fed with.

    Raises ModelError when the instance is none of ONNX, breaks its operator's rules, or has results that cannot be
    decomposed into tensors.
    """
    if instance.library != "onnx" or instance.form != "node":
        raise ModelError(f"{instance.api} is no node of ONNX")
    domain, op = split_api(instance.api)
    attributes = attributes_of(op, domain, instance.version, instance.kwargs)
    shell = Node(op, (), (), attributes, domain, UNDER_TEST)
    bodies = list(shell.subgraphs())
    draft = _Draft(set(instance.options).union(*(all_names(body) for body in bodies)))
    fixed = _constants(instance, constants)
    for name, value in instance.options.items():
        draft.operand(value, constant=False, name=name)
    inputs = _operands(draft, instance, fixed)
    results = instance.results or _usual_results(op, domain, instance.version)
    outputs = tuple(draft.fresh(f"y{place}") if named else "" for place, named in enumerate(results))
    node = replace(shell, inputs=inputs, outputs=outputs)
    opsets = {"": instance.version} if not domain else {"": _AROUND, domain: instance.version}
    draft.nodes.append(node)
    model = _finished(draft, node, opsets, instance)
    return model, tuple(draft.feed)


def _operands(draft: _Draft, instance: Instance, fixed: set[int]) -> tuple[str, ...]:
    """Return the names of the operands; equal ones have the same name where the instance shares them."""
    names: list[str] = []
    for place, value in enumerate(instance.inputs):
        equal = instance.inputs.index(value)
        shared = instance.operands == "shared" and value is not None and equal < place
        names.append(names[equal] if shared else draft.operand(value, constant=place in fixed))
    return tuple(names)


def _usual_results(op: str, domain: str, version: int) -> tuple[bool, ...]:
    schema = schema_of(op, version, domain)
    return (True,) * (max(schema.min_output, 1) if schema else 1)


def _constants(instance: Instance, constants: ConstantPolicy) -> set[int]:
    places = [place for place, value in enumerate(instance.inputs) if isinstance(value, Held | Drawn)]
    if instance.operands in ("first constant", "constant"):
        return set(places if instance.operands == "constant" else places[:1])
    if constants == "none" or instance.operands == "fed":
        return set()
    rest = constants == "rest" or instance.operands == "first fed"
    return set(places[1:]) if rest else _needed(instance, places)


def _needed(instance: Instance, places: Sequence[int]) -> set[int]:
    """Return a minimal set of operands whose elements give inference the same result as all elements."""
    kept = list(places)
    best = _inferred(instance, kept)
    for place in places:
        fewer = [other for other in kept if other != place]
        if _inferred(instance, fewer) == best:
            kept = fewer
    return set(kept)


def _inferred(instance: Instance, known: Sequence[int]) -> tuple[ValueType | None, ...]:
    domain, op = split_api(instance.api)
    types = {f"x{place}": operand_type(value) for place, value in enumerate(instance.inputs) if value is not None}
    types.update({name: operand_type(value) for name, value in instance.options.items()})
    names = tuple("" if value is None else f"x{place}" for place, value in enumerate(instance.inputs))
    results = instance.results or _usual_results(op, domain, instance.version)
    outputs = tuple(f"y{place}" if named else "" for place, named in enumerate(results))
    attributes = attributes_of(op, domain, instance.version, instance.kwargs)
    held = {place: instance.inputs[place] for place in known}
    values = {f"x{place}": tensor_of(value) for place, value in held.items() if isinstance(value, Held | Drawn)}
    given = {name: kind for name, kind in types.items() if kind is not None}
    return infer(Node(op, names, outputs, attributes, domain), given, instance.version, values)


def _finished(draft: _Draft, node: Node, opsets: dict[str, int], instance: Instance) -> Model:
    types = _result_types(draft, node, opsets, instance)
    graph = Graph("model", tuple(draft.inputs), (), tuple(draft.nodes), draft.initializers)
    if all(isinstance(kind, TensorType) for kind in types.values()):
        outputs = tuple(ValueInfo(name, kind) for name, kind in types.items())
        return Model(replace(graph, outputs=outputs), opsets)
    values = _evaluated(Model(replace(graph, outputs=tuple(ValueInfo(name, None) for name in types)), opsets), draft)
    outputs = tuple(info for name, kind in types.items() for info in _taken_apart(draft, name, kind, values[name]))
    return Model(replace(graph, outputs=outputs, nodes=tuple(draft.nodes), initializers=draft.initializers), opsets)


def _result_types(draft: _Draft, node: Node, opsets: dict[str, int], instance: Instance) -> dict[str, ValueType]:
    """Return the inferred types of the results, with the initialisers known.

    Outputs of a model must at least have a rank (onnx's checker asks for it): where inference does not find it, the
    rank comes from inference that knows the feed, or else from running the node.
    """
    given = {name: draft.known[name] for name in (*node.inputs, *instance.options) if name}
    fixed = {name: value for name, value in draft.initializers.items() if name in given}
    fed = {info.name: value for info, value in zip(draft.inputs, draft.feed, strict=True) if info.name in given}
    types = infer(node, given, instance.version, fixed)
    if not all(map(_ranked, types)):
        closer = infer(node, given, instance.version, {**fixed, **fed})
        types = tuple(one if _ranked(one) else _loose(other) for one, other in zip(types, closer, strict=True))
    found = {name: kind for name, kind in zip(node.outputs, types, strict=True) if name}
    unknown = tuple(ValueInfo(name, None) for name, kind in found.items() if not _ranked(kind))
    if unknown:
        graph = Graph("model", tuple(draft.inputs), unknown, tuple(draft.nodes), draft.initializers)
        for name, value in _evaluated(Model(graph, opsets), draft).items():
            found[name] = _loose(operand_type(array_value(value, None)))
    return {name: kind for name, kind in found.items() if kind is not None}


def _ranked(kind: ValueType | None) -> bool:
    return kind is not None and not (isinstance(kind, TensorType) and kind.shape is None)


def _loose(kind: ValueType | None) -> ValueType | None:
    """Return a type with its rank, but without sizes, which hold for this feed only."""
    if isinstance(kind, TensorType) and kind.shape is not None:
        return TensorType(kind.dtype, (None,) * len(kind.shape))
    return kind


def _evaluated(model: Model, draft: _Draft) -> dict[str, object]:
    feed = {info.name: to_array(value) for info, value in zip(draft.inputs, draft.feed, strict=True)}
    return evaluated(model, feed)


def _taken_apart(draft: _Draft, name: str, kind: ValueType, value: object) -> list[ValueInfo]:
    """Add the nodes that decompose a result into tensors; return the model's outputs for it."""
    match kind:
        case TensorType():
            return [ValueInfo(name, kind)]
        case SequenceType(TensorType(dtype)) if isinstance(value, list):
            length = draft.fresh(f"{name}_length")
            draft.nodes.append(Node("SequenceLength", (name,), (length,)))
            infos = [ValueInfo(length, TensorType("int64", ()))]
            for place, item in enumerate(value):
                at, part = draft.fresh("at"), draft.fresh(f"{name}_{place}")
                draft.initializers[at] = tensor(np.array(place, np.int64))
                draft.nodes.append(Node("SequenceAt", (name, at), (part,)))
                infos.append(ValueInfo(part, TensorType(dtype, from_array(item).shape)))
            return infos
        case OptionalType(element):
            has, inner = draft.fresh(f"{name}_has"), draft.fresh(f"{name}_element")
            draft.nodes.append(Node("OptionalHasElement", (name,), (has,)))
            infos = [ValueInfo(has, TensorType("bool", ()))]
            if value is not None:
                draft.nodes.append(Node("OptionalGetElement", (name,), (inner,)))
                infos += _taken_apart(draft, inner, element, value)
            return infos
    raise ModelError(f"a result of type {kind} cannot be taken apart into tensors")
