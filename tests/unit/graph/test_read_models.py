"""Reading what the onnx cases lack: packed and typed data of every type, external data, broken input."""

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from graph_strategies import any_models
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from miscompile.base.dtypes import BY_CODE, DTYPES
from miscompile.base.errors import ModelError
from miscompile.core.tensor import Tensor
from miscompile.graph.check import check
from miscompile.graph.decode import decode_tensor
from miscompile.graph.emit import emit, tensor_proto
from miscompile.graph.equality import difference
from miscompile.graph.model import Attribute, Graph, Model, TensorType
from miscompile.graph.read import load, mended, read
from miscompile.graph.text.printer import print_model

NUMERIC = [dtype for dtype in DTYPES if dtype != "string"]


def _empty(**fields: object) -> onnx.ModelProto:
    return helper.make_model(helper.make_graph([], "g", [], [], **fields))


@pytest.mark.parametrize("dtype", NUMERIC)
def test_raw_data_of_every_type_agrees_with_onnx(dtype: str) -> None:
    info = DTYPES[dtype]
    words = np.arange(7 * info.storage.itemsize, dtype=np.uint8)
    array = words.view(info.storage) if info.bits >= 8 else words[:7] & np.uint8((1 << info.bits) - 1)
    array = array > 3 if dtype == "bool" else array
    value = Tensor(dtype, array.reshape(7, 1))
    proto = tensor_proto(value)
    assert decode_tensor(proto).same(value)
    theirs = numpy_helper.to_array(proto)
    assert theirs.shape == (7, 1)
    if info.bits >= 8:
        assert theirs.tobytes() == value.array.tobytes()
    else:
        kept = np.uint8((1 << info.bits) - 1)
        assert (theirs.view(np.uint8) & kept == value.array).all()


@pytest.mark.parametrize("dtype", NUMERIC)
def test_typed_fields_of_every_type_agree_with_onnx(dtype: str) -> None:
    code = DTYPES[dtype].code
    with np.errstate(all="ignore"):
        proto = helper.make_tensor("t", code, [5], np.array([0, 1, 1, 0, 1], helper.tensor_dtype_to_np_dtype(code)))
    if proto.HasField("raw_data"):
        pytest.skip("onnx writes this type as raw data")
    theirs = numpy_helper.to_array(proto)
    ours = decode_tensor(proto)
    assert ours.dtype == dtype
    assert numpy_helper.to_array(tensor_proto(ours)).tobytes() == theirs.tobytes()


def test_narrow_types_share_bytes_from_the_lowest_bits() -> None:
    assert tensor_proto(Tensor("int4", np.array([1, 15, 7], np.uint8))).raw_data == bytes([0xF1, 0x07])
    assert tensor_proto(Tensor("uint2", np.array([1, 2, 3, 0, 2], np.uint8))).raw_data == bytes([0b00111001, 0b10])
    six = tensor_proto(Tensor("float6e2m3", np.array([1, 2, 3, 4, 5], np.uint8)))
    assert six.raw_data == bytes([1 | (2 & 3) << 6, (2 >> 2) | (3 & 15) << 4, (3 >> 4) | 4 << 2, 5])


def test_bfloat16_lies_in_words() -> None:
    array = np.array([1.5, -2.0], ml_dtypes.bfloat16)
    proto = helper.make_tensor("b", TensorProto.BFLOAT16, [2], array)
    value = decode_tensor(proto)
    assert value.array.dtype == np.uint16
    assert value.numbers().tolist() == [1.5, -2.0]


def test_undecodable_strings_survive() -> None:
    proto = helper.make_tensor("s", TensorProto.STRING, [2], [b"\xff\xfe", "é".encode()])
    value = decode_tensor(proto)
    assert list(tensor_proto(value).string_data) == [b"\xff\xfe", "é".encode()]


@given(any_models())
@settings(max_examples=80)
def test_reading_undoes_emission(model: Model) -> None:
    assert difference(model, read(emit(model))) is None


def test_attributes_without_a_kind_are_those_of_the_first_ir_version() -> None:
    proto = _empty()
    attribute = proto.graph.node.add(op_type="Conv").attribute.add()
    attribute.name = "kernel_shape"
    attribute.ints.extend([3, 3])
    assert read(proto).graph.nodes[0].attributes == {"kernel_shape": Attribute("ints", (3, 3))}


def test_values_without_a_type_have_none() -> None:
    proto = _empty()
    proto.graph.input.add().name = "x"
    assert read(proto).graph.inputs[0].type is None


def test_external_data_are_read_from_beside_the_model(tmp_path: Path) -> None:
    weight = np.arange(600, dtype=np.float32).reshape(20, 30)
    proto = _empty(initializer=[numpy_helper.from_array(weight, "w"), numpy_helper.from_array(weight + 1, "u")])
    path = tmp_path / "m.onnx"
    onnx.save_model(proto, path, save_as_external_data=True, location="m.data", size_threshold=0)
    found = load(path).graph.initializers
    assert (found["w"].array == weight).all()
    assert (found["u"].array == weight + 1).all()
    with pytest.raises(ModelError, match=r"tensor 'w': its data lie in the file 'm\.data'; load the model"):
        read(path.read_bytes())
    (tmp_path / "m.data").unlink()
    with pytest.raises(ModelError, match="cannot be read"):
        load(path)


