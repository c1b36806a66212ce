"""Bytes written by hand are those that protobuf writes, and read back to an equal model."""

import math

import numpy as np
import onnx
import pytest
from graph_strategies import any_models, attributes, tensors, value_types
from hypothesis import given
from hypothesis import strategies as st

from miscompile.base.dtypes import NUMBERS
from miscompile.base.rng import stream
from miscompile.core.tensor import Tensor
from miscompile.graph import wire
from miscompile.graph.decode import decode_tensor
from miscompile.graph.emit import emit
from miscompile.graph.equality import difference
from miscompile.graph.infer import infer, infer_call
from miscompile.graph.model import Attribute, Graph, Model, Node, TensorType, ValueInfo, ValueType
from miscompile.graph.read import read, read_type
from miscompile.ops.support import Support
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.strict import Strict


@given(any_models())
def test_any_model_is_what_protobuf_writes(model: Model) -> None:
    written = emit(model)
    assert onnx.ModelProto.FromString(written).SerializeToString() == written
    assert difference(read(written), model) is None


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=300), attributes())
def test_a_node_is_what_protobuf_writes(name: str, attribute: Attribute) -> None:
    node = Node("Op", ("a", "", name), (name,), {"given": attribute}, "a.domain", name, name)
    written = wire.node_bytes(node)
    assert onnx.NodeProto.FromString(written).SerializeToString() == written
    graph = Graph("main", (), (), (node,))
    assert difference(read(emit(Model(graph, {"": 18}))).graph, graph) is None


@given(tensors(), st.text(st.characters(exclude_categories=["Cs"]), max_size=9))
def test_a_tensor_is_what_protobuf_writes(value: Tensor, name: str) -> None:
    written = wire.tensor_bytes(value, name)
    proto = onnx.TensorProto.FromString(written)
    assert proto.SerializeToString() == written
    assert proto.name == name
    assert decode_tensor(proto).same(value)


@given(value_types)
def test_a_type_is_what_protobuf_writes(value_type: ValueType) -> None:
    written = wire.type_bytes(value_type)
    proto = onnx.TypeProto.FromString(written)
    assert proto.SerializeToString() == written
    assert read_type(proto) == value_type


@pytest.mark.parametrize("value", [0.0, -0.0, math.inf, -math.inf, 1.5])
def test_the_sign_of_zero_is_kept(value: float) -> None:
    for other in (0.0, -0.0):
        wire.attribute_field("alpha", Attribute("float", other))
    node = Node("Elu", ("x",), ("y",), {"alpha": Attribute("float", value)})
    found = onnx.NodeProto.FromString(wire.node_bytes(node)).attribute[0].f
    assert (found, math.copysign(1, found)) == (value, math.copysign(1, value))


def test_large_constants_and_long_models_have_long_lengths() -> None:
    values = {f"c{place}": Tensor("float32", np.arange(place, dtype=np.float32)) for place in (0, 31, 32, 4096, 40000)}
    info = ValueInfo("y", TensorType("float32", (40000,)))
    model = Model(Graph("main", (), (info,), (Node("Identity", ("c40000",), ("y",)),), values), {"": 18})
    written = emit(model)
    assert onnx.ModelProto.FromString(written).SerializeToString() == written
    assert difference(read(written), model) is None


def test_an_integer_of_more_than_64_bits_is_refused() -> None:
    for attribute in (Attribute("int", 1 << 63), Attribute("ints", (0, -(1 << 63) - 1))):
        with pytest.raises(ValueError, match="does not fit in 64 bits"):
            wire.node_bytes(Node("Op", (), (), {"a": attribute}))


def test_generated_models_are_what_protobuf_writes() -> None:
    producer = Strict(GeneratorOptions(dtypes=(*NUMBERS, "bool"), control=0.0), Support(open=True))
    for index in range(60):
        payload = producer.propose(stream(1, "wire", index)).program.payload
        assert onnx.ModelProto.FromString(payload).SerializeToString() == payload
        assert emit(read(payload)) == payload


def test_calls_are_inferred_as_nodes_are() -> None:
    x, axes = TensorType("float32", (2, 3)), Tensor("int64", np.array([1], np.int64))
    attributes = {"keepdims": Attribute("int", 0)}
    types = {"x": x, "axes": TensorType("int64", (1,))}
    node = Node("ReduceSum", ("x", "axes"), ("y",), attributes)
    expected = infer(node, types, 18, {"axes": axes})
    assert expected == (TensorType("float32", (2,)),)
    assert infer_call("ReduceSum", 18, attributes, (x, types["axes"]), 1, {1: axes}) == expected
    assert infer_call("Clip", 18, {}, (x, None, TensorType("float32", ())), 1) == (x,)
