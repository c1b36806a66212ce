from importlib.metadata import distributions

import pytest

from miscompile.execution.conformance import check_target
from miscompile.execution.pool import LocalPool

pytestmark = [
    pytest.mark.compiler,
    pytest.mark.process,
    pytest.mark.skipif(
        "onnxruntime-openvino" not in {one.name for one in distributions()},
        reason="onnxruntime-openvino is not installed",
    ),
]


def test_the_provider_keeps_the_contract() -> None:
    check_target("onnxruntime_openvino", LocalPool)
