"""The faults that harm a process, each met in a forked child under a limit of its memory and time."""

import os
import resource
import signal
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "targets" / "toy"))

from toy_faults import CASES

from miscompile.core.run import Build
from miscompile.targets.toy.adapter import ToyAdapter
from miscompile.targets.toy.bugs import BUGS

pytestmark = pytest.mark.process

REACHED_END, OUT_OF_MEMORY, OTHER_ERROR = 0, 3, 4


@pytest.fixture
def quiet(tmp_path: Path) -> Path:
    """A file that takes what the child prints."""
    return tmp_path / "printed"


def build_in_child(name: str, bugs: str, printed: Path, *, disabled: tuple[str, ...] = (), seconds: float = 20) -> int:
    """Build the model of fault `name` in a child; return its wait status (-1: it had to be killed after `seconds`)."""
    pid = os.fork()
    if pid == 0:
        _child(name, bugs, printed, frozenset(disabled))
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return -1


def _child(name: str, bugs: str, printed: Path, disabled: frozenset[str]) -> None:
    """Never returns: the child's exit status says how far it came."""
    status = OTHER_ERROR
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        room = resource.getpagesize() * int(Path("/proc/self/statm").read_text().split()[0]) + (256 << 20)
        resource.setrlimit(resource.RLIMIT_AS, (room, room))
        descriptor = os.open(printed, os.O_CREAT | os.O_WRONLY)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        signal.signal(signal.SIGABRT, signal.SIG_DFL)
        signal.signal(signal.SIGSEGV, signal.SIG_DFL)
        session = ToyAdapter(bugs).build(CASES[name].program, Build(disabled=disabled))
        session.run(CASES[name].feeds[0])
        status = REACHED_END
    except MemoryError:
        status = OUT_OF_MEMORY
    finally:
        os._exit(status)


def test_segfault(quiet: Path) -> None:
    status = build_in_child("segfault_tile", "segfault_tile", quiet)
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == signal.SIGSEGV


def test_abort(quiet: Path) -> None:
    status = build_in_child("abort_reflect_pad", "abort_reflect_pad", quiet)
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == signal.SIGABRT


def test_hang(quiet: Path) -> None:
    assert build_in_child("hang_concat_same", "hang_concat_same", quiet, seconds=1) == -1


def test_memory(quiet: Path) -> None:
    status = build_in_child("memory_expand", "memory_expand", quiet)
    assert os.WEXITSTATUS(status) == OUT_OF_MEMORY


def test_garbage(quiet: Path) -> None:
    status = build_in_child("garbage_arg_max", "garbage_arg_max", quiet)
    assert os.WEXITSTATUS(status) == REACHED_END
    assert quiet.stat().st_size >= 4 << 20


@pytest.mark.parametrize("name", sorted(name for name in BUGS if BUGS[name].kind in ("death", "hang", "memory")))
def test_the_model_is_harmless_without_the_fault_or_its_pass(name: str, quiet: Path) -> None:
    assert build_in_child(name, "none", quiet) == REACHED_END
    assert build_in_child(name, name, quiet, disabled=BUGS[name].passes) == REACHED_END
