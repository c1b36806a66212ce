"""The option of a suite's tests."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--onnx-backend`, which overrides the environment variable."""
    parser.addoption("--onnx-backend", default=None, help="module with onnx's backend interface to run the suite on")
