"""Validation of models against the rules of ONNX."""

from collections.abc import Iterable

import onnx
from onnx import defs

from miscompile.base.errors import ModelError
from miscompile.core.case import Dim
from miscompile.graph.careful import must_survive
from miscompile.graph.edges import defined, producers, reads
from miscompile.graph.emit import emit, model_proto
from miscompile.graph.model import (
    Graph,
    MapType,
    Model,
    Node,
    OptionalType,
    SequenceType,
    SparseTensorType,
    TensorType,
    ValueType,
)
from miscompile.graph.read import read
from miscompile.graph.typing import brief, inferred_types


def check(model: Model | bytes) -> None:
    """Raise ModelError, with one line that names the fault, unless `model` is a correct ONNX model.

    On top of onnx's full check (operators, attributes, types, single assignment) and strict shape inference with data
    propagation: operator sets must be ones that the installed onnx knows, names of values and nodes unique, nodes in
    topological order, and the declared types of inner values and outputs must agree with the types that inference
    finds without them.
    """
    data = model if isinstance(model, bytes) else emit(model)
    known = read(data) if isinstance(model, bytes) else model
    _check_opsets(known)
    _check_names(known.graph, frozenset(), "the graph")
    must_survive(lambda: onnx.checker.check_model(data, full_check=True))
    try:
        onnx.checker.check_model(data, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError, RuntimeError, ValueError) as error:
        raise ModelError(f"onnx rejects the model: {brief(error)}") from None
    _check_types(known)


def _check_opsets(model: Model) -> None:
    newest = {domain: span[1] for domain, span in defs.C.schema_version_map().items()}
    for domain, version in model.opsets.items():
        limit = newest.get("" if domain == "ai.onnx" else domain)
        if version < 1 or (limit is not None and version > limit):
            name = domain or "the standard domain"
            raise ModelError(f"operator set {version} of {name} is not known; the newest known is {limit}")
    if model.ir_version > onnx.IR_VERSION:
        raise ModelError(f"IR version {model.ir_version} is not known; the newest known is {onnx.IR_VERSION}")


def _check_names(graph: Graph, outer: frozenset[str], where: str) -> None:
    _unique((info.name for info in graph.inputs), f"inputs of {where}")
    _unique((info.name for info in graph.outputs), f"outputs of {where}")
    _unique((node.name for node in graph.nodes if node.name), f"nodes of {where}")
    made = [name for node in graph.nodes for name in node.outputs if name]
    _unique((*made, *dict.fromkeys((*graph.initializers, *(info.name for info in graph.inputs)))), f"values of {where}")
    own = defined(graph)
    for name in sorted(own & outer):
        raise ModelError(f"{name!r} is defined in {where} and again outside it")
    _check_order(graph, outer | own, where)
    for node in graph.nodes:
        for body in node.subgraphs():
            _check_names(body, outer | own, f"a body of {_title(node)}")


def _check_order(graph: Graph, visible: frozenset[str], where: str) -> None:
    made = producers(graph)
    for place, node in enumerate(graph.nodes):
        for name in reads(node):
            if name not in visible:
                raise ModelError(f"{_title(node)} in {where} uses {name!r}, which nothing defines")
            if made.get(name, -1) >= place:
                raise ModelError(f"{_title(node)} in {where} uses {name!r} before it is made")
    for info in graph.outputs:
        if info.name not in visible:
            raise ModelError(f"output {info.name!r} of {where} is not defined by anything")


def _unique(names: Iterable[str], what: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ModelError(f"two {what} are named {name!r}")
        seen.add(name)


def _title(node: Node) -> str:
    return f"{node.op} {node.name!r}" if node.name else node.op


def _check_types(model: Model) -> None:
    proto = model_proto(model)
    del proto.graph.value_info[:]
    for output in proto.graph.output:
        output.ClearField("type")
    found = inferred_types(proto)
    declared = [*model.graph.types.items(), *((info.name, info.type) for info in model.graph.outputs)]
    for name, known in declared:
        inferred = found.get(name)
        if known is not None and inferred is not None and not agree(known, inferred):
            raise ModelError(f"{name!r} is declared as {known} but inference finds {inferred}")


def agree(first: ValueType, second: ValueType) -> bool:
    """Tell whether one value can have both types: same kinds and dtypes, no two sizes that contradict each other."""
    match first, second:
        case (TensorType(one, shape), TensorType(other, other_shape)) | (
            SparseTensorType(one, shape),
            SparseTensorType(other, other_shape),
        ):
            return one == other and _shapes_agree(shape, other_shape)
        case (SequenceType(one_element), SequenceType(other_element)) | (
            OptionalType(one_element),
            OptionalType(other_element),
        ):
            return agree(one_element, other_element)
        case MapType(key, value), MapType(other_key, other_value):
            return key == other_key and agree(value, other_value)
        case _:
            return False


def _shapes_agree(first: tuple[Dim, ...] | None, second: tuple[Dim, ...] | None) -> bool:
    if first is None or second is None:
        return True
    pairs = zip(first, second, strict=False)
    return len(first) == len(second) and not any(
        isinstance(one, int) and isinstance(other, int) and one != other for one, other in pairs
    )
