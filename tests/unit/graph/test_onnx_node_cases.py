"""Every node case of onnx's own backend tests goes through reading, emission, text, checking and editing."""

import warnings
from collections.abc import Callable
from typing import Any

import onnx
import pytest
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

from miscompile.base.errors import ModelError
from miscompile.graph.check import check
from miscompile.graph.emit import model_proto
from miscompile.graph.equality import difference
from miscompile.graph.model import Model
from miscompile.graph.prune import prune
from miscompile.graph.read import read
from miscompile.graph.text.parser import parse_model
from miscompile.graph.text.printer import print_model

_DROPPED = ("doc_string", "metadata_props", "denotation", "producer_name", "producer_version", "model_version")
_ELEMENTS = ("raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data")

REJECTED_BY_ONNX = {"test_mvn"}
"""Cases that onnx's own strict inference rejects."""

Cases = dict[str, tuple[onnx.ModelProto, Model]]


@pytest.fixture(scope="module")
def cases() -> Cases:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the cases' own arithmetic overflows
        found = collect_testcases(None)
    return {case.name: (case.model, read(case.model)) for case in found}


def _failures(cases: Cases, fault: Callable[[onnx.ModelProto, Model], str | None]) -> dict[str, str]:
    faults = {name: fault(proto, model) for name, (proto, model) in cases.items()}
    return {name: text for name, text in faults.items() if text}


def _normalise(message: Any) -> None:
    """Drop what has no meaning, and put the elements of every tensor, as onnx decodes them, into `raw_data`."""
    if isinstance(message, onnx.TensorProto) and message.data_type != onnx.TensorProto.STRING:
        data = numpy_helper.to_array(message).tobytes()
        for field in _ELEMENTS:
            message.ClearField(field)
        message.raw_data = data
    for field, value in message.ListFields():
        if field.name in _DROPPED or (isinstance(value, str) and not value):
            message.ClearField(field.name)
        elif isinstance(message, onnx.AttributeProto) and field.name == "t":
            value.ClearField("name")
            _normalise(value)
        elif field.message_type is not None:
            for item in [value] if hasattr(value, "ListFields") else value:
                _normalise(item)


def _emission_fault(proto: onnx.ModelProto, model: Model) -> str | None:
    first, second = onnx.ModelProto(), model_proto(model)
    first.CopyFrom(proto)
    _normalise(first)
    _normalise(second)
    same = first.SerializeToString(deterministic=True) == second.SerializeToString(deterministic=True)
    return None if same else f"{str(first)[:400]} against {str(second)[:400]}"


def _check_fault(_: onnx.ModelProto, model: Model) -> str | None:
    try:
        check(model)
    except ModelError as error:
        return str(error)
    return None


def test_there_are_many_cases(cases: Cases) -> None:
    assert len(cases) > 1500


def test_emission_says_what_the_original_says(cases: Cases) -> None:
    assert _failures(cases, _emission_fault) == {}


@pytest.mark.slow  # 1,700 cases; the law is tested on generated models by default
def test_text_parses_back_to_the_same_model(cases: Cases) -> None:
    assert _failures(cases, lambda _, model: difference(model, parse_model(print_model(model)))) == {}


def test_every_case_passes_the_check(cases: Cases) -> None:
    assert set(_failures(cases, _check_fault)) <= REJECTED_BY_ONNX


def test_prune_leaves_models_valid(cases: Cases) -> None:
    some = dict(list(cases.items())[::5])
    assert set(_failures(some, lambda proto, model: _check_fault(proto, prune(model)))) <= REJECTED_BY_ONNX
