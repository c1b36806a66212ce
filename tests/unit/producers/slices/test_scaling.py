"""Slices of large models get smaller sizes that still agree, and stay as they are where none does."""

import random
from dataclasses import replace

import numpy as np
from block_models import Writer
from onnx import TensorProto, helper, numpy_helper

from miscompile.graph.model import Model, TensorType, ValueInfo
from miscompile.graph.read import read
from miscompile.graph.typing import static_types
from miscompile.ops.seed import Seed
from miscompile.producers.slices.observation import ran
from miscompile.producers.slices.scaling import ROOM, filled, is_large, scaled


def convolutions(side: int = 56, channels: int = 64) -> Seed:
    """A depthwise convolution and a pointwise one, with a reshape that merges the sides."""
    w = Writer(4)
    deep = w.node("Conv", "x", w.weight(channels, 1, 3, 3), w.weight(channels), pads=[1, 1, 1, 1], group=channels)
    wide = w.node("Relu", w.node("Conv", deep, w.weight(2 * channels, channels, 1, 1)))
    out = w.node("Concat", wide, deep, axis=1)
    return seed_of(w.model({"x": (1, channels, side, side)}, out, rank=4))


def seed_of(model: Model) -> Seed:
    """The whole model as a slice, with the types of all values."""
    types = static_types(model)
    outputs = tuple(ValueInfo(info.name, types[info.name]) for info in model.graph.outputs)
    made = {name for node in model.graph.nodes for name in node.outputs} - {info.name for info in outputs}
    inner = {name: types[name] for name in made}
    return Seed("net/1", replace(model.graph, outputs=outputs, types=inner), model.opset)


def test_all_sizes_shrink_together() -> None:
    (small,) = scaled([convolutions()], random.Random(0), 600)
    assert not is_large(small)
    info = small.graph.inputs[0].type
    assert isinstance(info, TensorType)
    assert info.shape is not None
    count = info.shape[1]
    assert isinstance(count, int)
    group = next(node.attributes["group"].value for node in small.graph.nodes if "group" in node.attributes)
    assert group == count < 64
    assert [node.op for node in small.graph.nodes] == ["Conv", "Conv", "Relu", "Concat"]


def test_weights_keep_their_elements() -> None:
    before = convolutions()
    (small,) = scaled([before], random.Random(0), 600)
    for name, value in small.graph.initializers.items():
        kept = before.graph.initializers[name].array[tuple(slice(0, size) for size in value.shape)]
        assert np.array_equal(value.array, kept)


def test_a_slice_that_no_size_fits_stays() -> None:
    w = Writer(5)
    flat = w.node("Reshape", "x", w.constant(np.array([1, 64, 56 * 56], np.int64)))
    model = w.model({"x": (1, 64, 56, 56)}, w.node("Transpose", w.node("Relu", flat), perm=[0, 2, 1]), rank=3)
    seed = seed_of(model)
    assert is_large(seed)
    assert scaled([seed], random.Random(0), 600) == [seed]


def test_small_slices_stay() -> None:
    seed = convolutions(side=4, channels=8)
    assert scaled([seed], random.Random(0), 600) == [seed]


def test_repeated_weights_are_drawn() -> None:
    shape = helper.make_tensor("s", TensorProto.INT64, [2], [3, 4])
    value = numpy_helper.from_array(np.array([0.02], np.float32))
    nodes = [
        helper.make_node("ConstantOfShape", ["s"], ["w"], value=value),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
    ]
    infos = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, size) for name, size in (("x", [2, 3]), ("y", [2, 4]))
    ]
    graph = helper.make_graph(nodes, "g", infos[:1], infos[1:], [shape])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    model = read(proto.SerializeToString())
    drawn = filled(Seed("net/1", model.graph, model.opset), random.Random(0))
    assert [node.op for node in drawn.graph.nodes] == ["MatMul"]
    weight = drawn.graph.initializers["w"].array
    assert weight.shape == (3, 4)
    assert len(np.unique(weight)) == 12
    assert ((weight > 0.005) & (weight < 0.04)).all()
    assert "s" not in drawn.graph.initializers


def test_values_that_cannot_be_computed_are_not_among_those_that_ran() -> None:
    w = Writer(6)
    good = w.node("Relu", "x")
    bad = w.node("MatMul", "x", w.weight(5, 5))
    found = ran(w.model({"x": (2, 3)}, good, bad), random.Random(0), 600)
    assert good in found
    assert bad not in found
    assert ROOM > 1
