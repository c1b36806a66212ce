import importlib.util

import pytest

from miscompile.execution.conformance import check_target
from miscompile.execution.pool import LocalPool

pytestmark = [
    pytest.mark.compiler,
    pytest.mark.process,
    pytest.mark.skipif(importlib.util.find_spec("tract") is None, reason="tract is not installed"),
]


def test_tract_keeps_the_contract() -> None:
    check_target("tract", LocalPool)
