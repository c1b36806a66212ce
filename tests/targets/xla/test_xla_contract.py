"""XLA as a target: the contract of targets."""

from importlib.util import find_spec

import pytest

from miscompile.execution.conformance import check_target
from miscompile.execution.pool import LocalPool

pytestmark = [
    pytest.mark.compiler,
    pytest.mark.process,
    pytest.mark.skipif(find_spec("jax") is None, reason="JAX is not installed here"),
]


def test_the_target_keeps_the_contract() -> None:
    check_target("xla", LocalPool)
