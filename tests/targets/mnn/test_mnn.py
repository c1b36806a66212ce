import importlib.util

import pytest

from miscompile.execution.conformance import check_target
from miscompile.execution.pool import LocalPool

pytestmark = [
    pytest.mark.compiler,
    pytest.mark.process,
    pytest.mark.skipif(importlib.util.find_spec("MNN") is None, reason="MNN is not installed"),
]


def test_mnn_keeps_the_contract() -> None:
    check_target("mnn", LocalPool)
