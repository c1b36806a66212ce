"""Features of control flow that a target may support: captures, nested blocks, scan outputs and so on, by operator.

A form is a key of the support table like any other (`Loop-21(int64,bool,float32)float32 body=captured`); the capability
probe runs the `questions`, and the generator plants the supported forms.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import NamedTuple

import numpy as np

from miscompile.base.dtypes import PLAIN
from miscompile.core.case import Case
from miscompile.core.tensor import Tensor, tensor
from miscompile.graph.attributes import PlainValue, attributes
from miscompile.graph.edges import reads
from miscompile.graph.emit import to_program
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.ops.registry import schema, version_of
from miscompile.ops.support import CallKey, Support
from miscompile.producers.finish import ir_version_of

OPERATORS = ("If", "Loop", "Scan")

_BARE = ("own", "captured")
"""Features of which a target must support one for the operator to be usable."""

_AROUND = {op: f"around-{op}" for op in OPERATORS}

FEATURES: Mapping[str, tuple[str, ...]] = {
    "If": ("own", "captured", *_AROUND.values()),
    "Loop": ("own", "captured", *_AROUND.values(), "fed", "exit", "stacked"),
    "Scan": ("own", "captured", *_AROUND.values(), "turned"),
}
"""Features by operator: constants in the body; captured outer values; a nested block; a trip count that is fed; an
early exit; scan outputs; scan axes and directions other than the default.

