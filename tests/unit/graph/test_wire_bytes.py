"""Bytes written by hand are those that protobuf writes, and what is uncommon goes the long way."""

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
from miscompile.graph.emit import emit, model_proto, node_proto, tensor_proto, type_proto
from miscompile.graph.infer import infer, infer_call
from miscompile.graph.model import Attribute, Function, Graph, Model, Node, TensorType, ValueInfo, ValueType
from miscompile.graph.packing import is_packed
from miscompile.graph.read import read
from miscompile.ops.support import Support
from miscompile.producers import finish
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.strict import Strict


@given(any_models())
def test_any_model_parses_back_to_its_proto(model: Model) -> None:
    expected = model_proto(model)
    assert emit(model) == expected.SerializeToString()
    written = wire.model_bytes(model)
    assert written is None or onnx.ModelProto.FromString(written) == expected


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=300), attributes())
def test_a_node_is_what_protobuf_writes(name: str, attribute: Attribute) -> None:
    node = Node("Op", ("a", "", name), (name,), {"given": attribute}, "a.domain", name, name)
    written = wire.node_bytes(node)
    if attribute.kind in ("int", "ints", "float", "floats", "string", "strings"):
        assert written is not None
    assert written is None or written == node_proto(node).SerializeToString()


@given(tensors(), st.text(st.characters(exclude_categories=["Cs"]), max_size=9))
def test_a_tensor_is_what_protobuf_writes(value: Tensor, name: str) -> None:
    written = wire.tensor_bytes(value, name)
    assert written is None or written == tensor_proto(value, name).SerializeToString()


@given(value_types)
def test_a_type_is_what_protobuf_writes(value_type: ValueType) -> None:
    written = wire.type_bytes(value_type)
    assert (written is not None) == isinstance(value_type, TensorType)
    assert written is None or written == type_proto(value_type).SerializeToString()


@pytest.mark.parametrize("value", [0.0, -0.0, math.inf, -math.inf, 1.5])
def test_the_sign_of_zero_is_kept(value: float) -> None:
    for other in (0.0, -0.0):
        wire.attribute_field("alpha", Attribute("float", other))
    node = Node("Elu", ("x",), ("y",), {"alpha": Attribute("float", value)})
    assert wire.node_bytes(node) == node_proto(node).SerializeToString()


def test_large_constants_and_long_models_have_long_lengths() -> None:
    values = {f"c{place}": Tensor("float32", np.arange(place, dtype=np.float32)) for place in (0, 31, 32, 4096, 40000)}
    info = ValueInfo("y", TensorType("float32", (40000,)))
    model = Model(Graph("main", (), (info,), (Node("Identity", ("c40000",), ("y",)),), values), {"": 18})
    assert wire.model_bytes(model) == model_proto(model).SerializeToString()


def test_what_is_uncommon_is_left_to_protobuf() -> None:
    body = Attribute("graph", Graph("body", (), (), ()))
    branch = Node("If", ("c",), ("y",), {"then_branch": body})
    assert wire.node_bytes(branch) is None
    assert wire.node_bytes(Node("Op", (), (), {"a": Attribute("float", 1e39)})) is None
    assert wire.tensor_bytes(Tensor("int4", np.array([1], np.uint8))) is None
    functions = (Function("d", "f", (), (), (), {"": 18}),)
    assert wire.model_bytes(Model(Graph("main", (), (), ()), {"": 18}, functions)) is None


def is_uncommon(model: Model) -> bool:
    """Tell whether a model has something that no short form is kept for: packed elements, attributes that are types."""
    given = [one for node in model.graph.nodes for one in node.attributes.values()]
    constants = [*(one.value for one in given if one.kind == "tensor"), *model.graph.initializers.values()]
    return any(is_packed(value.dtype) for value in constants) or any(one.kind == "type" for one in given)


def test_generated_models_take_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(model: Model) -> bytes:
        assert is_uncommon(model), "a generated model is emitted the long way"
        return emit(model)

    monkeypatch.setattr(finish, "emit", refuse)
    producer = Strict(GeneratorOptions(dtypes=(*NUMBERS, "bool"), control=0.0), Support(open=True))
    for index in range(60):
        payload = producer.propose(stream(1, "wire", index)).program.payload
        assert onnx.ModelProto.FromString(payload).SerializeToString() == payload
        model = read(payload)
        assert is_uncommon(model) or wire.model_bytes(model) is not None


def test_calls_are_inferred_as_nodes_are() -> None:
    x, axes = TensorType("float32", (2, 3)), Tensor("int64", np.array([1], np.int64))
    attributes = {"keepdims": Attribute("int", 0)}
    types = {"x": x, "axes": TensorType("int64", (1,))}
    node = Node("ReduceSum", ("x", "axes"), ("y",), attributes)
    expected = infer(node, types, 18, {"axes": axes})
    assert expected == (TensorType("float32", (2,)),)
    assert infer_call("ReduceSum", 18, attributes, (x, types["axes"]), 1, {1: axes}) == expected
    assert infer_call("Clip", 18, {}, (x, None, TensorType("float32", ())), 1) == (x,)
