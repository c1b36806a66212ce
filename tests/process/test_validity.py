"""The validity check by onnx's reference evaluator in a process of its own."""

from dataclasses import replace

import numpy as np
import pytest

from miscompile.core.case import Case, Port, Program
from miscompile.core.tensor import Tensor, tensor
from miscompile.execution.limits import Limits
from miscompile.execution.pool import LocalPool
from miscompile.graph.emit import to_program
from miscompile.graph.text.parser import parse_model
from miscompile.triage.validity import VOTER, accepts, takes

pytestmark = pytest.mark.process

REDUCTION = """
ir 10
opset 18

graph main(%x: float32[5,0]) -> (%y: float32[0]) {
  init %axes: int64[1] = [-2]
  %y = ReduceSum(%x, %axes) {keepdims=0}
}
"""
LARGE = """
ir 10
opset 18

graph main(%x: float32[1]) -> (%y: float32[268435456]) {
  init %shape: int64[1] = [268435456]
  %y = Expand(%x, %shape)
}
"""
BRAIN = """
ir 10
opset 18

graph main(%x: bfloat16[2], %k: bool[2]) -> (%y: bfloat16[2]) {
  %y = Where(%k, %x, %x)
}
"""
GEMM = """
ir 10
opset 18

graph main(%x: float32[2,3], %b: float32[5]) -> (%y: float32[2,4]) {
  init %w: float32[3,4] = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
  %y = Gemm(%x, %w, %b)
}
"""
FUNCTIONS = """
ir 10
opset 18
opset l 1

graph main(%x: float32[2]) -> (%y: float32[2]) {
  %y = l::outer(%x)
}
function l::outer(%a) -> (%b) {
  opset 18 opset l 1
  %b = l::inner(%a)
}
function l::inner(%p) -> (%q) { opset 18 %q = Neg(%p) }
"""
"""A function that calls one after it, which onnx's evaluator does not find."""


def program(text: str) -> Program:
    return to_program(parse_model(text))


def case(text: str, *feed: Tensor) -> Case:
    return Case(program(text), (feed,))


def zeros(*shape: int) -> Tensor:
    return tensor(np.zeros(shape, np.float32))


def test_a_valid_model_is_accepted() -> None:
    assert accepts(case(REDUCTION, zeros(5, 0))).vote == "accepted"


def test_a_model_of_nested_functions_is_accepted() -> None:
    vote = accepts(case(FUNCTIONS, zeros(2)))
    assert vote.vote == "accepted", vote.message


def test_types_that_numpy_lacks_reach_the_evaluator() -> None:
    words = Tensor("bfloat16", np.array([0x3F80, 0x4000], np.uint16))
    vote = accepts(case(BRAIN, words, tensor(np.array([True, False]))))
    assert vote.vote == "accepted", vote.message


def test_an_invalid_model_is_refused_with_the_evaluators_words() -> None:
    vote = accepts(case(GEMM, zeros(2, 3), zeros(5)))
    assert vote.vote == "refused"
    assert "refuses the model: " in vote.message


def test_outputs_of_another_type_than_declared_are_a_refusal() -> None:
    made = program(REDUCTION)
    wrong = Program(made.kind, made.payload, made.inputs, (Port("y", "float32", (5, 0)),))
    vote = accepts(Case(wrong, ((zeros(5, 0),),)))
    assert vote.vote == "refused"
    assert "gives float32[0] for 'y', not float32[5,0]" in vote.message


def test_too_little_time_gives_no_vote() -> None:
    vote = accepts(case(REDUCTION, zeros(5, 0)), seconds=0.01)
    assert vote.vote == "silent"
    assert "takes more than 0.01 s" in vote.message


def test_a_child_that_says_nothing_sensible_gives_no_vote() -> None:
    assert accepts(case(REDUCTION, zeros(5, 0)), child="this").vote == "silent"


def test_a_child_out_of_memory_gives_no_vote() -> None:
    assert accepts(case(LARGE, zeros(1)), memory=64 << 20).vote != "accepted"


def test_every_step_of_a_reduction_can_be_asked_about_through_a_pool() -> None:
    good = parse_model(REDUCTION)
    case = Case(to_program(good), ((tensor(np.zeros((5, 0), np.float32)),),))
    refused = Case(
        to_program(parse_model(GEMM)),
        ((tensor(np.ones((2, 3), np.float32)), tensor(np.ones(5, np.float32))),),
    )
    other = replace(case, program=replace(case.program, outputs=(Port("y", "float32", (7,)),)))
    with LocalPool(VOTER, 1, Limits(seconds=30.0)) as pool:
        assert takes(case, pool)
        assert not takes(refused, pool)
        assert not takes(other, pool), "it gives another shape than declared"
