"""Translation of nodes to terms and back.

`term_of` reads a node with its operator's defaults made explicit; `nodes_of` writes a term as a node that is valid in
the given opset. A node outside the language (dynamic structure, uncommon attributes) is opaque: None. The readers and
writers of operators with parameters are in `movement` and `layers`.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from miscompile.core.tensor import Tensor
from miscompile.graph.attributes import attributes
from miscompile.graph.model import NO_ATTRIBUTES, Attribute, Node
from miscompile.transforms.rules.movement import constant_array
from miscompile.transforms.rules.terms import LANGUAGE, Symbol, TermType, constant, typed
from miscompile.transforms.rules.translation import layers, movement
from miscompile.transforms.rules.translation.call import NodeReader, NodeWriter, TypedNode, integers

READERS: Mapping[str, NodeReader] = {**movement.READERS, **layers.READERS}
WRITERS: Mapping[str, NodeWriter] = {**movement.WRITERS, **layers.WRITERS}

Term = tuple[Symbol, tuple[str, ...]]


def term_of(node: Node, types: Mapping[str, TermType], constants: Mapping[str, Tensor]) -> list[Term] | None:
    """Return a term for each output of `node`: its symbol and the names of its children.

    `types` are those of all values whose types are concrete, `constants` the constant values; structural inputs among
    these become parameters. None where the node is opaque, in an opset of 13 or later.
    """
    if node.domain not in ("", "ai.onnx") or not all(node.outputs):
        return None
    call = TypedNode(node, types, constants)
    terms = _constant(call) if node.op in ("Constant", "ConstantOfShape") else _read(call)
    if terms is None:
        return None
    for symbol, children in terms:
        kinds = [types.get(name) for name in children]
        known = tuple([kind for kind in kinds if kind is not None])
        if len(known) < len(kinds) or typed(symbol, known) is None:
            return None
    return terms


def _read(call: TypedNode) -> list[Term] | None:
    node = call.node
    if node.op not in LANGUAGE:
        return None
    reader = READERS.get(node.op)
    if reader is None:
        plain = not node.attributes and len(node.outputs) == 1 and all(node.inputs)
        return [(Symbol(node.op), node.inputs)] if plain else None
    found = reader(call)
    if found is None or (len(node.outputs) != 1 and node.op != "Split"):
        return None
    parameters, children = found
    return [(Symbol(node.op, parameters, place), children) for place in range(len(node.outputs))]


def _constant(call: TypedNode) -> list[Term] | None:
    if call.node.op == "ConstantOfShape":
        shape, attribute = call.known_integers(0), call.node.attributes.get("value")
        if shape is None:
            return None
        dtype, number = ("float32", 0.0)
        if attribute is not None:
            single = constant(attribute.value)
            if single is None or isinstance(single.parameters[2], bytes):
                return None
            dtype, number = str(single.parameters[0]), single.parameters[2]  # type: ignore[assignment]
        return [(Symbol("Constant", (dtype, shape, number)), ())]
    attribute = call.node.attributes.get("value")
    symbol = constant(attribute.value) if attribute is not None and attribute.kind == "tensor" else None
    return None if symbol is None else [(symbol, ())]


def nodes_of(
    symbol: Symbol, children: tuple[str, ...], outputs: Mapping[int, str], opset: int, fresh: Callable[[str], str]
) -> tuple[tuple[Node, ...], dict[str, Tensor]]:
    """Return nodes and new initialisers that compute the `outputs` (place -> name) of a well-formed term.

    A Constant becomes an initialiser alone. `fresh` makes a new name from a hint. Raises RejectedDraft where `opset`
    (13 or later) cannot express the term.
    """
    if symbol.op == "Constant":
        return (), {outputs[0]: constant_tensor(symbol)}
    written, structural = _written(symbol.op, symbol.parameters, opset)
    initializers: dict[str, Tensor] = {}
    inputs = list(children)
    for hint, value in structural:
        inputs.append(fresh(hint))
        initializers[inputs[-1]] = value
    count = len(symbol.parameters[1]) if symbol.op == "Split" else 1  # type: ignore[arg-type]
    names = tuple(outputs[place] if place in outputs else fresh("unused") for place in range(count))
    return (Node(symbol.op, tuple(inputs), names, written),), initializers


@lru_cache(1 << 12)
def _written(
    op: str, parameters: tuple[Any, ...], opset: int
) -> tuple[Mapping[str, Attribute], tuple[tuple[str, Tensor], ...]]:
    """Return attributes and structural operands; cached, because few different ones are written."""
    if op not in WRITERS:
        return NO_ATTRIBUTES, ()
    written, structural = WRITERS[op](parameters, opset)
    values = [(hint, value if isinstance(value, Tensor) else integers(value)) for hint, value in structural]
    for _, value in values:
        value.array.flags.writeable = False
    return attributes(written), tuple(values)


def constant_tensor(symbol: Symbol) -> Tensor:
    """Return the value of a Constant symbol, with bfloat16 as 16-bit words, as in tensors."""
    dtype, shape, value = symbol.parameters
    array = constant_array(dtype, shape, value)  # type: ignore[arg-type]
    return Tensor(str(dtype), array.view("uint16") if dtype == "bfloat16" else array)
