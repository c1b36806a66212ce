"""Instances of ONNX as models of one node: correct, and without loss on the way there and back."""

from dataclasses import replace

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from miscompile.base.dtypes import BY_CODE
from miscompile.base.errors import ModelError
from miscompile.core.case import Case
from miscompile.core.tensor import Array, tensor
from miscompile.graph.check import check
from miscompile.graph.edges import captured, producers
from miscompile.graph.model import Graph, TensorType
from miscompile.graph.read import read
from miscompile.instances.code import content, decoded, encoded
from miscompile.instances.instance import Instance
from miscompile.instances.values import Drawn, Held, Made, Name, Value
from miscompile.producers.instances.onnx_model import UNDER_TEST, ConstantPolicy, node_instance, to_model, to_onnx_case
from miscompile.producers.instances.onnx_nodes import NodeHarvest, gather, gather_drawn
from miscompile.producers.instances.onnx_values import OPTIONAL, SEQUENCE, operand_type, type_value, value_graph

X = Held(tensor(np.arange(6, dtype=np.float32).reshape(2, 3)))
SHAPE = Held(tensor(np.array([3, 2], np.int64)))


def node(api: str, *inputs: Value, version: int = 18, results: int = 1, **kwargs: Value) -> Instance:
    return Instance("onnx", api, "node", kwargs=kwargs, inputs=inputs, version=version, results=(True,) * results)


def sequence(*items: Held) -> Made:
    return Made(SEQUENCE, (items, type_value(TensorType("float32", None))))


BODY = Made(
    "onnx.helper.make_graph",
    (
        (Made("onnx.helper.make_node", ("Add", ("around", "around"), ("z",)), {}),),
        "body",
        (),
        (Made("onnx.helper.make_value_info", ("z", type_value(TensorType("float32", (2, 3))))),),
    ),
)

KINDS = [
    node("Add", X, X),
    node("Reshape", X, SHAPE),
    node("Conv", Held(tensor(np.ones((1, 1, 4, 4), np.float32))), Held(tensor(np.ones((1, 1, 2, 2), np.float32))), None,
         pads=(0, 1, 0, 1), auto_pad="NOTSET"),
    node("Constant", value=X),
    node("LSTM", Held(tensor(np.ones((1, 1, 2), np.float32))), Held(tensor(np.ones((1, 4, 2), np.float32))),
         Held(tensor(np.ones((1, 4, 1), np.float32))), results=3, hidden_size=1, activations=("Relu", "Tanh", "Relu")),
    node("SequenceAt", sequence(X, X), Held(tensor(np.array(1, np.int64)))),
    node("SequenceInsert", sequence(), X),
    node("Optional", X),
    node("OptionalHasElement", Made(OPTIONAL, (type_value(TensorType("float32", (2,))),))),
    node("SplitToSequence", X, axis=0),
    node("ai.onnx.ml.Scaler", X, version=1, offset=(1.0, 2.0, 3.0), scale=(2.0,)),
    Instance("onnx", "If", "node", kwargs={"then_branch": BODY, "else_branch": BODY}, version=18, results=(True,),
             inputs=(Held(tensor(np.array(True))),), options={"around": X}),
]  # fmt: skip


def from_onnx_case(case: Case) -> Instance:
    """Return the instance that a case was made of: the node called `operator`, or the only one."""
    model = read(case.program.payload)
    [tested] = [one for one in model.graph.nodes if one.name == UNDER_TEST] or list(model.graph.nodes)
    known = {name: Held(value) for name, value in model.graph.initializers.items()}
    known.update({port.name: Held(value) for port, value in zip(case.program.inputs, case.feeds[0], strict=True)})
    around = {name for body in tested.subgraphs() for name in captured(body)}
    operands = {name: _operand(model.graph, name, known) for name in {*tested.inputs, *around} if name}
    found = node_instance(tested, operands, model.opsets.get(tested.domain, model.opset))
    return replace(found, source=str(case.recipe.get("source", "")), origin=str(case.recipe.get("origin", "")))


