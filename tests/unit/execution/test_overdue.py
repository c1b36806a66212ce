"""When a run has had its time, on an idle machine and on a busy one."""

import time

import pytest

from miscompile.execution import proxy as proxies
from miscompile.execution.limits import Limits
from miscompile.execution.proxy import WorkerProxy


@pytest.mark.parametrize(
    ("took", "cpu", "over"),
    [
        (0.5, 0.5, False),
        (1.5, 0.5, False),  # the machine is busy, and the run may take four times as long
        (1.5, 1.5, True),  # it would have taken too long on an idle machine as well
        (4.5, 0.5, True),
    ],
)
def test_a_run_is_overdue_by_the_clock_or_by_its_cpu_time(
    took: float, cpu: float, over: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxies, "strain", lambda: 4.0)
    monkeypatch.setattr(proxies, "cpu_seconds_of", lambda pid: 10.0 + cpu)
    proxy = WorkerProxy(0, Limits(seconds=1.0))
    try:
        proxy.pid = 1
        proxy.recorder.begin(7, 0)
        proxy.recorder.compiling(10.0)
        start = proxy.recorder.read().start
        assert (proxy.overdue(start + took) is not None) == over
        assert proxy.patience(start + took) <= 1.0
    finally:
        proxy.far_end.close()
        proxy.close()


def test_an_idle_worker_is_not_overdue() -> None:
    proxy = WorkerProxy(0, Limits(seconds=1.0))
    try:
        assert proxy.overdue(time.monotonic() + 2.0) is None
    finally:
        proxy.far_end.close()
        proxy.close()
