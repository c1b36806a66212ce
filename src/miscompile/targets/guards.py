"""Arrays between guard pages, and a report of the access that hits one; standalone scripts contain what they need.

A guarded array lies in pages of its own. Before and behind these are pages that nobody may touch, so that an access
outside of the array ends the process at once, at a known address, where the heap would have given whatever lies
there. Bytes of the pages that are not part of the array hold `CANARY`, and `GuardedArray.damage` finds those that have
changed. `watched` reports the faulting access, and gives fresh memory a value of the caller's choice, so that two runs
with different values differ if a result depends on memory that nobody has written.

Linux with glibc only; on other systems memory is guarded, but accesses are not described and fresh memory is not
filled.
"""

import contextlib
import ctypes
import mmap
import os
import platform
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

GUARDED = "guarded"
"""The name of the transform with which an adapter uses guarded memory."""

PLACES = ("end", "begin", "aligned")
"""Where an array lies in its pages. `end`: its last byte is the last one before the guard page, and its start has the
alignment of its element type. `begin`: its first byte is the first one behind the other guard page. `aligned`: as near
to the end as a start at a multiple of `ALIGNMENT` allows."""

ALIGNMENT = 64
"""Bytes: the alignment that ONNX Runtime and OpenVINO give to memory that they allocate themselves."""

CANARY = 0xC5
"""The value of every byte around an array."""

SAYS = "guard:"
"""The beginning of a line that describes an access outside of an array, or into one that nobody may write."""

LIBC = ctypes.CDLL(None)
PROT_NONE = 0
M_PERTURB = -6
"""glibc's option of `mallopt`: fresh memory gets the complement of this byte, freed memory the byte itself."""

TCACHE_SIZES = range(24, 1033, 16)
TCACHE_COUNT = 7
"""Sizes of blocks that glibc keeps in a thread's own cache, in bytes, and the blocks of each size."""

SA_SIGINFO, SA_NODEFER = 0x4, 0x40000000
NO_ADDRESS = 128
"""`si_code` of a fault without an address: a misaligned operand, or an address that no memory can have."""

REGISTERS = {"x86_64": (168, 192)}
"""Offsets in bytes of the program counter and of the error code in a signal's `ucontext_t`, by machine."""

C_MALLOC = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)
C_FREE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
HANDLER = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


@dataclass(frozen=True, slots=True)
class Guarded:
    """The program runs with inputs, outputs and, where the compiler takes them, initializers between guard pages.

    `place` is one of `PLACES`. Fresh memory and unwritten outputs hold the byte `fill`. With `taps`, the values inside
    of the program are outputs as well, where the compiler can be asked for them, so that their memory is guarded too.
    `seed` has no effect.
    """

    seed: int = 0
    place: Literal["end", "begin", "aligned"] = "end"
    fill: int = 63
    taps: bool = False


class SignalAction(ctypes.Structure):
    """glibc's `struct sigaction`."""

    _fields_ = (
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_ubyte * 128),
        ("flags", ctypes.c_uint),
        ("restorer", ctypes.c_void_p),
    )


