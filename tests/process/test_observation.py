"""Observing a whole model in a process of its own: what is seen, and what is not."""

import numpy as np
import pytest

from miscompile.base.rng import stream
from miscompile.graph.model import Model, TensorType
from miscompile.graph.text.parser import parse_model
from miscompile.producers.slices.binding import normalised
from miscompile.producers.slices.observation import observed

pytestmark = pytest.mark.process

GATES = """ir 8 opset 17 graph g(%x: float32["batch", "t"], %i: int64["batch"]) -> (%y: float32["batch", "t"]) {
  init %table: float32[2, 1] = [0.25, 4]
  init %zero: int64[1] = [0]
  %s = Sigmoid(%x)
  %shape = Shape(%x)
  %first = Gather(%shape, %zero)
  %e = Gather(%table, %i)
  %y = Mul(%s, %e)
}"""

FOREIGN = """ir 8 opset 17 opset other 1 graph g(%x: float32[3]) -> (%y: float32[3], %r: float32[3]) {
  %r = Relu(%x)
  %u = other::Strange(%r)
  %y = Abs(%u)
}"""


def model(text: str) -> Model:
    return normalised(parse_model(text))


def test_intervals_types_and_shapes_are_seen() -> None:
    found = observed(normalised(parse_model(GATES)), stream(1, "o"))
    assert found.ran
    assert found.values["s"].type == TensorType("float32", (2, 8))
    span = found.values["s"].range
    assert span is not None
    assert 0 < span.lo < 0.3
    assert 0.7 < span.hi < 1
    span = found.values["i"].range
    assert span is not None
    assert 0 <= span.lo <= span.hi <= 1, "larger indices do not run"


def test_what_no_output_needs_is_not_there() -> None:
    assert not {"shape", "first"} & observed(model(GATES), stream(1, "o")).values.keys()


def test_computed_shapes_are_known() -> None:
    text = GATES.replace("(%y: float32", "(%first: int64[1], %y: float32")
    value = observed(model(text), stream(1, "o")).values["first"].value
    assert value is not None
    assert value.same(type(value)("int64", np.array([2], np.int64)))


def test_what_the_evaluator_cannot_run_has_no_interval() -> None:
    found = observed(model(FOREIGN), stream(1, "o"))
    assert not found.ran
    assert found.values["r"].range is not None
    assert "u" not in found.values
    assert found.values["y"].range is None


def test_masks_are_seen_as_large_but_not_as_infinite() -> None:
    text = """ir 8 opset 17 graph g(%x: float32[40]) -> (%y: float32[40]) {
      init %zero: float32[] = [0]
      init %least: float32[] = [-3.4e38]
      %c = Greater(%x, %zero)
      %m = Where(%c, %zero, %least)
      %s = Add(%m, %x)
      %y = Softmax(%s)
    }"""
    assert observed(model(text), stream(1, "o")).values["m"].range == (-1e4, 0, True)


def test_without_time_there_are_types_only() -> None:
    found = observed(model(GATES), stream(1, "o"), seconds=0.001)
    assert not found.ran
    assert found.values["s"].range is None
    assert found.values["s"].type.dtype == "float32"
