"""Arrays between guard pages: an access outside ends the process and is described, a write into the slack is found."""

import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from miscompile.targets.guards import (
    ALIGNMENT,
    CANARY,
    PLACES,
    GuardedArray,
    OverrunError,
    guarded,
    require_intact,
    target_of,
    watched,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="signals and mprotect are Linux's here")

_BEGIN = """
import numpy as np
from numpy.lib.stride_tricks import as_strided
from miscompile.targets.guards import *
values = np.arange(7, dtype=np.float32)
"""


def _died(script: str) -> str:
    """Run a script that must die of SIGSEGV; return its last line about guarded memory."""
    done = subprocess.run(
        [sys.executable, "-c", _BEGIN + textwrap.dedent(script)], capture_output=True, text=True, check=False
    )
    assert done.returncode == -signal.SIGSEGV, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("guard: ")]
    return line.partition(", in ")[0]


@pytest.mark.parametrize("place", PLACES)
def test_the_copy_is_equal_and_lies_where_it_is_asked_to(place: str) -> None:
    values = np.arange(21, dtype=np.float16).reshape(3, 7)
    guard = GuardedArray("x", "input", values, place)
    assert guard.array.dtype == values.dtype
    np.testing.assert_array_equal(guard.array, values)
    address, end = guard.array.ctypes.data, guard.first + guard.inner
    assert {
        "end": address + 42 == end,
        "begin": address == guard.first,
        "aligned": address % ALIGNMENT == 0 and end - address - 42 < ALIGNMENT,
    }[place]


@pytest.mark.parametrize("shape", [(), (0,), (4096,), (4097,)])
def test_every_size_has_pages(shape: tuple[int, ...]) -> None:
    values = np.ones(shape, np.uint8)
    for place in PLACES:
        np.testing.assert_array_equal(guarded("x", "input", values, place).array, values)


def test_a_read_of_one_element_behind_the_end_dies() -> None:
    said = _died("""
        guard = guarded("x", "input", values, "end")
        with watched([guard], 63):
            as_strided(guard.array, (8,)).copy()
        """)
    assert said == "guard: reads behind the end of input 'x' (28 bytes) at byte 28"


def test_a_write_behind_the_end_dies() -> None:
    said = _died("""
        guard = target_of("y", values, "end", 63)
        with watched([guard], 63):
            as_strided(guard.array, (9,))[8] = 1
        """)
    assert said == "guard: writes behind the end of output 'y' (28 bytes) at byte 32"


def test_a_read_before_the_beginning_dies() -> None:
    said = _died("""
        guard = guarded("x", "input", values, "begin")
        with watched([guard], 63):
            ctypes.string_at(guard.array.ctypes.data - 4, 4)
        """)
    assert said == "guard: reads before the beginning of input 'x' (28 bytes) at byte -4"


def test_a_write_into_an_input_dies() -> None:
    said = _died("""
        guard = guarded("x", "input", values, "aligned")
        with watched([guard], 63):
            guard.array[3] = 1
        """)
    assert said == "guard: writes into input 'x' (28 bytes) at byte 12"


def test_another_death_is_told_from_those() -> None:
    said = _died("""
        with watched([guarded("x", "input", values, "end")], 63):
            ctypes.string_at(8)
        """)
    assert said == "guard: reads memory that is near no guarded array"


def test_the_handler_of_before_is_back_and_gets_the_fault() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", f"{_BEGIN}\nwith watched([], 63): pass\nctypes.string_at(8)"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == -signal.SIGSEGV
    assert "Fatal Python error" in done.stderr
    assert "guard:" not in done.stderr


@pytest.mark.parametrize(
    ("place", "beyond", "said"),
    [
        ("aligned", 28, "guard: writes behind the end of output 'y' (28 bytes) at byte 28"),
        ("begin", 40, "guard: writes behind the end of output 'y' (28 bytes) at byte 40"),
        ("end", -1, "guard: writes before the beginning of output 'y' (28 bytes) at byte -1"),
    ],
)
def test_canaries_notice_a_write(place: str, beyond: int, said: str) -> None:
    guard = target_of("y", np.arange(7, dtype=np.float32), place, 63)
    guard.array[...] = 1
    require_intact([guard])
    guard.bytes[guard.offset + beyond] ^= 1
    with pytest.raises(OverrunError) as caught:
        require_intact([guard])
    assert str(caught.value) == said


def test_a_place_for_an_output_holds_the_fill() -> None:
    guard = target_of("y", np.ones((2, 3), np.int32), "end", 0x3F)
    assert guard.array.tolist() == [[0x3F3F3F3F] * 3] * 2
    assert set(guard.bytes[: guard.offset].tolist()) == {CANARY}


@pytest.mark.parametrize("size", [200, 1000, 5000, 300_000])
def test_fresh_memory_holds_the_fill(size: int) -> None:
    script = f"""
        LIBC.malloc.restype = ctypes.c_void_p
        for fill in (0x3F, 0xC1):
            with watched([], fill):
                # glibc fills no block of its thread caches, which it refills from its lists of freed blocks.
                blocks = [LIBC.malloc({size}) for _ in range({400 if size <= 5000 else 8})]
                held = ctypes.string_at(blocks[-1] + 16, {size} - 16)
                assert set(held) == {{fill}}, set(held)
                for block in blocks:
                    LIBC.free(ctypes.c_void_p(block))
        """
    done = subprocess.run(
        [sys.executable, "-c", _BEGIN + textwrap.dedent(script)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_process_can_go_on() -> None:
    guard = guarded("x", "input", np.ones(3), "end")
    with watched([guard], 0xC1):
        assert guard.array.sum() == 3
    assert guarded("z", "input", np.ones(5), "begin").array.sum() == 5
