"""Frames on a stream socket: a prefix, a JSON header, raw buffers. Never pickle.

    "MCF1"  header length (u32)  body length (u64)  header (ASCII JSON)  body

Buffers lie in the body at multiples of 16 bytes, so that arrays over a received body are aligned.
"""

import json
import struct
from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple, ParamSpec, TypeAlias, TypeVar

from miscompile.base.errors import ExecutionError

Json: TypeAlias = Any
"""What `json` reads and writes."""

MAGIC = b"MCF1"
LARGEST_HEADER = 1 << 28
LARGEST_BODY = 1 << 34

_PREFIX = struct.Struct("<4sIQ")
_ALIGNMENT = 16
_PADDING = tuple(bytes(-length % _ALIGNMENT) for length in range(_ALIGNMENT))
_MALFORMED = (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, RecursionError, MemoryError)
_dumps = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode

P = ParamSpec("P")
T = TypeVar("T")


class Frame(NamedTuple):
    """A received frame: the parsed header and the body's bytes."""

    header: Json
    body: bytes


def strict(decode: Callable[P, T]) -> Callable[P, T]:
    """Turn whatever a decoder trips over into ExecutionError: the frame came from a process that may be corrupt."""

    @wraps(decode)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return decode(*args, **kwargs)
        except _MALFORMED as error:
            raise ExecutionError(f"malformed frame: {type(error).__name__}: {error}") from None

    return guarded


class FrameBuffer:
    """Cuts a stream of bytes into frames."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> None:
        """Append bytes that were received."""
        self._bytes += data

    @strict
    def take(self) -> Frame | None:
        """Remove and return the first frame, None while it is incomplete. Raises ExecutionError for a malformed one."""
        if len(self._bytes) < _PREFIX.size:
            if not MAGIC.startswith(self._bytes[: len(MAGIC)]):
                raise ValueError("bad magic")
            return None
        magic, header_length, body_length = _PREFIX.unpack_from(self._bytes)
        if magic != MAGIC or header_length > LARGEST_HEADER or body_length > LARGEST_BODY:
            raise ValueError("bad prefix")
        start = _PREFIX.size + header_length
        end = start + body_length
        if len(self._bytes) < end:
            return None
        with memoryview(self._bytes) as view:
            header, body = bytes(view[_PREFIX.size : start]), bytes(view[start:end])
        del self._bytes[:end]
        return Frame(json.loads(header), body)


class Body:
    """Collects the buffers of a frame under construction."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._length = 0

    def add(self, data: bytes) -> int:
        """Append `data` and return its offset."""
        offset = self._length
        padding = _PADDING[len(data) % _ALIGNMENT]
        self._pieces += (data, padding)
        self._length = offset + len(data) + len(padding)
        return offset

    def frame(self, header: Json) -> bytes:
        """Return the finished frame."""
        text = _dumps(header).encode("ascii")
        return b"".join((_PREFIX.pack(MAGIC, len(text), self._length), text, *self._pieces))
