"""Noise in quantised chains: a step more or less is allowed whatever the granularity, and two are not."""

import numpy as np
import pytest
from onnx import checker, load_model_from_string
from onnx.reference import ReferenceEvaluator

from miscompile.core.case import Case
from miscompile.core.outcome import Values
from miscompile.core.tensor import Tensor, tensor
from miscompile.graph.attributes import attributes
from miscompile.graph.emit import to_program
from miscompile.graph.foreign import from_foreign, to_foreign
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.graph.read import read
from miscompile.oracles.instrumentation import instrument
from miscompile.oracles.montecarlo import THRESHOLD, judge_noise, noisy


def chain(scale: Tensor, zero: Tensor, axis: int) -> Case:
    """A product, quantised and dequantised."""
    x = tensor(np.linspace(-3, 3, 12).reshape(3, 4), "float32")
    steps = attributes({"axis": axis})
    graph = Graph(
        "g",
        (ValueInfo("x", TensorType("float32", (3, 4))),),
        (ValueInfo("y", TensorType("float32", (3, 4))),),
        (
            Node("Mul", ("x", "x"), ("m",)),
            Node("QuantizeLinear", ("m", "s", "z"), ("q",), steps),
            Node("DequantizeLinear", ("q", "s", "z"), ("y",), steps),
        ),
        {"s": scale, "z": zero},
    )
    return Case(to_program(Model(graph, {"": 21}, ir_version=10)), ((x,),))


def evaluate(case: Case) -> Values:
    model = load_model_from_string(case.program.payload)
    checker.check_model(model, full_check=True)
    session = ReferenceEvaluator(model)
    rows = []
    for feed in case.feeds:
        given = {port.name: to_foreign(value) for port, value in zip(case.program.inputs, feed, strict=True)}
        found = session.run([port.name for port in case.program.outputs], given)
        rows.append(tuple(from_foreign(np.asarray(one)) for one in found))
    return Values(tuple(rows))


PER_TENSOR = (tensor(np.array(0.5), "float32"), tensor(np.array(3), "int8"), 1)
PER_COLUMN = (tensor(np.array([0.5, 0.25, 1.0, 0.125]), "float32"), tensor(np.zeros(4, np.int64), "int8"), 1)
PER_ROW = (tensor(np.array([0.5, 0.25, 1.0]), "float32"), tensor(np.zeros(3, np.int64), "int8"), -2)


@pytest.mark.parametrize(("scale", "zero", "axis"), [PER_TENSOR, PER_COLUMN, PER_ROW])
def test_one_step_is_within_rounding_and_two_are_not(scale: Tensor, zero: Tensor, axis: int) -> None:
    case = chain(scale, zero, axis)
    plain, noise = evaluate(case), evaluate(noisy(case, 7))
    result = plain.results[0][0]
    assert result is not None
    steps = scale.array if axis != -2 else scale.array.reshape(3, 1)
    for count, lawful in ((1, True), (3, False)):
        moved = tensor(result.array + np.float32(count) * steps, "float32")
        found = judge_noise(plain, Values(((moved,),)), noise)
        assert found is not None
        assert (found.ratio <= THRESHOLD) is lawful


def test_noise_changes_nothing_at_its_centre() -> None:
    case = chain(*PER_COLUMN)
    plain, noise = evaluate(case), evaluate(noisy(case, 7))
    expected, centre = plain.results[0][0], noise.results[0][0]
    assert expected is not None
    assert centre is not None
    assert centre.same(expected)


def test_small_floats_carry_no_noise() -> None:
    graph = Graph(
        "g",
        (ValueInfo("x", TensorType("float8e4m3fn", (3,))),),
        (ValueInfo("y", TensorType("float8e4m3fn", (3,))),),
        (Node("Identity", ("x",), ("y",)),),
        {},
    )
    _, noises = instrument(Model(graph, {"": 21}, ir_version=10))
    assert not noises


def test_blocks_are_left_alone() -> None:
    scale = tensor(np.ones((3, 2)), "float32")
    case = chain(scale, tensor(np.zeros((3, 2), np.int64), "int8"), 1)
    model = read(case.program.payload)
    nodes = tuple(
        Node(
            node.op,
            node.inputs,
            node.outputs,
            attributes({"axis": 1, "block_size": 2}) if "Quant" in node.op or "quant" in node.op else node.attributes,
        )
        for node in model.graph.nodes
    )
    blocked = Model(
        Graph("g", model.graph.inputs, model.graph.outputs, nodes, model.graph.initializers), {"": 21}, ir_version=10
    )
    instrumented, _ = instrument(blocked)
    assert not any("jitter" in name for info in instrumented.graph.inputs for name in [info.name])
