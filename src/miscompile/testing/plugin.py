"""A pytest plugin: `@pytest.mark.miscompile(model=..., targets=..., budget=...)` checks a model before the test's body.

It is a plugin of its own beside the one that records operators (`miscompile.harvest.libraries.plugin`), so that a
project can switch off one of them: `-p no:miscompile-check`. Both import only pytest until they are used.
"""

import importlib
from collections.abc import Generator
from typing import Any

import pytest

MARK = "miscompile"


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, for `--strict-markers` and `pytest --markers`."""
    config.addinivalue_line(
        "markers",
        f"{MARK}(model, targets=(), budget=20, *, inputs=(), seed=0, limit_seconds=30.0): before the test's body,"
        " assert that the model computes the same compiled and uncompiled; the arguments are those of"
        " miscompile.testing.alike.assert_compiles_alike",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Check the models of all markers of a test; a failure is one of its call phase."""
    marks = list(item.iter_markers(MARK))
    if marks:
        alike: Any = importlib.import_module("miscompile.testing.alike")
        for mark in reversed(marks):
            alike.assert_compiles_alike(*mark.args, **mark.kwargs)
    return (yield)
