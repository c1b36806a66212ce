"""A script that corrupts its heap runs under the checkers that are installed, and the access is named."""

import ctypes
import shutil
import sys
from pathlib import Path

import pytest

from miscompile.core.outcome import Crashed, Observations
from miscompile.triage.first_access import GLIBC, MEMCHECK, first_bad_access

pytestmark = pytest.mark.process

CORRUPTED = Crashed("run", 6, Observations(stderr="free(): invalid next size (normal)"))

OVERRUN = """\
import ctypes

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
block = libc.malloc(1040)
ctypes.memset(block + 1040, 0xC5, 24)
libc.free(ctypes.c_void_p(block))
libc.abort()
"""

SOUND = OVERRUN.replace("block + 1040, 0xC5, 24", "block, 0xC5, 1040").replace("libc.abort()\n", "")


def script_of(text: str, folder: Path) -> Path:
    path = folder / "repro.py"
    path.write_text(text, "utf-8")
    return path


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed; it is optional")
def test_valgrind_names_the_write(tmp_path: Path) -> None:
    found = first_bad_access(script_of(OVERRUN, tmp_path), CORRUPTED)
    assert found is not None
    assert found.checker == MEMCHECK
    assert found.what.startswith("writes ")
    assert "after a block of size 1,040" in found.where
    assert "memset" in found.frames[0]


def has_checking_allocator() -> bool:
    if sys.platform != "linux":
        return False
    try:
        ctypes.CDLL("libc_malloc_debug.so.0")
    except OSError:
        return False
    return True


@pytest.mark.skipif(not has_checking_allocator(), reason="this system's C library has no libc_malloc_debug.so.0")
def test_glibc_finds_the_heap_corrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # as on a machine without valgrind
    found = first_bad_access(script_of(OVERRUN, tmp_path), CORRUPTED, sys.executable)
    assert found is not None
    assert found.checker == GLIBC
    assert "free(): invalid" in found.what


def test_a_sound_script_has_no_bad_access(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert first_bad_access(script_of(SOUND, tmp_path), CORRUPTED, sys.executable) is None
