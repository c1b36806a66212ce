"""Bridges: from any type to any type, with values that stay where they are said to lie."""

import random

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator

from miscompile.base.dtypes import DTYPES
from miscompile.base.errors import RejectedDraft
from miscompile.ops.spec import OperatorLimits
from miscompile.ops.support import Support
from miscompile.ops.values import Range, Style
from miscompile.producers.finish import finish
from miscompile.producers.scope import Scope
from miscompile.producers.synthesis.bridge import bridge

SHAPES = st.lists(st.integers(1, 4), max_size=4).map(tuple)
KINDS = st.sampled_from(("float32", "float64", "int32", "int64", "uint8", "int8", "bool"))


def scope_with(seed: int, opset: int = 21) -> Scope:
    style = Style(integral=False, full=False)
    return Scope(random.Random(seed), opset, OperatorLimits(), style, Support(open=True))


@settings(max_examples=120)
@given(KINDS, SHAPES, KINDS, SHAPES, st.integers(0, 1000))
def test_a_bridge_has_the_type_asked_for_and_values_where_its_facts_say(
    old: str, have: tuple[int, ...], new: str, wanted: tuple[int, ...], seed: int
) -> None:
    scope = scope_with(seed)
    integral = DTYPES[old].kind != "float"
    span = Range(0, 1, integral=True) if old == "bool" else Range(-5 if old[0] != "u" else 0, 9, integral=integral)
    source = scope.new_input(old, have, span)
    made = bridge(scope, source, new, wanted)
    assert (made.dtype, made.shape) == (new, wanted)
    if made is source:
        return
    case = finish(scope, [made.name], 1, {})
    model = onnx.load_from_string(case.program.payload)
    onnx.checker.check_model(model, full_check=True)
    feed = {port.name: tensor.array for port, tensor in zip(case.program.inputs, case.feeds[0], strict=True)}
    (found,) = ReferenceEvaluator(model).run(None, feed)
    numbers = np.asarray(found, np.float64)
    assert numbers.shape == wanted
    assert ((made.facts.lo <= numbers) & (numbers <= made.facts.hi)).all()


def test_what_has_the_type_already_is_returned_as_it_is() -> None:
    scope = scope_with(0)
    source = scope.new_input("float32", (2, 3), Range(0, 1, integral=False))
    assert bridge(scope, source, "float32", (2, 3)) is source
    assert not scope.nodes


def test_nothing_comes_from_nothing_and_leaves_the_scope_alone() -> None:
    scope = scope_with(0)
    source = scope.new_input("float32", (2, 0), Range(0, 1, integral=False))
    with pytest.raises(RejectedDraft):
        bridge(scope, source, "float32", (3,))
    assert not scope.nodes
    assert list(scope.operands) == [source.name]


def test_floats_that_an_integer_type_cannot_hold_are_guarded_first() -> None:
    scope = scope_with(1)
    source = scope.new_input("float32", (4,), Range(-1e5, 1e5, integral=False))
    made = bridge(scope, source, "int8", (4,))
    assert made.facts.inside(-128, 127)
    assert [node.op for node in scope.nodes][-1] == "Cast"
    assert len(scope.nodes) > 1
