"""Frames on a stream socket: a prefix, a JSON header, raw buffers. Never pickle.

    "MCF1"  header length (u32)  body length (u64)  header (ASCII JSON, or nothing)  body

Buffers lie in the body at multiples of 16 bytes, so that arrays over a received body are aligned.
"""

import json
import socket
import struct
from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple, ParamSpec, TypeAlias, TypeVar

from miscompile.base.errors import ExecutionError, SpecError

HeaderValue: TypeAlias = Any
"""Any value that `json` reads and writes."""

MAGIC = b"MCF1"
CHUNK = 1 << 18
"""Bytes that are received at once."""

LARGEST_HEADER = 1 << 28
LARGEST_BODY = 1 << 34

_PREFIX = struct.Struct("<4sIQ")
_ALIGNMENT = 16
_PADDING = tuple(bytes(-length % _ALIGNMENT) for length in range(_ALIGNMENT))
_MALFORMED = (
    KeyError,
    IndexError,
    TypeError,
    ValueError,
    AttributeError,
    OverflowError,
    RecursionError,
    MemoryError,
    struct.error,
    SpecError,
)
_dumps = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
_parse = json.JSONDecoder().raw_decode  # `loads` would look for an encoding and for white space around the value

P = ParamSpec("P")
T = TypeVar("T")


class Frame(NamedTuple):
    """A received frame: the parsed header (None when it has none) and the body's bytes."""

    header: HeaderValue
    body: bytes


def strict(decode: Callable[P, T]) -> Callable[P, T]:
    """Turn every error of a decoder into ExecutionError, because the frame came from a process that may be corrupt."""

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
        # Allocated once, because `recv` would allocate a buffer of this size, a system mapping, for each call.
        self._landing = memoryview(bytearray(CHUNK))

    def receive(self, channel: socket.socket) -> int:
        """Append at most `CHUNK` bytes from `channel`; return their number, 0 at its end.

        Raises the errors of `recv`, BlockingIOError among them.
        """
        count = channel.recv_into(self._landing)
        self._bytes += self._landing[:count]
        return count

    def feed(self, data: bytes) -> None:
        """Append bytes that were received."""
        self._bytes += data

    @strict
    def take(self) -> Frame | None:
        """Remove and return the first frame, None while it is incomplete. Raises ExecutionError for a malformed one."""
        stream = self._bytes
        if len(stream) < _PREFIX.size:
            if not MAGIC.startswith(stream[: len(MAGIC)]):
                raise ValueError("bad magic")
            return None
        magic, header_length, body_length = _PREFIX.unpack_from(stream)
        if magic != MAGIC or header_length > LARGEST_HEADER or body_length > LARGEST_BODY:
            raise ValueError("bad prefix")
        start = _PREFIX.size + header_length
        end = start + body_length
        if len(stream) < end:
            return None
        text = stream[_PREFIX.size : start].decode("ascii")
        with memoryview(stream) as view:
            body = bytes(view[start:end])
        del stream[:end]
        if not text:
            return Frame(None, body)
        header, length = _parse(text)
        if length != len(text):
            raise ValueError("more than one value in the header")
        return Frame(header, body)


class FrameBody:
    """Collects the buffers of a frame under construction."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._length = 0

    def add(self, data: bytes) -> int:
        """Append `data` and return its offset."""
        offset, size = self._length, len(data)
        self._pieces += (data, _PADDING[size % _ALIGNMENT])
        self._length = offset + size + -size % _ALIGNMENT
        return offset

    def frame(self, header: HeaderValue) -> bytes:
        """Return the finished frame; None makes an empty header."""
        text = b"" if header is None else _dumps(header).encode("ascii")
        return b"".join((_PREFIX.pack(MAGIC, len(text), self._length), text, *self._pieces))
