"""The flight recorder and the printed text of a worker can be read by another holder of the same memory."""

import os
import time
from collections.abc import Iterator

import pytest

from miscompile.execution.flight_recorder import COLLECT, COMPILE, IDLE, REPLY, RUN, TAIL, Printed, Recorder


@pytest.fixture
def printed() -> Iterator[Printed]:
    made = Printed(Printed.create(10_000))
    yield made
    made.close()


def test_the_position_is_seen_by_the_other_side() -> None:
    fd = Recorder.create()
    writer, reader = Recorder(fd), Recorder(fd)
    os.close(fd)
    assert reader.read().step == IDLE
    before = time.monotonic()
    writer.begin(2**40, 3)
    place = reader.read()
    assert (place.sequence, place.run, place.stage, place.timed) == (2**40, 3, "load", True)
    assert before <= place.start <= time.monotonic()
    seen = []
    for step in (COMPILE, RUN, COLLECT, REPLY, IDLE):
        writer.step(step)
        place = reader.read()
        assert (place.sequence, place.run) == (2**40, 3)
        seen.append((place.stage, place.timed))
    assert seen == [("compile", True), ("run", True), ("collect", True), ("collect", False), ("run", False)]
    writer.close()
    reader.close()


def test_held_replies_are_seen_by_the_other_side_until_they_are_released() -> None:
    fd = Recorder.create()
    writer, reader = Recorder(fd), Recorder(fd)
    os.close(fd)
    assert reader.held() == b""
    writer.begin(3, 1)
    assert writer.hold(b"one")
    assert writer.hold(b"two")
    assert reader.held() == b"onetwo"
    assert not writer.hold(bytes(1 << 20))
    assert reader.held() == b"onetwo"
    assert (reader.read().sequence, reader.read().run) == (3, 1)
    writer.release()
    assert reader.held() == b""
    assert writer.hold(b"x")
    assert reader.held() == b"x"
    writer.close()
    reader.close()


def test_printed_text_is_shared_reset_and_capped(printed: Printed) -> None:
    other = Printed(os.dup(printed.fd))
    assert (printed.text(), printed.tail()) == ("", "")
    os.write(printed.fd, "é\xff".encode("latin-1") + b" end")
    assert other.text() == "\ufffd\ufffd end"
    printed.reset()
    assert other.text() == ""
    os.write(printed.fd, b"z" * 3_000 + b"last")
    assert len(other.text()) == 3_004
    assert other.tail() == "z" * (TAIL - 4) + "last"
    other.close()


def test_printing_beyond_the_limit_fails_and_takes_no_memory(printed: Printed) -> None:
    written = os.write(printed.fd, b"a" * 20_000)
    assert 0 < written <= 10_000
    with pytest.raises(OSError):
        os.write(printed.fd, b"a" * 20_000)
    assert printed.text() == "a" * written
    assert os.fstat(printed.fd).st_size == 10_000


def test_an_absurd_offset_does_no_harm(printed: Printed) -> None:
    os.lseek(printed.fd, 2**60, os.SEEK_SET)
    assert len(printed.text()) == 10_000
    assert len(printed.tail()) == TAIL
