"""Every node of a model as an instance, with the values that reach it when the model runs on its test's inputs.

The values are those of onnx's reference evaluator. Nodes of bodies (If, Loop, Scan) get the values of their first
iteration. Where the evaluator cannot run the model as a whole, it runs node by node, and only nodes that depend on one
that it cannot run are lost. Models without their weights are read without running, with drawn tensors.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import onnx

from miscompile.base.errors import ModelError
from miscompile.graph.edges import captured
from miscompile.graph.emit import model_proto
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo, ValueType
from miscompile.graph.read import read
from miscompile.graph.typing import value_types
from miscompile.instances.instance import Instance
from miscompile.instances.values import Drawn, Held, Value
from miscompile.ops.definitions.evaluator import DefinedEvaluator
from miscompile.producers.instances.evaluation import evaluated
from miscompile.producers.instances.onnx_model import node_instance, split_api
from miscompile.producers.instances.onnx_values import array_value, schema_of, to_array

LARGEST = 1 << 20
"""Elements of a tensor that an instance holds or draws at most."""


@dataclass(slots=True)
class NodeHarvest:
    """The gathered instances, and the numbers of nodes met and lost, by reason."""

    instances: list[Instance] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)


def gather(model: Model, feed: Mapping[str, Any], origin: str, into: NodeHarvest) -> None:
    """Add an instance of every node of `model`; `feed` holds its inputs, by name, as the evaluator takes them."""
    into.counts["models"] += 1
    types = _types(model)
    scopes = _whole(model, feed)
    if scopes is None:
        into.counts["models run node by node"] += 1
        scopes = [(model.graph, _piecewise(model, feed, into))]
    for depth, (graph, values) in enumerate(scopes):
        known = types if depth == 0 else {info.name: info.type for info in graph.inputs if info.type is not None}
        for node in graph.nodes:
            into.counts["nodes" if depth == 0 else "nodes of bodies"] += 1
            try:
                operands = {name: _value(name, values, known) for name in _reads(node)}
                found = node_instance(node, operands, model.opsets.get(node.domain, model.opset))
            except ModelError as error:
                into.lost[str(error).partition("'")[0][:60].strip()] += 1
                continue
            into.instances.append(replace(found, source="tests", origin=origin))


def _reads(node: Node) -> list[str]:
    names = {name for body in node.subgraphs() for name in captured(body)}
    return [name for name in (*node.inputs, *sorted(names)) if name]


def _value(name: str, values: Mapping[str, Any], types: Mapping[str, ValueType]) -> Value:
    if name not in values:
        raise ModelError("an operand whose value is not known")
    found = array_value(values[name], types.get(name))
    if isinstance(found, Held) and found.tensor.array.size > LARGEST:
        raise ModelError("a tensor that is too large to keep")
    return found


def _types(model: Model) -> dict[str, ValueType]:
    try:
        return value_types(model, strict=False)
    except ModelError:
        return {info.name: info.type for info in model.graph.inputs if info.type is not None}


def _whole(model: Model, feed: Mapping[str, Any]) -> list[tuple[Graph, dict[str, Any]]] | None:
    """Return the main graph and each body with the values of its first run; None when the evaluator refuses."""
    seen: dict[int, tuple[DefinedEvaluator, dict[str, Any]]] = {}

    class Watching(DefinedEvaluator):
        def run(self, output_names: Any, feed_inputs: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            kwargs.pop("intermediate", None)
            results = super().run(output_names, feed_inputs, *args, intermediate=True, **kwargs)
            seen.setdefault(id(self), (self, results))
            return [results[name] for name in (output_names or self.output_names)]

    try:
        Watching(model_proto(model)).run(None, dict(feed))
    except Exception:  # noqa: BLE001 - whatever it raises, the caller runs the nodes one by one and counts the model
        return None
    scopes = [(model.graph, values) for one, values in seen.values() if isinstance(one.proto_, onnx.ModelProto)]
    for one, values in seen.values():
        if isinstance(one.proto_, onnx.GraphProto):
            wrapped = onnx.ModelProto(ir_version=model.ir_version)
            wrapped.graph.CopyFrom(one.proto_)
            scopes.append((read(wrapped).graph, values))
    return scopes


def _piecewise(model: Model, feed: Mapping[str, Any], into: NodeHarvest) -> dict[str, Any]:
    known: dict[str, Any] = {name: to_array(value) for name, value in model.graph.initializers.items()}
    known.update(feed)
    for node in model.graph.nodes:
        used = dict.fromkeys(_reads(node))
        names = tuple(ValueInfo(name, None) for name in node.outputs if name)
        if not all(name in known for name in used):
            continue
        inputs = tuple(ValueInfo(name, None) for name in used)
        alone = replace(model, graph=Graph("node", inputs, names, (node,)))
        try:
            known.update(evaluated(alone, {name: known[name] for name in used}))
        except ModelError:
            into.counts["nodes that the evaluator does not run"] += 1
    return known


def gather_drawn(model: Model, origin: str, into: NodeHarvest) -> None:
    """Add an instance of every node without running the model: tensors are drawn, small constants kept.

    For networks without their weights; the shapes come from onnx's shape inference.
    """
    into.counts["models read without running"] += 1
    types, kept = _types(model), dict(model.graph.initializers)
    for node in model.graph.nodes:
        into.counts["nodes"] += 1
        try:
            operands: dict[str, Value] = {
                name: Held(kept[name]) if name in kept and kept[name].array.size <= 64 else _drawn(types.get(name))
                for name in _reads(node)
            }
            variance = operands[node.inputs[4]] if node.op == "BatchNormalization" else None
            if isinstance(variance, Drawn):
                operands[node.inputs[4]] = replace(variance, low=0.1)
            found = node_instance(node, operands, model.opsets.get(node.domain, model.opset))
        except ModelError as error:
            into.lost[str(error).partition("'")[0][:60].strip()] += 1
            continue
        into.instances.append(replace(found, source="tests", origin=origin))


def _drawn(kind: ValueType | None) -> Drawn:
    if not isinstance(kind, TensorType) or kind.shape is None or kind.dtype not in ("float32", "float16", "float64"):
        raise ModelError("an operand whose value is not known")
    shape = tuple(size for size in kind.shape if isinstance(size, int))
    if len(shape) < len(kind.shape):
        raise ModelError("an operand whose shape is not known")
    if math.prod(shape) > LARGEST:
        raise ModelError("a tensor that is too large to keep")
    return Drawn(kind.dtype, shape)


def operators(instances: list[Instance]) -> Iterator[tuple[str, int]]:
    """Yield operator and operator set of each instance's schema, with repetition."""
    for instance in instances:
        domain, op = split_api(instance.api)
        schema = schema_of(op, instance.version, domain)
        yield instance.api, int(schema.since_version) if schema else instance.version
