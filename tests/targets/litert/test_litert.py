"""LiteRT as a target: the contract, and values of single operators against numpy's."""

import importlib.util

import pytest

from miscompile.execution.conformance import check_target
from miscompile.execution.pool import LocalPool

needs_litert = pytest.mark.skipif(
    importlib.util.find_spec("ai_edge_litert") is None, reason="ai-edge-litert is not installed"
)


@needs_litert
@pytest.mark.compiler
@pytest.mark.process
def test_the_target_keeps_the_contract() -> None:
    check_target("litert", LocalPool)
