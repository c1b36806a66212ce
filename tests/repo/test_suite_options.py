"""Running folders is parallel and leaves the slow tests out; naming a file runs all of it in one process."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"
CODE = """
import os
import pytest

def test_quick():
    print("process", os.environ.get("PYTEST_XDIST_WORKER", "main"))

@pytest.mark.slow
def test_long():
    print("process", os.environ.get("PYTEST_XDIST_WORKER", "main"))
"""

pytestmark = pytest.mark.slow  # each test starts pytest, most with workers


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A project with this suite's conftest, one quick test and one slow one."""
    (tmp_path / "tests").mkdir()
    shutil.copy(CONFTEST, tmp_path / "tests" / "conftest.py")
    (tmp_path / "tests" / "test_it.py").write_text(CODE)
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths = tests\nmarkers = slow: takes long\n")
    return tmp_path


def run(suite: Path, *words: str, cpus: int = 2) -> tuple[dict[str, int], set[str]]:
    """Return the summary's counts, and the processes in which tests ran."""
    code = f"import os, sys, pytest; os.sched_getaffinity = lambda pid: set(range({cpus})); sys.exit(pytest.main())"
    done = subprocess.run(
        [sys.executable, "-c", code, "-rP", "-p", "no:cacheprovider", *words],
        cwd=suite, capture_output=True, text=True, timeout=60, check=False,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
    )  # fmt: skip
    summary = done.stdout.splitlines()[-1]
    counts = {kind: int(count) for count, kind in re.findall(r"(\d+) (passed|skipped|deselected)", summary)}
    return counts, set(re.findall(r"^process (\w+)$", done.stdout, re.MULTILINE))


@pytest.mark.parametrize("words", [(), ("tests",), ("-k", "test")], ids=" ".join)
def test_folders_run_in_parallel_without_slow_tests(suite: Path, words: tuple[str, ...]) -> None:
    counts, processes = run(suite, *words)
    assert counts == {"passed": 1, "deselected": 1}, "left-out tests are reported, as deselected"
    assert processes <= {"gw0", "gw1"}


def test_all_means_all(suite: Path) -> None:
    assert run(suite, "--all") == ({"passed": 2}, {"gw0", "gw1"})


@pytest.mark.parametrize("words", [("tests/test_it.py",), ("-m", "slow", "tests/test_it.py")], ids=" ".join)
def test_a_named_file_runs_whole_in_this_process(suite: Path, words: tuple[str, ...]) -> None:
    counts, processes = run(suite, *words)
    assert counts["passed"] == (1 if "-m" in words else 2)
    assert processes == {"main"}


def test_a_named_test_runs_though_it_is_slow(suite: Path) -> None:
    assert run(suite, "tests/test_it.py::test_long") == ({"passed": 1}, {"main"})


@pytest.mark.parametrize("words", [("-n", "0"), ("-p", "no:xdist"), ("-p", "no:xdist", "tests")], ids=" ".join)
def test_the_command_line_has_the_last_word_about_processes(suite: Path, words: tuple[str, ...]) -> None:
    assert run(suite, *words) == ({"passed": 1, "deselected": 1}, {"main"})


def test_an_explicit_number_of_workers_holds_for_files_too(suite: Path) -> None:
    assert run(suite, "-n", "1", "tests/test_it.py") == ({"passed": 2}, {"gw0"})


def test_one_cpu_needs_no_workers(suite: Path) -> None:
    assert run(suite, cpus=1) == ({"passed": 1, "deselected": 1}, {"main"})
