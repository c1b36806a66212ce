"""onnx's checker in its own process: it answers, and its death is an answer as well."""

import pytest

from miscompile.producers.disruptive.checker import ChildChecker

pytestmark = pytest.mark.process


def test_it_answers_and_survives_a_death() -> None:
    checker = ChildChecker()
    try:
        first = checker(b"no model")
        assert first
        child = checker._child
        assert child is not None
        child.kill()
        assert checker(b"no model") is None
        assert checker(b"no model") == first
    finally:
        checker.close()
    assert checker._child is None
