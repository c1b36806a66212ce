"""The Hypothesis strategy draws valid models, honours its restrictions, and shrinks."""

import onnx
import pytest
from hypothesis import HealthCheck, Phase, find, given, settings

from miscompile.base.errors import UsageError
from miscompile.strategies import models

QUICK = settings(
    max_examples=15,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],
)


@given(models())
@QUICK
def test_models_are_valid(model: onnx.ModelProto) -> None:
    onnx.checker.check_model(model, full_check=True)
    assert model.graph.node


@given(models(ops=("Add", "Relu"), dtypes=("float32",), opsets=(17,)))
@QUICK
def test_restrictions_hold(model: onnx.ModelProto) -> None:
    kinds = {value.type.tensor_type.elem_type for value in model.graph.input}
    assert kinds <= {onnx.TensorProto.FLOAT}
    assert [entry.version for entry in model.opset_import if not entry.domain] == [17]


def test_a_model_shrinks() -> None:
    """A graph with an Add shrinks to that operator alone."""
    quick = settings(QUICK, max_examples=200, phases=[Phase.generate, Phase.shrink])
    small = find(models(), lambda model: any(node.op_type == "Add" for node in model.graph.node), settings=quick)
    assert [node.op_type for node in small.graph.node] == ["Add"]


def test_restrictions_that_leave_nothing_are_a_usage_error() -> None:
    with pytest.raises(UsageError, match="no operator is left"):
        find(models(ops=("NoSuchOperator",)), lambda model: True, settings=QUICK)
