"""The toy's kernels against the expected outputs that onnx ships for every operator."""

import warnings
from collections.abc import Iterator

import numpy as np
import onnx
import pytest
from onnx.backend.test.case.node import collect_testcases
from onnx.backend.test.case.test_case import TestCase

from miscompile.core.case import Port, Program
from miscompile.core.run import Build
from miscompile.core.tensor import tensor
from miscompile.targets.toy.about import ABOUT
from miscompile.targets.toy.adapter import ToyAdapter
from miscompile.targets.toy.ir import ToyUnsupported
from miscompile.targets.toy.kernels.table import OPERATORS


def _cases() -> Iterator["pytest.ParameterSet"]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # making the expected outputs overflows on purpose in places
        items = collect_testcases(None)
    for item in items:
        (name, *rest) = [node.op_type for node in item.model.graph.node]
        if not rest and name in OPERATORS and onnx.defs.get_schema(name).since_version <= ABOUT.max_opset:
            yield pytest.param(item, id=item.name)


@pytest.mark.parametrize("item", list(_cases()))
def test_kernel_agrees_with_the_expected_outputs(item: TestCase) -> None:
    model = onnx.ModelProto.FromString(item.model.SerializeToString())
    model.opset_import[0].version = min(model.opset_import[0].version, ABOUT.max_opset)
    payload = model.SerializeToString()
    for inputs, outputs in item.data_sets:
        if not all(isinstance(value, np.ndarray | np.generic) for value in (*inputs, *outputs)):
            pytest.skip("not made of numpy tensors")
        feed = tuple(tensor(np.asarray(value)) for value in inputs)
        ports = tuple(Port(info.name, value.dtype, value.shape) for info, value in zip(model.graph.input, feed))  # noqa: B905
        for level in ABOUT.levels:
            try:
                session = ToyAdapter().build(Program("onnx", payload, ports, ()), Build(level))
            except ToyUnsupported as error:
                pytest.skip(str(error))
            for found, wanted in zip(session.run(feed), outputs, strict=True):
                assert found is not None
                assert found.array.dtype == wanted.dtype
                assert found.shape == wanted.shape
                tolerance = 2e-3 if wanted.dtype == np.float16 else 1e-5
                np.testing.assert_allclose(found.array, wanted, rtol=tolerance, atol=tolerance)
