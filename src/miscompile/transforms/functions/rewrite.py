"""The function rewrites of HIRFUZZ (section 3.3.2), as far as ONNX can express them.

Each adds a new function g that calls a function f, and replaces all other calls of f by calls of g. The results do not
change.
"""

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Literal

import numpy as np

from miscompile.base.errors import RejectedDraft
from miscompile.core.tensor import Array, Tensor, numpy_name
from miscompile.graph.model import Attribute, AttributeKind, Function, Graph, Model, Node, TensorType, ValueInfo
from miscompile.graph.prune import callee_key, function_key
from miscompile.graph.rename import NameSupply
from miscompile.transforms.functions.calls import pure
from miscompile.transforms.functions.compose import call_of, importing, own_domain, with_function
from miscompile.transforms.functions.regions import calls, map_nodes

Rewrite = Literal["none", "closure", "forward", "factory", "any"]

_BODIES_SINCE = 16
"""The first operator set in which If and Loop support every type of value."""

_LOOP = 0.35
"""Share of the closures in a Loop instead of an If."""


def rewrite(model: Model, rng: random.Random, how: Rewrite) -> Model:
    """Return `model` with one or more of its called functions rewritten.

    - `forward`: g(args) = f(args).
    - `closure`: ONNX has no functions inside functions, but bodies capture values. f is called in a body that captures
      the parameters of g: in an If with a constant condition or in a Loop that runs once.
    - `any`: either, drawn for each function.

    Raises RejectedDraft when no function can be rewritten, and always for `factory`: ONNX cannot express a function
    that returns a function.
    """
    if how == "none":
        return model
    if how == "factory":
        raise RejectedDraft("an ONNX function cannot return a function")
    called = {callee_key(call) for _, call in calls(model)}
    functions = [function for function in model.functions if function_key(function) in called and function.outputs]
    rng.shuffle(functions)
    done = 0
    for function in functions:
        if done and rng.random() < 0.5:
            continue
        kind = rng.choice(("closure", "forward")) if how == "any" else how
        if kind == "forward":
            model = _before(model, rng, function, "forward", (_call_in(function, function.outputs),), {})
        elif _can_capture(model, function):
            model = _closure(model, rng, function)
        else:
            continue
        done += 1
    if not done:
        raise RejectedDraft("no function can be rewritten")
    return model


def _before(
    model: Model,
    rng: random.Random,
    function: Function,
    base: str,
    nodes: tuple[Node, ...],
    opsets: Mapping[str, int],
) -> Model:
    """Return `model` with calls of `function` replaced by calls of a new one that consists of `nodes`."""
    domain = own_domain(model)
    taken = NameSupply(other.name for other in model.functions if other.domain == domain)
    front = replace(
        function, domain=domain, name=taken.fresh(f"{base}_{function.name}"), nodes=nodes, overload="", types={},
        opsets={**opsets, function.domain: model.opsets.get(function.domain, 1)},
    )  # fmt: skip
    key = function_key(function)

    def change(node: Node, _: Mapping[str, int]) -> Node:
        if callee_key(node) != key:
            return node
        return replace(node, op=front.name, domain=front.domain, overload="")

    return importing(with_function(map_nodes(model, change), front, rng))


def _call_in(function: Function, outputs: Iterable[str]) -> Node:
    """Return the call of `function` in a function that has the same parameters and attributes."""
    kinds = dict(_kinds(function.nodes))
    kinds.update((name, default.kind) for name, default in function.defaults.items())
    given = {
        name: Attribute("ref", name, kinds[name])
        for name in (*function.attributes, *function.defaults)
        if name in kinds
    }
    return call_of(function, function.inputs, outputs, given)


def _kinds(nodes: Iterable[Node]) -> Iterator[tuple[str, AttributeKind]]:
    """Yield the attributes of the enclosing function that `nodes` reference, with their kinds where these are known."""
    for node in nodes:
        for attribute in node.attributes.values():
            if attribute.kind == "ref" and attribute.ref_kind is not None:
                yield attribute.value, attribute.ref_kind
        for body in node.subgraphs():
            yield from _kinds(body.nodes)


def _can_capture(model: Model, function: Function) -> bool:
    """Tell whether a body can call `function`: the body supports its types, and no parameter is optional."""
    if _standard(model, function) < _BODIES_SINCE:
        return False
    arity = {function_key(other): len(other.inputs) for other in model.functions}
    return all(len(call.inputs) == arity[callee_key(call)] and all(call.inputs) for _, call in calls(model))


def _standard(model: Model, function: Function) -> int:
    return function.opsets.get("", function.opsets.get("ai.onnx", model.opset))


def _closure(model: Model, rng: random.Random, function: Function) -> Model:
    names = NameSupply((*function.inputs, *function.outputs))
    in_loop = pure(function.nodes, model) and rng.random() < _LOOP
    nodes = _loop(function, names) if in_loop else _branches(function, names)
    return _before(model, rng, function, "closure", nodes, {"": _standard(model, function)})


def _branches(function: Function, names: NameSupply) -> tuple[Node, ...]:
    """Return an If whose two bodies call `function`; only the first ever runs."""
    condition = names.fresh("always")

    def body(name: str) -> Attribute:
        results = tuple(names.fresh(f"{name}_{output}") for output in function.outputs)
        infos = tuple(ValueInfo(result, None) for result in results)
        return Attribute("graph", Graph(name, (), infos, (_call_in(function, results),)))

    given = {"then_branch": body("then"), "else_branch": body("otherwise")}
    return _constant(condition, np.array(True)), Node("If", (condition,), function.outputs, given)


def _loop(function: Function, names: NameSupply) -> tuple[Node, ...]:
    """Return a Loop that calls `function` and returns the results; a first call gives the initial values."""
    trips, go_on, turn, condition, stay = (
        names.fresh(base) for base in ("trips", "go_on", "turn", "condition", "stay")
    )
    starts = tuple(names.fresh(f"start_{output}") for output in function.outputs)
    carried = tuple(names.fresh(f"carried_{output}") for output in function.outputs)
    results = tuple(names.fresh(f"next_{output}") for output in function.outputs)
    inputs = (
        ValueInfo(turn, TensorType("int64", ())),
        ValueInfo(condition, TensorType("bool", ())),
        *(ValueInfo(name, None) for name in carried),
    )
    outputs = (ValueInfo(stay, TensorType("bool", ())), *(ValueInfo(name, None) for name in results))
    nodes = (Node("Identity", (condition,), (stay,)), _call_in(function, results))
    body = Attribute("graph", Graph("body", inputs, outputs, nodes))
    return (
        _constant(trips, np.array(1, np.int64)),
        _constant(go_on, np.array(True)),
        _call_in(function, starts),
        Node("Loop", (trips, go_on, *starts), function.outputs, {"body": body}),
    )


def _constant(name: str, value: Array) -> Node:
    return Node("Constant", (), (name,), {"value": Attribute("tensor", Tensor(numpy_name(value.dtype), value))})