class SymbolInfo(ctypes.Structure):
    """glibc's `Dl_info`."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("start", ctypes.c_void_p),
    )


class OverrunError(Exception):
    """Bytes around an array have changed; the message is a line as faults print it."""


class GuardedArray:
    """The memory of a copy of the array `like`, which lies at `place` (one of `PLACES`) in pages of its own.

    `name` and `role` (`input`, `output`, `initializer`) are for messages. The pages live as long as an array on them.
    """

    def __init__(self, name: str, role: str, like: NDArray[np.generic], place: str) -> None:
        page, size = mmap.PAGESIZE, like.nbytes
        self.name, self.role = name, role
        self.inner = max(1, -(-size // page)) * page
        pages = mmap.mmap(-1, self.inner + 2 * page, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        whole = np.frombuffer(pages, np.uint8)
        self.first = int(whole.ctypes.data) + page
        self.bytes = whole[page : page + self.inner]
        self.bytes[:] = CANARY
        start = self.inner - size
        self.offset = {"end": start, "begin": 0, "aligned": start - start % ALIGNMENT}[place]
        self.size = size
        self.array = self.bytes[self.offset : self.offset + size].view(like.dtype).reshape(like.shape)
        self.array[...] = like
        for edge in (self.first - page, self.first + self.inner):
            protect(edge, page, PROT_NONE)

    def freeze(self) -> None:
        """Make writes into the array faults as well: for memory that a program may only read."""
        protect(self.first, self.inner, mmap.PROT_READ)

    def near(self, address: int) -> bool:
        """Tell whether an address is in the pages of the array or in a guard page."""
        return self.first - mmap.PAGESIZE <= address < self.first + self.inner + mmap.PAGESIZE

    def relation(self, address: int, verb: str) -> str:
        """Return one line about an access at `address`: `guard: reads behind the end of input 'x' (8 bytes) at byte 8`.

        Bytes count from the beginning of the array.
        """
        byte = address - self.first - self.offset
        where = "behind the end of" if byte >= self.size else "before the beginning of" if byte < 0 else "into"
        return f"{SAYS} {verb} {where} {self.role} '{self.name}' ({self.size} bytes) at byte {byte}"

    def damage(self) -> str:
        """Return one line about the first byte around the array that has changed, an empty text if none has."""
        end = self.offset + self.size
        for first, part in ((end, self.bytes[end:]), (0, self.bytes[: self.offset])):
            changed = np.flatnonzero(part != CANARY)
            if changed.size:
                place = first + int(changed[0] if first else changed[-1])
                return self.relation(self.first + place, "writes")
        return ""


def protect(address: int, size: int, access: int) -> None:
    """Call mprotect. Raises OSError when it fails."""
    if LIBC.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), access):
        raise OSError(f"mprotect of {size} bytes failed")


def guarded(name: str, role: str, array: NDArray[np.generic], place: str) -> GuardedArray:
    """Return a guarded copy of an array that a program only reads."""
    guard = GuardedArray(name, role, array, place)
    guard.freeze()
    return guard


def target_of(name: str, like: NDArray[np.generic], place: str, fill: int) -> GuardedArray:
    """Return guarded memory for an output of the type and shape of `like`, every byte of it `fill`."""
    guard = GuardedArray(name, "output", np.empty_like(like, order="C"), place)
    guard.bytes[guard.offset : guard.offset + guard.size] = fill
    return guard


def require_intact(guards: Sequence[GuardedArray]) -> None:
    """Raise OverrunError when bytes around one of the arrays have changed."""
    for guard in guards:
        said = guard.damage()
        if said:
            raise OverrunError(said)


@contextlib.contextmanager
def watched(guards: Sequence[GuardedArray], fill: int) -> Iterator[None]:
    """While the context lasts, describe a fault near `guards` on descriptor 2, and fill fresh memory with `fill`.

    The description is one line. Then the handler that was there before gets the fault again, which kills the process.
    """
    before, action = SignalAction(), SignalAction()

    def describe(number: int, told: int, context: int) -> None:
        LIBC.sigaction(number, ctypes.byref(before), None)
        os.write(2, f"\n{fault_of(guards, told, context)}\n".encode("utf-8", "backslashreplace"))

    handler = HANDLER(describe)
    action.handler = ctypes.cast(handler, ctypes.c_void_p).value
    action.flags = SA_SIGINFO | SA_NODEFER
    describes = platform.system() == "Linux"
    if describes:
        LIBC.sigaction(signal.SIGSEGV, ctypes.byref(action), ctypes.byref(before))
    fill_fresh_memory(fill)
    try:
        yield
    finally:
        if hasattr(LIBC, "mallopt"):
            LIBC.mallopt(M_PERTURB, 0)
        if describes:
            LIBC.sigaction(signal.SIGSEGV, ctypes.byref(before), None)


def fault_of(guards: Sequence[GuardedArray], told: int, context: int) -> str:
    """Return one line about a fault, from the addresses of the signal's `siginfo_t` and `ucontext_t`."""
    code = ctypes.c_int.from_address(told + 8).value
    address = ctypes.c_uint64.from_address(told + 16).value
    counter, error = REGISTERS.get(platform.machine(), (0, 0))
    verb, where = "touches", ""
    if counter:
        verb = "writes" if ctypes.c_uint64.from_address(context + error).value & 2 else "reads"
        where = f", in {code_at(ctypes.c_uint64.from_address(context + counter).value)}"
    if code == NO_ADDRESS:
        return f"{SAYS} a misaligned operand or an impossible address{where}"
    for guard in guards:
        if guard.near(address):
            return guard.relation(address, verb) + where
    return f"{SAYS} {verb} memory that is near no guarded array{where}"


def code_at(address: int) -> str:
    """Return library and offset of an instruction; instructions outside of libraries are generated code."""
    info = SymbolInfo()
    if not LIBC.dladdr(ctypes.c_void_p(address), ctypes.byref(info)) or not info.file:
        return "generated code"
    return f"{os.path.basename(info.file.decode())}+{address - (info.base or 0):#x}"


def fill_fresh_memory(fill: int) -> None:
    """Let glibc fill memory with the byte `fill` when it is allocated, until another value is set.

    Small blocks that the thread has freed are not filled when they are used again. So such blocks are filled here.
    """
    if not hasattr(LIBC, "mallopt"):
        return
    LIBC.mallopt(M_PERTURB, fill ^ 0xFF)
    allocate, release, content = C_MALLOC(("malloc", LIBC)), C_FREE(("free", LIBC)), bytes([fill]) * TCACHE_SIZES[-1]
    blocks = []
    for size in TCACHE_SIZES:
        for _ in range(TCACHE_COUNT):
            block = allocate(size)
            ctypes.memmove(block, content, size)
            blocks.append(block)
    for block in blocks:
        release(block)