def _operand(graph: Graph, name: str, known: dict[str, Held]) -> Value:
    """Return the value of an operand, read back from the nodes that build it."""
    if name in known:
        return known[name]
    made = graph.nodes[producers(graph)[name]]
    parts = tuple(_operand(graph, part, known) for part in made.inputs)
    match made.op, parts:
        case "SequenceConstruct", (Held(first), *_):
            return Made(SEQUENCE, (parts, type_value(TensorType(first.dtype, None))))
        case "SequenceEmpty", ():
            dtype = BY_CODE[int(made.attributes["dtype"].value)].name
            return Made(SEQUENCE, ((), type_value(TensorType(dtype, None))))
        case "Optional", ():
            return Made(OPTIONAL, (type_value(made.attributes["type"].value),))
        case "Optional", (inner,):
            kind = operand_type(inner)
            assert kind is not None
            return Made(OPTIONAL, (type_value(kind), inner))
    raise AssertionError(f"{made.op} stands before the node under test")


@pytest.mark.parametrize("instance", KINDS, ids=lambda one: one.operator)
@pytest.mark.parametrize("constants", ["none", "known", "rest"])
def test_a_model_is_correct_and_reads_back(instance: Instance, constants: ConstantPolicy) -> None:
    case = to_onnx_case(instance, constants)
    check(case.program.payload)
    assert content(from_onnx_case(case)) == content(instance)
    assert decoded(encoded(instance)) == instance


@settings(max_examples=60)
@given(
    st.sampled_from(["Add", "Mul", "Max", "Concat"]),
    st.sampled_from(["float32", "float16", "int64", "bfloat16", "float64"]),
    st.lists(st.integers(0, 3), min_size=1, max_size=4),
    st.integers(0, 99),
)
def test_nothing_is_lost_of_operands(op: str, dtype: str, shape: list[int], seed: int) -> None:
    operands = [Held(Drawn(dtype, tuple(shape), 0, 5, seed + place).tensor()) for place in range(2)]
    instance = node(op, *operands, **({"axis": 0} if op == "Concat" else {}))
    case = to_onnx_case(instance)
    check(case.program.payload)
    assert content(from_onnx_case(case)) == content(instance)
    wanted = (shape[0] * 2, *shape[1:]) if op == "Concat" else tuple(shape)
    assert case.program.outputs[0].shape == wanted


def test_what_shapes_depend_on_becomes_constant_and_nothing_else() -> None:
    known, feed = to_model(node("Reshape", X, SHAPE), "known")
    assert [one.shape for one in feed] == [(2, 3)]
    assert known.graph.outputs[0].type == TensorType("float32", (3, 2))
    added, feed = to_model(node("Add", X, X), "known")
    assert not added.graph.initializers
    assert len(to_model(node("Add", X, X), "rest")[0].graph.initializers) == 1


def test_outputs_have_a_rank_and_no_sizes_that_only_the_feed_gives() -> None:
    model, _ = to_model(node("Reshape", X, SHAPE))
    assert model.graph.outputs[0].type == TensorType("float32", (None, None))


def test_an_operator_that_inference_does_not_know_the_rank_for_is_run() -> None:
    model, _ = to_model(node("NonMaxSuppression", Held(tensor(np.zeros((1, 2, 4), np.float32))),
                             Held(tensor(np.ones((1, 1, 2), np.float32)))))  # fmt: skip
    assert model.graph.outputs[0].type is not None


@pytest.mark.parametrize(
    "broken",
    [
        node("Reshape", X),
        node("NoSuchOperator", X),
        node("Add", X, 3.0),
        node("Concat", X, X),
        node("Relu", X, alpha={"a": 1}),
        node("Shape", X, start=1 << 63),
        node("Transpose", X, perm=(0, 1 << 70)),
        node("Transpose", X, perm=((0, 1),)),
        node("ConstantOfShape", SHAPE, value=([],)),
        node("Optional", type=Made("onnx.TypeProto.Tensor", (Name("dtype", "foo"), None))),
        node("Optional", type=Made("onnx.TypeProto.Tensor", (Name("dtype", "float32"), ([2],)))),
        node("Optional", type=Made("onnx.TypeProto.Tensor", (Name("dtype", "float32"), 2))),
        node("Constant", sparse_value=Made("onnx.SparseTensorProto", (X, SHAPE, ("a",)))),
        Instance("torch", "torch.add", "function", (X, X)),
    ],
    ids=lambda one: one.operator,
)
def test_what_is_no_node_is_refused(broken: Instance) -> None:
    with pytest.raises(ModelError):
        to_onnx_case(broken)