The feature `moved` is probed for every element type other than float32: the body has an output of that type.
"""

_OPERANDS = {"If": "(bool){0}", "Loop": "(int64,bool,{0}){0}", "Scan": "({0},{0}){0},{0}"}

_PLAINEST = "float32"

_TRUTH = TensorType("bool", ())


def form_key(op: str, feature: str, opset: int, dtype: str = _PLAINEST) -> CallKey:
    """Return the key of a form in the support table; the bodies have outputs of `dtype`."""
    return f"{op}-{version_of(op, opset)}{_OPERANDS[op].format(dtype)} body={feature}"


@cache
def carried_dtypes(op: str, opset: int) -> frozenset[str]:
    """Return the element types of the values that an operator with bodies takes or gives in `opset`, by its schema."""
    known = schema(op, opset)
    assert known is not None, f"opset {opset} has no {op}"
    names = {name for constraint in known.type_constraints for name in constraint.allowed_type_strs}
    types = {name.removeprefix("tensor(").removesuffix(")") for name in names if name.startswith("tensor(")}
    aliases = {"float": "float32", "double": "float64"}
    return frozenset(aliases.get(name, name) for name in types)


class Blocks(NamedTuple):
    """The forms that a target supports under one opset: (operator, feature) pairs, and element types by operator."""

    taken: frozenset[tuple[str, str]]
    dtypes: Mapping[str, tuple[str, ...]]

    def operators(self, around: str = "") -> tuple[str, ...]:
        """Return the operators that can be planted in the main graph, or in a body of the operator `around`."""
        return tuple(op for op in OPERATORS if self.bare(op) and (not around or self.has(around, _AROUND[op])))

    def bare(self, op: str) -> bool:
        """Tell whether the target supports the operator at all."""
        return any(self.has(op, feature) for feature in _BARE)

    def has(self, op: str, feature: str) -> bool:
        """Tell whether the target supports a form."""
        return (op, feature) in self.taken


def blocks(support: Support, opset: int, dtypes: Sequence[str] = PLAIN) -> Blocks:
    """Return the control flow that `support` admits under `opset`, for values of `dtypes`; an open table admits all."""

    def admits(op: str, feature: str, dtype: str = _PLAINEST) -> bool:
        return support.open or form_key(op, feature, opset, dtype) in support.taken

    pairs = {(op, feature) for op, features in FEATURES.items() for feature in features if admits(op, feature)}
    carried = {
        op: tuple(
            dtype
            for dtype in dtypes
            if dtype in carried_dtypes(op, opset)
            and (
                admits(op, "moved", dtype) if dtype != _PLAINEST else (op, "own") in pairs or (op, "captured") in pairs
            )
        )
        for op in FEATURES
    }
    return Blocks(frozenset(pairs), carried)


class Question(NamedTuple):
    """A case that probes one form; the form is unsupported without a run where all forms in `needs` are."""

    key: CallKey
    op: str
    case: Case
    needs: frozenset[CallKey] = frozenset()


def questions(opsets: Iterable[int]) -> Iterator[Question]:
    """Yield a question for each form and version of its operator within `opsets`, newest first.

    Questions about features of bodies come first, then those about element types other than float32.
    """
    asked: set[CallKey] = set()
    newest = sorted(opsets, reverse=True)
    features = ((opset, op, feature, _PLAINEST) for opset in newest for op in FEATURES for feature in FEATURES[op])
    types = (
        (opset, op, "moved", dtype)
        for opset in newest
        for op in FEATURES
        for dtype in PLAIN
        if dtype != _PLAINEST and dtype in carried_dtypes(op, opset)
    )
    for opset, op, feature, dtype in chain(features, types):
        key = form_key(op, feature, opset, dtype)
        if key not in asked:
            asked.add(key)
            bare = () if feature in _BARE else (form_key(op, plain, opset) for plain in _BARE)
            yield Question(key, op, _case(op, feature, opset, dtype), frozenset(bare))


def _case(op: str, feature: str, opset: int, dtype: str) -> Case:
    node, fed = {"If": _if, "Loop": _loop, "Scan": _scan}[op](feature, dtype)
    vector, square = TensorType(dtype, (3,)), TensorType(dtype, (3, 3))
    known = {"x": (1, 0, 3), "start": (0, 1, 2), "rows": ((0, 1, 2), (3, 4, 5), (6, 7, 8))}
    constants = {name: tensor(np.array(value), dtype) for name, value in known.items()}
    constants |= {"three": _number(3), "sure": Tensor("bool", np.array(True))}
    feeds: list[dict[str, Tensor]] = [{"x": constants.pop("x")}]
    feeds.append(feeds[0].copy())
    inputs = [ValueInfo("x", vector)]
    for name, values in fed.items():
        inputs.append(ValueInfo(name, TensorType(values[0].dtype, values[0].shape)))
        for feed, value in zip(feeds, values, strict=True):
            feed[name] = value
    wanted = set(reads(node))
    graph = Graph(
        "asked",
        tuple(info for info in inputs if info.name in wanted),
        (ValueInfo("y", square if feature in ("stacked", "turned") else vector),),
        (node,),
        {name: value for name, value in constants.items() if name in wanted},
    )
    names = [info.name for info in graph.inputs]
    model = Model(graph, {"": opset}, (), ir_version_of(opset))
    return Case(to_program(model), tuple(tuple(feed[name] for name in names) for feed in feeds), {"producer": "probe"})


@cache
def _number(value: int) -> Tensor:
    return Tensor("int64", np.array(value, np.int64))


Fed = Mapping[str, tuple[Tensor, Tensor]]


def _if(feature: str, dtype: str) -> tuple[Node, Fed]:
    truths = Tensor("bool", np.array(True)), Tensor("bool", np.array(False))
    bodies = {}
    for branch, op in (("then_branch", "Add"), ("else_branch", "Mul")):
        bodies[branch] = _body(branch, (), feature, op, dtype)
    return Node("If", ("chosen",), ("y",), attributes(bodies)), {"chosen": truths}


def _loop(feature: str, dtype: str) -> tuple[Node, Fed]:
    parameters = (
        ValueInfo("turn", TensorType("int64", ())),
        ValueInfo("on", _TRUTH),
        ValueInfo("state", TensorType(dtype, (3,))),
    )
    body = _body("body", parameters, feature, "Add", dtype)
    more: tuple[Node, ...] = (Node("Identity", ("on",), ("go",)),)
    constants = dict(body.initializers)
    if feature == "exit":
        more = (
            Node("ReduceMax", ("body_out",), ("top",), attributes({"keepdims": 0})),
            Node("Greater", ("limit", "top"), ("go",)),
        )
        constants["limit"] = Tensor("float32", np.array(4, np.float32))
    outputs = (ValueInfo("go", _TRUTH), *body.outputs)
    results: tuple[str, ...] = ("y",)
    if feature == "stacked":
        more += (Node("Identity", ("body_out",), ("row",)),)
        outputs += (ValueInfo("row", TensorType(dtype, (3,))),)
        results = ("last", "y")
    whole = Graph("body", parameters, outputs, (*body.nodes, *more), constants)
    fed: Fed = {"trips": (_number(3), _number(0))} if feature == "fed" else {}
    count, first = "trips" if feature == "fed" else "three", "sure" if feature == "exit" else ""
    return Node("Loop", (count, first, "start"), results, attributes({"body": whole})), fed


def _scan(feature: str, dtype: str) -> tuple[Node, Fed]:
    vector = TensorType(dtype, (3,))
    parameters = (ValueInfo("state", vector), ValueInfo("slice", vector))
    body = _body("body", parameters, feature, "Add", dtype)
    row = Node("Mul", ("body_out", "slice"), ("row",)) if feature != "moved" else Node("Identity", ("slice",), ("row",))
    outputs = (*body.outputs, ValueInfo("row", vector))
    whole = Graph("body", parameters, outputs, (*body.nodes, row), body.initializers)
    given: dict[str, PlainValue | None] = {"body": whole, "num_scan_inputs": 1}
    if feature == "turned":
        given |= {"scan_input_axes": (1,), "scan_output_axes": (1,)}
        given |= {"scan_input_directions": (1,), "scan_output_directions": (1,)}
    results = ("last", "y") if feature == "turned" else ("y", "rest")
    return Node("Scan", ("start", "rows"), results, attributes(given)), {}


def _body(label: str, parameters: tuple[ValueInfo, ...], feature: str, op: str, dtype: str) -> Graph:
    """Return a body whose one result is `<label>_out`: the state, combined with a value that uses `feature`."""
    vector = TensorType(dtype, (3,))
    result = (ValueInfo(f"{label}_out", vector),)
    own, state = f"{label}_own", "state" if parameters else ""
    constants = {own: tensor(np.array([1, 2, 0]), dtype)}
    if feature == "moved":
        source = state or own
        return Graph(
            label, parameters, result, (Node("Identity", (source,), (f"{label}_out",)),), {} if state else constants
        )
    second = "x" if feature == "captured" else own
    nodes = [Node(op, (state or second, second), (f"{label}_sum",))]
    last = f"{label}_sum"
    if feature in _AROUND.values():
        inner, more = _nested(feature, f"{label}_nested", last, vector)
        nodes.append(inner)
        constants |= more
        last = f"{label}_nested"
    nodes.append(Node("Relu", (last,), (f"{label}_out",)))
    if feature == "captured":
        del constants[own]
    return Graph(label, parameters, result, tuple(nodes), constants)


def _nested(feature: str, name: str, value: str, kind: TensorType) -> tuple[Node, dict[str, Tensor]]:
    """Return a nested block that computes `name` from `value`, and the constants that it needs."""
    if feature == _AROUND["If"]:
        branches = {}
        for branch, op in (("then_branch", "Neg"), ("else_branch", "Abs")):
            made = f"{name}_{branch}"
            branches[branch] = Graph(made, (), (ValueInfo(made, kind),), (Node(op, (value,), (made,)),))
        return Node("If", (f"{name}_truth",), (name,), attributes(branches)), {
            f"{name}_truth": Tensor("bool", np.array(True))
        }
    if feature == _AROUND["Loop"]:
        turn, on, state = (ValueInfo(f"{name}_turn", TensorType("int64", ())), ValueInfo(f"{name}_on", _TRUTH),
                           ValueInfo(f"{name}_state", kind))  # fmt: skip
        nodes = (Node("Identity", (on.name,), (f"{name}_go",)), Node("Neg", (state.name,), (f"{name}_next",)))
        outputs = (ValueInfo(f"{name}_go", _TRUTH), ValueInfo(f"{name}_next", kind))
        body = Graph(name, (turn, on, state), outputs, nodes)
        return Node("Loop", (f"{name}_trips", "", value), (name,), attributes({"body": body})), {
            f"{name}_trips": _number(2)
        }
    part = ValueInfo(f"{name}_slice", TensorType(kind.dtype, ()))
    row = ValueInfo(f"{name}_row", part.type)
    body = Graph(name, (part,), (row,), (Node("Neg", (part.name,), (row.name,)),))
    return Node("Scan", (value,), (name,), attributes({"body": body, "num_scan_inputs": 1})), {}
