"""What a model computes, as one term for each output: equal terms are equal computations, whatever shares or repeats.

Functions are inlined, constants are the same as nodes and as initialisers, and bodies whose conditions are constants
are entered: what wrapping and rewriting may leave behind.
"""

import hashlib
from collections.abc import Mapping

from miscompile.core.tensor import Tensor
from miscompile.graph.equality import float_bits
from miscompile.graph.inline import inline
from miscompile.graph.model import Attribute, Graph, Model, Node

Terms = dict[str, str]


def terms_of(model: Model) -> tuple[str, ...]:
    """Return the terms of the outputs of `model`, in order."""
    whole = inline(model).graph
    fed = {info.name: _term("input", info.name, repr(info.type)) for info in whole.inputs}
    return _graph(whole, fed)


def _term(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogateescape")).hexdigest()


def _tensor(value: Tensor) -> str:
    return _term("tensor", value.dtype, value.shape, value.array.tobytes())


def _graph(graph: Graph, outer: Mapping[str, str]) -> tuple[str, ...]:
    """Return the terms of a graph's outputs; `outer` has those of its inputs and of what it captures."""
    terms: Terms = {**outer}
    given = {info.name for info in graph.inputs}
    terms.update((name, _tensor(value)) for name, value in graph.initializers.items() if name not in given)
    for node in graph.nodes:
        made = _node(node, terms)
        terms.update((name, term) for name, term in zip(node.outputs, made, strict=True) if name)
    return tuple(terms[info.name] for info in graph.outputs)


def _node(node: Node, terms: Terms) -> tuple[str, ...]:
    inputs = [terms[name] if name else "" for name in node.inputs]
    if node.op == "Constant" and "value" in node.attributes:
        return (_tensor(node.attributes["value"].value),)
    if node.op == "If" and inputs[0] == _TRUE:
        return _graph(node.attributes["then_branch"].value, terms)
    if node.op == "Loop" and inputs[:2] == [_ONE, _TRUE]:
        body = node.attributes["body"].value
        start = dict(zip((info.name for info in body.inputs), ["first", _TRUE, *inputs[2:]], strict=True))
        condition, *results = _graph(body, {**terms, **start})
        assert condition == _term("Identity", "", (), [_TRUE], 0)
        return tuple(results)
    while inputs and not inputs[-1]:
        inputs.pop()
    attributes = tuple(sorted((name, _attribute(value, terms)) for name, value in node.attributes.items()))
    return tuple(_term(node.op, node.domain, attributes, inputs, place) for place in range(len(node.outputs)))


def _attribute(attribute: Attribute, terms: Terms) -> str:
    value = attribute.value
    if isinstance(value, Tensor):
        return _tensor(value)
    if isinstance(value, Graph):
        formal = {info.name: _term("formal", place) for place, info in enumerate(value.inputs)}
        return _term("body", _graph(value, {**terms, **formal}))
    if isinstance(value, float):
        return _term("float", float_bits(value))
    if isinstance(value, tuple) and value and isinstance(value[0], float):
        return _term("floats", [float_bits(item) for item in value])
    return _term(attribute.kind, repr(value))


def _scalar(value: int | bool, dtype: str) -> str:
    width = {"bool": 1, "int64": 8}[dtype]
    return _term("tensor", dtype, (), int(value).to_bytes(width, "little"))


_TRUE, _ONE = _scalar(True, "bool"), _scalar(1, "int64")