def test_bodies_are_data_and_refuse_what_is_none() -> None:
    assert [one.op for one in value_graph(BODY).nodes] == ["Add"]
    nodes, name, inputs, outputs = BODY.args
    bare = Made("onnx.helper.make_node", ("Add", (1, None), ("z",)), {})
    no_infos: tuple[Value, ...] = (1, {"a": 1}, (1,))
    no_tensors: tuple[Value, ...] = (1, (X,), {1: X}, {"a": 1})
    for wrong in (
        Made("onnx.helper.make_graph", (1,)),
        Made("onnx.helper.make_graph", ((bare,), name, inputs, outputs)),
        Made("onnx.helper.make_graph", (nodes, name, (1,), outputs)),
        *(replace(BODY, kwargs={"value_info": infos}) for infos in no_infos),
        *(replace(BODY, kwargs={"initializer": held}) for held in no_tensors),
        Name("dtype", "float32"),
        None,
    ):
        with pytest.raises(ModelError):
            value_graph(wrong)


def loop() -> onnx.ModelProto:
    """A loop whose body adds an outer value to what it carries."""
    ports = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("Add", ["carried", "outer"], ["next"]), helper.make_node("Identity", ["go"], ["on"])],
        "body",
        [
            ports("i", TensorProto.INT64, []),
            ports("go", TensorProto.BOOL, []),
            ports("carried", TensorProto.FLOAT, [2]),
        ],
        [ports("on", TensorProto.BOOL, []), ports("next", TensorProto.FLOAT, [2])],
    )
    nodes = [
        helper.make_node("Relu", ["x"], ["outer"]),
        helper.make_node("Loop", ["n", "begin", "x"], ["y"], body=body),
    ]
    inputs = [
        ports("x", TensorProto.FLOAT, [2]),
        ports("n", TensorProto.INT64, []),
        ports("begin", TensorProto.BOOL, []),
    ]
    graph = helper.make_graph(nodes, "g", inputs, [ports("y", TensorProto.FLOAT, [2])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


FEED: dict[str, Array] = {"x": np.array([-1.0, 2.0], np.float32), "n": np.array(2, np.int64), "begin": np.array(True)}


def test_every_node_is_gathered_with_the_values_that_reach_it() -> None:
    found = NodeHarvest()
    gather(read(loop()), FEED, "a test", found)
    by_name = {one.operator: one for one in found.instances}
    assert set(by_name) == {"Relu", "Loop", "Add", "Identity"}
    assert by_name["Loop"].options == {"outer": Held(tensor(np.array([0.0, 2.0], np.float32)))}
    assert by_name["Add"].inputs[0] == Held(tensor(FEED["x"]))  # the first round
    assert {one.origin for one in found.instances} == {"a test"}
    for one in found.instances:
        check(to_onnx_case(one).program.payload)


def test_a_node_that_nothing_runs_costs_only_what_depends_on_it() -> None:
    model = loop()
    model.opset_import.add(domain="foreign", version=1)
    model.graph.node.insert(0, helper.make_node("Secret", ["x"], ["s"], domain="foreign"))
    model.graph.node.append(helper.make_node("Neg", ["s"], ["lost"]))
    found = NodeHarvest()
    gather(read(model), FEED, "a test", found)
    assert {one.operator for one in found.instances} == {"Secret", "Relu", "Loop"}  # no bodies are seen then
    assert sum(found.lost.values()) == 1
    assert found.counts["nodes that the evaluator does not run"] == 1


def test_networks_without_weights_are_read_and_variances_stay_positive() -> None:
    ports = helper.make_tensor_value_info
    inputs = [ports("x", TensorProto.FLOAT, [1, 2, 3]), *(ports(name, TensorProto.FLOAT, [2]) for name in "sbmv")]
    nodes = [
        helper.make_node("BatchNormalization", ["x", "s", "b", "m", "v"], ["y"]),
        helper.make_node("BatchNormalization", ["y", "s", "b", "m", "held"], ["z"]),
    ]
    held = helper.make_tensor("held", TensorProto.FLOAT, [2], [1.0, 2.0])
    graph = helper.make_graph(nodes, "g", inputs, [ports("z", TensorProto.FLOAT, [1, 2, 3])], [held])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=10)
    found = NodeHarvest()
    gather_drawn(read(model), "a network", found)
    first, second = found.instances
    assert first.inputs[4] == Drawn("float32", (2,), 0.1)
    assert second.inputs[4] == Held(tensor(np.array([1.0, 2.0], np.float32)))
    assert not found.lost
