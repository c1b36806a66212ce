"""The same seed gives the same programs and inputs, and every output type is what onnx infers for the whole model."""

import onnx
import pytest

from miscompile.base.errors import RejectedDraft
from miscompile.base.rng import stream
from miscompile.core.case import Case
from miscompile.graph.model import TensorType
from miscompile.graph.typing import inferred_types
from miscompile.ops.spec import Call, OperatorLimits
from miscompile.ops.support import Support
from miscompile.ops.values import Range, Style
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.scope import Scope
from miscompile.producers.strict import Strict


def drawn(count: int, seed: int = 5) -> list[Case]:
    producer = Strict(GeneratorOptions(), Support(open=True))
    return [producer.propose(stream(seed, "lane", index)) for index in range(count)]


def test_the_same_seed_gives_the_same_bytes() -> None:
    for one, other in zip(drawn(40), drawn(40), strict=True):
        assert one.program == other.program
        assert all(a.same(b) for a, b in zip(one.feeds[0], other.feeds[0], strict=True))


def test_ports_have_the_types_that_inference_gives_the_model() -> None:
    for case in drawn(60, seed=6):
        proto = onnx.load_from_string(case.program.payload)
        types = inferred_types(proto)
        for port in case.program.outputs:
            assert types[port.name] == TensorType(port.dtype, port.shape)


def test_fed_tensors_have_the_dtypes_and_shapes_of_their_ports() -> None:
    for case in drawn(20, seed=7):
        for tensor, port in zip(case.feeds[0], case.program.inputs, strict=True):
            assert (tensor.dtype, tensor.shape) == (port.dtype, port.shape)


def test_elementwise_calls_that_do_not_broadcast_are_rejected_and_leave_the_scope_as_it_was() -> None:
    scope = Scope(stream(0, "scope"), 18, OperatorLimits(), Style(), Support(open=True))
    x = scope.new_input("float32", (2, 3), Range(-1, 1, integral=False))
    y = scope.new_input("float32", (4,), Range(-1, 1, integral=False))
    scope.apply(Call("Add", (x, x)))  # from here on the dtypes of Add are known, and its shapes are worked out
    mark = scope.mark()
    with pytest.raises(RejectedDraft):
        scope.apply(Call("Add", (x, y)))
    assert scope.mark() == mark
    result = scope.apply(Call("Add", (scope.new_input("float32", (5, 1, 3), Range(-1, 1, integral=False)), x)))[0]
    assert (result.dtype, result.shape) == ("float32", (5, 2, 3))


def test_rollback_forgets_the_newest_values_and_their_uses() -> None:
    scope = Scope(stream(0, "scope"), 18, OperatorLimits(), Style(), Support(open=True))
    x = scope.new_input("float32", (2,), Range(-1, 1, integral=False))
    mark = scope.mark()
    made = scope.call("Neg", x)
    assert scope.uses[x.name] == 1
    scope.rollback(mark)
    assert made.name not in scope.operands
    assert scope.uses[x.name] == 0
    assert scope.pool["float32"] == [x]
    assert not scope.nodes
