"""Other forms of a call change it in one respect, and leave its operator and element types alone."""

import random
from dataclasses import replace

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from miscompile.base.errors import RejectedDraft, SpecError
from miscompile.base.specs import Spec, parse_spec
from miscompile.core.case import Case
from miscompile.core.tensor import tensor
from miscompile.graph.emit import to_program
from miscompile.graph.model import Model
from miscompile.graph.read import read
from miscompile.ops.support import Support
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.sweep import Sweep
from miscompile.transforms.catalogue import alters, present
from miscompile.transforms.forms.transform import OtherForm, described, forms_of


def reduction() -> Case:
    """Return the case ReduceSum of a [2,3] over a constant axis."""
    graph = helper.make_graph(
        [helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=1)],
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2, 3])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [2, 1])],
        [onnx.numpy_helper.from_array(np.array([1], np.int64), "axes")],
    )
    model = read(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]).SerializeToString())
    return Case(to_program(model), ((tensor(np.ones((2, 3)), "float32"),),), {"op": "ReduceSum"})


def shown(case: Case, text: str) -> tuple[Model, Case]:
    (share,) = present(case, parse_spec(text))
    return read(share.case.program.payload), share.case


def test_the_forms_of_a_reduction_in_words() -> None:
    case = reduction()
    words = [[described(form, case) for form in step] for step in forms_of(case)]
    assert {"`axes` as an input", "`axes` left out", "`keepdims` left out"} <= set(words[0])
    assert "`data` as a constant" not in words[0]  # all of it would be constants, which are folded
    assert "one axis more" in words[1]
    assert "size 8 in place of 3" in words[2]


def test_an_operand_becomes_an_input_and_is_fed() -> None:
    model, case = shown(reduction(), "form{change=fed, of=1}")
    assert [info.name for info in model.graph.inputs] == ["x", "axes"]
    assert not model.graph.initializers
    assert [value.array.tolist() for value in case.feeds[0][1:]] == [[1]]


def test_a_call_of_constants_has_no_form_that_is_one_as_well() -> None:
    case = reduction()
    model = read(case.program.payload)
    held = replace(model.graph, inputs=(), initializers={**model.graph.initializers, "x": case.feeds[0][0]})
    folded = Case(to_program(replace(model, graph=held)), ((),), case.recipe)
    words = [described(form, folded) for step in forms_of(folded) for form in step]
    assert words == ["`data` as an input", "`axes` as an input"]


def test_ranks_and_sizes_move_what_counts_them() -> None:
    model, case = shown(reduction(), "form{change=resized, of=3to8}")
    assert case.feeds[0][0].shape == (2, 8)
    assert model.graph.outputs[0].type == read(reduction().program.payload).graph.outputs[0].type
    _, deep = shown(reduction(), "form{change=deeper}")
    assert deep.feeds[0][0].shape == (2, 2, 3)
    _, flat = shown(reduction(), "form{change=flatter}")
    assert flat.program == reduction().program  # a vector has no axis 1, so the change does not apply


@pytest.mark.parametrize(
    ("change", "of"),
    [("fed", "7"), ("constant", "1"), ("omitted", "0"), ("default", "axis"), ("more", ""), ("ones", "1")],
)
def test_a_change_that_does_not_apply_is_rejected(change: str, of: str) -> None:
    case = reduction()
    with pytest.raises(RejectedDraft):
        OtherForm(change, of).apply_to_case(read(case.program.payload), case.feeds)


def test_an_unknown_change_is_an_error_of_the_spec_and_results_count_as_others() -> None:
    with pytest.raises(SpecError, match="no change 'upside'"):
        OtherForm("upside")
    assert alters(Spec("form"))


@given(st.integers(0, 2**32))
@settings(max_examples=30)
def test_forms_keep_the_operator_and_the_element_types(seed: int) -> None:
    case = Sweep(GeneratorOptions(max_elements=64), Support(open=True)).propose(random.Random(seed))
    own = read(case.program.payload).graph
    for form in (form for step in forms_of(case) for form in step):
        model, other = shown(case, str(form))
        assert [node.op for node in model.graph.nodes] == [node.op for node in own.nodes]
        assert len(other.feeds) == len(case.feeds)
        assert [port.dtype for port in other.program.outputs] == [port.dtype for port in case.program.outputs]
        for port, value in zip(other.program.inputs, other.feeds[0], strict=True):
            assert (port.dtype, port.shape) == (value.dtype, value.shape)
