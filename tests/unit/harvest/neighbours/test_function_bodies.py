"""The function body of an operator as a second judge of its node."""

import numpy as np
import pytest

from miscompile.core.tensor import tensor
from miscompile.harvest.neighbours.body import DIFFERS, REFUSES, disagreement, overflows
from miscompile.harvest.neighbours.onnx import refusal
from miscompile.instances.instance import Instance
from miscompile.instances.values import Held, Value
from miscompile.producers.instances.evaluation import evaluated
from miscompile.producers.instances.onnx_model import to_model
from miscompile.producers.instances.onnx_values import to_array


def node(api: str, *inputs: object, version: int = 18, **kwargs: Value) -> Instance:
    held = tuple(Held(tensor(np.asarray(one))) for one in inputs)
    return Instance("onnx", api, "node", kwargs=kwargs, inputs=held, version=version, source="tests")


def results(instance: Instance) -> dict[str, object]:
    model, feed = to_model(instance)
    names = [info.name for info in model.graph.inputs]
    return evaluated(model, {name: to_array(value) for name, value in zip(names, feed, strict=True)})


pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the evaluator overflows

FLOATS = np.array([[-1.0, 0.5], [2.0, 3.0]], np.float32)


@pytest.mark.parametrize(
    "instance",
    [
        node("Softmax", FLOATS, axis=0),
        node("Gelu", FLOATS, version=20),
        node("ReduceLogSum", np.abs(FLOATS)),
        node("LayerNormalization", FLOATS, FLOATS[0], axis=1),
        node("Relu", FLOATS),
        node("MatMul", FLOATS, FLOATS),
    ],
    ids=lambda one: one.api,
)
def test_evaluator_and_body_agree_on_plain_nodes(instance: Instance) -> None:
    assert disagreement(instance, results(instance)) == ""
    assert refusal(instance) == ""


def test_a_wrong_result_is_a_disagreement() -> None:
    softmax = node("Softmax", FLOATS, axis=0)
    (name,) = results(softmax)
    assert disagreement(softmax, {name: FLOATS}) == DIFFERS
    assert disagreement(softmax, {name: FLOATS.astype(np.float64)}) == DIFFERS
    large = node("LogSoftmax", np.array([0.0, 10003.0], np.float32), version=13)
    assert refusal(large) in (DIFFERS, "a result of finite operands is not finite")


def test_a_body_that_does_not_fit_is_a_refusal() -> None:
    norm = node("LayerNormalization", FLOATS, np.ones(3, np.float32), axis=1)
    fine = node("LayerNormalization", FLOATS, FLOATS[0], axis=1)
    assert disagreement(norm, results(fine)) == REFUSES


@pytest.mark.parametrize(
    ("instance", "expected"),
    [
        (node("Exp", np.array([1e3], np.float32)), False),
        (node("Div", FLOATS, np.zeros(2, np.float32)), False),
        (node("MatMul", np.full((2, 2), 3e38, np.float32), FLOATS), True),
        (node("ReduceSum", np.full(2, 3e38, np.float32)), True),
        (node("ReduceSum", np.array([np.inf, 1.0], np.float32)), False),
        (node("LeakyRelu", np.array([0.0, -1.0], np.float32), alpha=float("inf")), True),
        (node("LeakyRelu", FLOATS, alpha=0.5), False),
    ],
    ids=lambda one: one.api if isinstance(one, Instance) else str(one),
)
def test_results_that_overflow_in_some_order_are_left_out(instance: Instance, expected: bool) -> None:
    assert overflows(instance, results(instance)) == expected
