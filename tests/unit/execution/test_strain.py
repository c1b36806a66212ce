"""How much longer a run may take on a crowded machine."""

import os
import time

import pytest

from miscompile.execution.limits import LEAST_AFTER_HANG, MOST_STRAIN, cpu_seconds_of, seconds_after_hang, strain


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


def test_the_cpu_time_of_a_process_is_read_from_the_system() -> None:
    begin = time.process_time()
    while time.process_time() - begin < 0.2:
        pass
    assert cpu_seconds_of(os.getpid()) == pytest.approx(time.process_time(), abs=0.1)
    assert cpu_seconds_of(2**22 + 1) == 0.0  # beyond the greatest number of a process