@pytest.mark.parametrize("location", ["../secret", "/etc/passwd", ""])
def test_external_data_outside_the_folder_are_refused(tmp_path: Path, location: str) -> None:
    proto = _empty()
    tensor = proto.graph.initializer.add(name="w", data_type=1, dims=[1], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=location)
    path = tmp_path / "m.onnx"
    path.write_bytes(proto.SerializeToString())
    with pytest.raises(ModelError, match="not inside the model's folder"):
        load(path)


def _tensor(**fields: object) -> onnx.ModelProto:
    proto = _empty()
    proto.graph.initializer.add(name="w", **fields)
    return proto


BROKEN = {
    "no ONNX model": b"hello, this is no model",
    "there is no graph": b"",
    "need 8 bytes of data, not 3": _tensor(data_type=1, dims=[2], raw_data=b"abc"),
    "asks for 2 entries of data, but there are 1": _tensor(data_type=7, dims=[2], int64_data=[4]),
    "asks for 1099511627776 entries": _tensor(data_type=1, dims=[1 << 40]),
    "negative size": _tensor(data_type=1, dims=[-1]),
    "element type 99": _tensor(data_type=99, dims=[0]),
    "element type 0": _tensor(data_type=0, dims=[0]),
}


@pytest.mark.parametrize(("message", "data"), BROKEN.items(), ids=list(BROKEN))
def test_broken_models_give_one_clear_line(message: str, data: bytes | onnx.ModelProto) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        read(data)
    assert "\n" not in str(caught.value)


GOOD = _tensor(data_type=7, dims=[2], int64_data=[4, 5])
GOOD.graph.node.add(op_type="Neg", input=["w"], output=["y"], name="some node")
GOOD.graph.output.add(name="y").type.tensor_type.elem_type = 7


@given(st.data())
@settings(max_examples=300)
def test_damaged_bytes_are_read_or_refused_cleanly(data: st.DataObject) -> None:
    damaged = bytearray(GOOD.SerializeToString())
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    fault = ""
    try:
        print_model(read(bytes(damaged)))
    except ModelError as error:
        fault = str(error)
    assert "\n" not in fault


def test_names_must_be_utf8() -> None:
    damaged = GOOD.SerializeToString().replace(b"some node", b"some\xffnode")
    with pytest.raises(ModelError, match="is not UTF-8"):
        read(damaged)


def test_names_that_must_be_unique() -> None:
    twice = numpy_helper.from_array(np.zeros(1, np.float32), "w")
    with pytest.raises(ModelError, match="two initializers are named 'w'"):
        read(_empty(initializer=[twice, twice]))
    attribute = helper.make_attribute("axis", 1)
    proto = _empty()
    proto.graph.node.add(op_type="Concat", attribute=[attribute, attribute])
    with pytest.raises(ModelError, match="Concat has two attributes of one name"):
        read(proto)
    proto = _empty()
    proto.opset_import.add(domain="", version=3)
    with pytest.raises(ModelError, match="imported in two versions"):
        read(proto)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"cannot read model .*none\.onnx"):
        load(tmp_path / "none.onnx")


def test_every_element_type_of_onnx_is_known() -> None:
    codes = set(TensorProto.DataType.values()) - {TensorProto.UNDEFINED}
    assert codes <= set(BY_CODE)


def test_a_scalar_differs_from_an_unknown_rank() -> None:
    graph = Graph("g", (), (), (), types={"a": TensorType("float32", ()), "b": TensorType("float32", None)})
    assert read(emit(Model(graph, {"": 21}))).graph.types == graph.types


def test_negative_sizes_in_a_file_are_unknown(tmp_path: Path) -> None:
    values = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [-1, 3]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", values[:1], values[1:])
    data = helper.make_model(graph).SerializeToString()
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    assert load(path).graph.inputs[0].type == TensorType("float32", (None, 3))
    assert read(data).graph.inputs[0].type == TensorType("float32", (-1, 3)), "programs in memory are kept as they are"
    whole = mended(data)
    assert mended(whole) is whole


def test_repeated_names_of_nodes_in_a_file_are_forgotten(tmp_path: Path) -> None:
    inner = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["a"], name="n"), helper.make_node("Abs", ["a"], ["b"], name="n")],
        "inner",
        [],
        [helper.make_tensor_value_info("b", TensorProto.FLOAT, [2])],
    )
    nodes = [
        helper.make_node("If", ["c"], ["s"], name="n", then_branch=inner, else_branch=inner),
        helper.make_node("Relu", ["s"], ["y"], name="n"),
    ]
    inputs = [
        helper.make_tensor_value_info("c", TensorProto.BOOL, []),
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [2]),
    ]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])])
    place = tmp_path / "m.onnx"
    place.write_bytes(helper.make_model(graph).SerializeToString())
    model = load(place)
    check(model)
    assert [node.name for node in model.graph.nodes] == ["n", ""]
    assert [node.name for body in model.graph.nodes[0].subgraphs() for node in body.nodes] == ["n", "", "n", ""]
