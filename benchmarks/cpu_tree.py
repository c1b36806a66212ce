"""CPU seconds of this process and all processes below it, by the part they play in a campaign."""

from collections import Counter
from collections.abc import Mapping

import psutil

ROLES = ("coordinator", "lanes", "zygotes", "workers", "triage")
"""coordinator: this process; triage: its other threads, and the processes that triage starts: workers and scripts."""


def cpu_by_role() -> dict[str, float]:
    """Return the CPU seconds used so far by every role, processes that have ended and were waited for included."""
    me = psutil.Process()
    found = Counter(dict.fromkeys(ROLES, 0.0))
    times = me.cpu_times()
    found["coordinator"] = times.user + times.system
    found["triage"] = times.children_user + times.children_system  # lanes that died are among them, which is rare
    beside = sum(thread.user_time + thread.system_time for thread in me.threads() if thread.id != me.pid)
    found["coordinator"] -= beside
    found["triage"] += beside
    for child in me.children():
        _add(child, "lanes" if _is_lane(child) else "triage", found)
    return dict(found)


def _is_lane(process: psutil.Process) -> bool:
    try:
        return "miscompile.engine.lane" in process.cmdline()
    except psutil.Error:
        return False


def _add(process: psutil.Process, role: str, found: "Counter[str]") -> None:
    """Add a process and its descendants. The next call finds a process that ends meanwhile in its parent's times."""
    try:
        children, times = process.children(), process.cpu_times()
    except psutil.Error:
        return
    below = {"lanes": "zygotes", "zygotes": "workers"}.get(role, role)
    found[role] += times.user + times.system
    found[below] += times.children_user + times.children_system
    for child in children:
        _add(child, below, found)


def difference(later: Mapping[str, float], earlier: Mapping[str, float]) -> dict[str, float]:
    """Return what was added between two measurements."""
    return {name: value - earlier.get(name, 0) for name, value in later.items()}
