"""How much longer a run may take on a crowded machine."""

import os

import pytest

from miscompile.execution.limits import LEAST_AFTER_HANG, MOST_STRAIN, seconds_after_hang, strain


@pytest.mark.parametrize(("load", "factor"), [(0.0, 1.0), (2.0, 1.0), (3.0, 1.5), (6.0, 3.0), (900.0, MOST_STRAIN)])
def test_patience_grows_with_the_load_on_each_cpu(load: float, factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    assert strain() == factor


@pytest.mark.parametrize(
    ("limit", "rest"), [(1.0, 1.0), (LEAST_AFTER_HANG, LEAST_AFTER_HANG), (10.0, LEAST_AFTER_HANG), (30.0, 6.0)]
)
def test_a_hang_shortens_the_patience_with_the_rest_of_its_batch(limit: float, rest: float) -> None:
    assert seconds_after_hang(limit) == rest
