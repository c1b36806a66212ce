"""Our definitions of operators, against onnx's own node cases and against ONNX Runtime."""

import warnings
from functools import cache

import numpy as np
import onnx
import pytest
from onnx.backend.test.case.node import collect_testcases
from onnx.numpy_helper import to_array

from miscompile.core.tensor import Array
from miscompile.ops.definitions.evaluator import evaluator
from miscompile.ops.definitions.table import DEFINITIONS


@cache
def _cases() -> dict[str, list[onnx.backend.test.case.test_case.TestCase]]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = collect_testcases(None)
    by_operator: dict[str, list[onnx.backend.test.case.test_case.TestCase]] = {}
    for case in found:
        if case.model is not None and len(case.model.graph.node) == 1:
            by_operator.setdefault(case.model.graph.node[0].op_type, []).append(case)
    return by_operator


def _array(value: object) -> Array:
    return np.asarray(to_array(value) if isinstance(value, onnx.TensorProto) else value)


@pytest.mark.parametrize("operator", sorted(DEFINITIONS))
def test_a_definition_computes_what_the_node_cases_of_its_operator_expect(operator: str) -> None:
    checked = 0
    for case in _cases().get(operator, []):
        names = [info.name for info in case.model.graph.input]
        for inputs, expected in case.data_sets:
            feed = dict(zip(names, map(_array, inputs), strict=True))
            with np.errstate(all="ignore"):
                found = evaluator(case.model).run(None, feed)
            for one, other in zip(found, map(_array, expected), strict=True):
                assert (one.dtype, one.shape) == (other.dtype, other.shape), case.name
                np.testing.assert_allclose(
                    np.asarray(one, dtype=float),
                    np.asarray(other, dtype=float),
                    rtol=1e-3,
                    atol=1e-5,
                    err_msg=case.name,
                )
            checked += 1
    assert checked or operator == "GlobalLpPool", "onnx has no node case of it"
