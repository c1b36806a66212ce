"""How the suite runs: in parallel, and without the tests that are marked `slow` unless `--all` is given.

Both hold for runs of folders (`pytest`, `pytest tests/unit`). A run that names files or single tests runs everything in
them, in this process: it starts at once, and a debugger or a `print` works. `-n` and `-p no:xdist` have the last word
about processes.
"""

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

MOST_WORKERS = 8
"""Beyond this, starting a worker (a second of imports in each) costs more than it saves."""

# A test says nothing about time, because a machine may be busy with something else.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="Run the tests that are marked `slow`, too.")


def pytest_configure() -> None:
    """Take the signals back that a shell ignores for its background jobs: campaigns that tests start are stopped so."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def named_files(config: pytest.Config) -> frozenset[Path]:
    """Return the test files that the command line names, by themselves or as the place of a test."""
    paths = (config.invocation_params.dir / argument.partition("::")[0] for argument in config.args)
    return frozenset(path.resolve() for path in paths if path.is_file())


def wants_workers(config: pytest.Config) -> bool:
    """Return whether nothing on the command line speaks against worker processes, and this is none itself."""
    hasplugin = config.pluginmanager.hasplugin
    if hasattr(config, "workerinput") or not hasplugin("xdist"):
        return False
    option = config.option
    if option.numprocesses is not None or option.tx:
        return False
    # pytest-cov has chosen how it collects by now, so `--cov` needs an `-n` to run in parallel.
    alone = option.collectonly or option.usepdb or option.trace or option.capture == "no" or hasplugin("_cov")
    return not alone and not named_files(config)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Stand in for `-n` before xdist reads it."""
    if wants_workers(config):
        workers = min(len(os.sched_getaffinity(0)), MOST_WORKERS)
        config.option.numprocesses = workers if workers > 1 else 0
        if config.option.dist == "no":
            config.option.dist = "worksteal"  # tests that wait for processes of their own are next to each other


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the slow tests of folders, unless they are asked for by `--all` or by a marker expression."""
    if config.getoption("--all") or "slow" in config.option.markexpr:
        return
    named = named_files(config)
    slow = [item for item in items if item.get_closest_marker("slow") and item.path not in named]
    if slow:
        items[:] = [item for item in items if item not in slow]
        config.hook.pytest_deselected(items=slow)


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    """Note the names for the main process, because xdist loses what its workers deselect."""
    output: dict[str, list[str]] | None = getattr(items[0].config, "workeroutput", None) if items else None
    if output is not None:
        output.setdefault("deselected", []).extend(item.nodeid for item in items)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: "WorkerController") -> None:
    """Count what one worker deselected in the summary; all of them deselect the same."""
    reporter = node.config.pluginmanager.get_plugin("terminalreporter")
    names = getattr(node, "workeroutput", {}).get("deselected")
    if reporter is not None and names:
        reporter.stats.setdefault("deselected", [SimpleNamespace(nodeid=name) for name in names])
