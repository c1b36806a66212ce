"""Frames: everything that is sent arrives, and nothing else is accepted."""

import json
import socket
import struct
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from miscompile.base.dtypes import DTYPES
from miscompile.base.errors import ExecutionError
from miscompile.base.specs import Spec, parse_spec
from miscompile.core.case import Case, Port, Program
from miscompile.core.outcome import (
    Crashed,
    Measured,
    Observations,
    Outcome,
    OutOfMemory,
    Raised,
    Rejected,
    TimedOut,
    Unsupported,
    Values,
)
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Tensor
from miscompile.execution.frames import MAGIC, Frame, FrameBuffer
from miscompile.execution.wire import (
    STAGES,
    Reply,
    ReplyDecoder,
    ReplyEncoder,
    answered_by,
    decode_batch,
    encode_batch,
)

TEXT = st.text(max_size=8)
SHAPES = st.lists(st.integers(0, 3), max_size=3).map(tuple)
SECONDS = st.floats(0, 1e6)


@st.composite
def tensors(draw: st.DrawFn) -> Tensor:
    dtype = draw(st.sampled_from(sorted(DTYPES)))
    shape = draw(SHAPES)
    count = int(np.prod(shape))
    if dtype == "string":
        array = np.empty(count, object)
        array[:] = draw(st.lists(TEXT, min_size=count, max_size=count))
    else:
        storage = DTYPES[dtype].storage
        size = count * storage.itemsize
        array = np.frombuffer(draw(st.binary(min_size=size, max_size=size)), storage)
    return Tensor(dtype, array.reshape(shape))


DIMS = st.none() | st.integers(0, 9) | TEXT
PORTS = st.builds(Port, TEXT, st.sampled_from(sorted(DTYPES)), st.none() | st.lists(DIMS).map(tuple), st.booleans())
PROGRAMS = st.builds(
    Program,
    TEXT,
    st.binary(max_size=40),
    st.lists(PORTS, max_size=3).map(tuple),
    st.lists(PORTS, max_size=3).map(tuple),
)
FEEDS = st.lists(st.lists(tensors(), max_size=3).map(tuple), max_size=3).map(tuple)
NAMES = st.frozensets(TEXT.filter(lambda text: text and "\n" not in text))
TRANSFORMS = st.sampled_from([None, Spec("again"), parse_spec("functions{seed=3, rewrite=forward}")])
PASSES = st.sampled_from([(), ("FuseOps", "FuseTIR")])
BUILDS = st.builds(Build, TEXT, NAMES, st.integers(1, 8), TEXT, st.booleans(), TRANSFORMS, PASSES, st.integers(0, 4))
RUNS = st.builds(Run, st.builds(Case, PROGRAMS, FEEDS), TEXT, BUILDS, st.sampled_from(["fuzz", "judge", "reduce"]))
BYTES = st.integers(0, 2**50)
MEASURED = st.none() | st.builds(Measured, SECONDS, SECONDS, st.integers(0, 9), BYTES, BYTES)
SEEN = st.builds(Observations, SECONDS, SECONDS, BYTES, st.lists(TEXT).map(tuple), TEXT, SECONDS, MEASURED)
STAGE = st.sampled_from(STAGES)
FAILURES = st.one_of(
    st.builds(Rejected, STAGE, TEXT, SEEN),
    st.builds(Unsupported, STAGE, TEXT, SEEN, TEXT),
    st.builds(Raised, STAGE, TEXT, TEXT, st.lists(TEXT).map(tuple), SEEN),
    st.builds(Crashed, STAGE, st.integers(-255, 64), SEEN),
    st.builds(TimedOut, STAGE, SECONDS, SEEN),
    st.builds(OutOfMemory, STAGE, TEXT, SEEN),
)
RESULTS = st.lists(st.lists(st.none() | tensors(), max_size=3).map(tuple), max_size=2).map(tuple)
OUTCOMES = FAILURES | st.builds(Values, RESULTS, SEEN)


def received(data: bytes) -> Frame:
    buffer = FrameBuffer()
    buffer.feed(data)
    frame = buffer.take()
    assert frame is not None
    assert buffer.take() is None
    return frame


def same_feeds(left: Case, right: Case) -> bool:
    return [len(feed) for feed in left.feeds] == [len(feed) for feed in right.feeds] and all(
        a.same(b) for one, other in zip(left.feeds, right.feeds, strict=True) for a, b in zip(one, other, strict=True)
    )


def same_outcomes(left: Outcome, right: Outcome) -> bool:
    if not (isinstance(left, Values) and isinstance(right, Values)):
        return left == right
    return (
        left.observations == right.observations
        and [len(row) for row in left.results] == [len(row) for row in right.results]
        and all(
            (a is None and b is None) or (a is not None and b is not None and a.same(b))
            for one, other in zip(left.results, right.results, strict=True)
            for a, b in zip(one, other, strict=True)
        )
    )


@given(st.lists(RUNS, max_size=3), st.integers(0, 2**62))
def test_batches_arrive_as_they_were_sent(runs: list[Run], number: int) -> None:
    sequence, arrived = decode_batch(received(encode_batch(number, runs)))
    assert sequence == number
    assert len(arrived) == len(runs)
    for sent, got in zip(runs, arrived, strict=True):
        assert got.case.program == sent.case.program
        assert same_feeds(got.case, sent.case)
        assert replace(got, case=sent.case) == sent


@given(RUNS, BUILDS)
def test_what_runs_share_is_stored_once(run: Run, other: Build) -> None:
    twin = Case(run.case.program, run.case.feeds)
    runs = [run, replace(run, build=other), replace(run, case=twin)]
    _, arrived = decode_batch(received(encode_batch(1, runs)))
    assert arrived[0].case is arrived[1].case
    assert arrived[0].case.program is arrived[2].case.program
    for one, two in zip(arrived[0].case.feeds, arrived[2].case.feeds, strict=True):
        assert all(a is b for a, b in zip(one, two, strict=True))


@given(OUTCOMES, st.integers(0, 2**60), st.integers(0, 2**30))
def test_a_reply_tells_to_what_it_belongs(outcome: Outcome, sequence: int, index: int) -> None:
    assert answered_by(received(ReplyEncoder(sequence).encode(index, outcome))) == (sequence, index)
    with pytest.raises(ExecutionError):
        answered_by(Frame(None, b""))


@given(st.lists(OUTCOMES, max_size=4))
def test_outcomes_arrive_as_they_were_sent(outcomes: list[Outcome]) -> None:
    encoder, decoder = ReplyEncoder(7), ReplyDecoder()
    for index, outcome in enumerate(outcomes):
        reply = decoder.decode(received(encoder.encode(index, outcome, leaving=index == 2)))
        assert (reply.sequence, reply.run, reply.leaving) == (7, index, index == 2)
        assert same_outcomes(reply.outcome, outcome)


@given(RESULTS)
def test_equal_results_become_the_same_object(results: tuple[tuple[Tensor | None, ...], ...]) -> None:
    encoder, decoder = ReplyEncoder(0), ReplyDecoder()
    copies = tuple(tuple(t and Tensor(t.dtype, t.array.copy()) for t in row) for row in results)
    first, second = (
        decoder.decode(received(encoder.encode(index, Values(value)))).outcome
        for index, value in enumerate((results, copies))
    )
    assert isinstance(first, Values)
    assert isinstance(second, Values)
    for one, other in zip(first.results, second.results, strict=True):
        assert all(a is b for a, b in zip(one, other, strict=True))


def test_what_is_equal_beside_something_that_differs_is_a_reference_too() -> None:
    same, other = Tensor("int8", np.arange(3, dtype=np.int8)), Tensor("int8", np.zeros(3, np.int8))
    encoder, decoder = ReplyEncoder(0), ReplyDecoder()
    rows = [((same, same),), ((same, other),), ((same, same), (same,)), ((same, other),)]
    replies = [decoder.decode(received(encoder.encode(n, Values(row)))).outcome for n, row in enumerate(rows)]
    first, second, third, fourth = (reply.results for reply in replies if isinstance(reply, Values))
    assert first[0][0] is second[0][0] is third[0][0]
    assert first[0][1] is third[0][1] is not second[0][1]
    assert first[0][1] is not None
    assert first[0][1].same(same)
    assert fourth is second


@pytest.mark.parametrize(
    "other",
    [
        Tensor("float32", np.array([0.0, np.nan], np.float32)),
        Tensor("float32", np.array([[-0.0, np.nan]], np.float32)),
        Tensor("int32", np.array([-0.0, np.nan], np.float32).view(np.int32)),
    ],
)
def test_other_bits_shape_or_type_are_no_reference(other: Tensor) -> None:
    first = Tensor("float32", np.array([-0.0, np.nan], np.float32))
    encoder, decoder = ReplyEncoder(0), ReplyDecoder()
    decoder.decode(received(encoder.encode(0, Values(((first,),)))))
    outcome = decoder.decode(received(encoder.encode(1, Values(((other,),))))).outcome
    assert isinstance(outcome, Values)
    got = outcome.results[0][0]
    assert got is not None
    assert got.same(other)


def test_strided_and_unaligned_arrays_arrive_aligned() -> None:
    strided = Tensor("float64", np.arange(12.0).reshape(3, 4).T[::2])
    odd = Tensor("uint8", np.arange(3, dtype=np.uint8))
    reply = ReplyDecoder().decode(received(ReplyEncoder(0).encode(0, Values(((odd, strided),)))))
    assert isinstance(reply.outcome, Values)
    got = reply.outcome.results[0][1]
    assert got is not None
    assert got.same(strided)
    assert got.array.flags.aligned
    assert not got.array.flags.writeable


@given(st.lists(OUTCOMES, min_size=1, max_size=3), st.integers(1, 40))
def test_frames_survive_any_cutting_of_the_stream(outcomes: list[Outcome], size: int) -> None:
    encoder, decoder, buffer = ReplyEncoder(3), ReplyDecoder(), FrameBuffer()
    data = b"".join(encoder.encode(index, outcome) for index, outcome in enumerate(outcomes))
    replies: list[Reply] = []
    for begin in range(0, len(data), size):
        buffer.feed(data[begin : begin + size])
        while (frame := buffer.take()) is not None:
            replies.append(decoder.decode(frame))
    assert [reply.run for reply in replies] == list(range(len(outcomes)))
    assert all(same_outcomes(reply.outcome, sent) for reply, sent in zip(replies, outcomes, strict=True))


def test_frames_arrive_through_a_channel() -> None:
    near, far = socket.socketpair()
    with near, far:
        far.setblocking(False)
        buffer, decoder = FrameBuffer(), ReplyDecoder()
        with pytest.raises(BlockingIOError):
            buffer.receive(far)
        near.send(ReplyEncoder(5).encode(0, Values(())))
        assert buffer.receive(far) > 0
        frame = buffer.take()
        assert frame is not None
        assert decoder.decode(frame).sequence == 5
        near.close()
        assert buffer.receive(far) == 0


@pytest.mark.parametrize(
    "data",
    [
        b"garbage that is no frame",
        b"X",
        MAGIC + b"\xff" * 12,
        MAGIC + (3).to_bytes(4, "little") + (0).to_bytes(8, "little") + b"{[}",
        MAGIC + (2).to_bytes(4, "little") + (0).to_bytes(8, "little") + b"\xff\xfe",
        MAGIC + (3).to_bytes(4, "little") + (0).to_bytes(8, "little") + b"[]]",
        MAGIC + (40_000).to_bytes(4, "little") + (0).to_bytes(8, "little") + b"[" * 40_000,
    ],
)
def test_streams_that_are_no_frames_are_refused(data: bytes) -> None:
    buffer = FrameBuffer()
    buffer.feed(data)
    with pytest.raises(ExecutionError):
        buffer.take()


KINDS = get_args(Outcome)


def head(kind: type[Outcome], same: int = -1) -> bytes:
    return struct.pack("<QIBBidddQ", 0, 0, 0, KINDS.index(kind), same, 0.0, 0.0, 0.0, 0)


@pytest.mark.parametrize("results", [(), ((None,),)])
def test_a_reply_with_nothing_but_its_head_is_understood(results: tuple[tuple[None, ...], ...]) -> None:
    encoder, decoder = ReplyEncoder(0), ReplyDecoder()
    decoder.decode(received(encoder.encode(0, Values(results))))
    frame = received(encoder.encode(1, Values(results)))
    assert frame.header is None
    assert decoder.decode(frame).outcome == Values(results)


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        (Values, None),
        (Values, 5),
        (Values, [[["float32", [1, 1], 60]]]),  # beyond the body
        (Values, [[["float32", [1], -4]]]),
        (Values, [[["float32", [-1], 0]]]),
        (Values, [[["float32", [2**62, 4], 0]]]),
        (Values, [[["float31", [1], 0]]]),
        (Values, [[["string", [2], ["a"]]]]),
        (Values, [[["string", [1], [1]]]]),
        (Values, [[5]]),  # a reference to nothing
        (Values, [[-1]]),
        (Crashed, ["nowhere", 11]),
        (Crashed, ["run", "11"]),
        (Crashed, []),
        (Crashed, None),
        (Raised, ["run", "Error", "text", [1]]),
    ],
)
def test_malformed_replies_are_refused(kind: type[Outcome], content: object) -> None:
    body = head(kind)
    assert len(body) <= 60
    with pytest.raises(ExecutionError):
        ReplyDecoder().decode(Frame([[], "", content], body))


@pytest.mark.parametrize(
    ("header", "body"),
    [
        ([[], "", [[]]], b""),
        ([[], "", [[]]], head(Values)[:-1]),
        ([[], "", ["run", 1]], head(Crashed).replace(bytes([KINDS.index(Crashed)]), b"\x09")),  # no such kind
        ([[], 5, [[]]], head(Values)),
        ([[], ""], head(Values)),
        (None, head(Values, same=0)),  # the same as nothing
    ],
)
def test_malformed_heads_and_headers_are_refused(header: object, body: bytes) -> None:
    with pytest.raises(ExecutionError):
        ReplyDecoder().decode(Frame(header, body))


@given(st.data())
def test_a_damaged_frame_gives_a_reply_or_an_execution_error(data: st.DataObject) -> None:
    frame = bytearray(ReplyEncoder(1).encode(0, data.draw(OUTCOMES)))
    for _ in range(data.draw(st.integers(1, 4))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    buffer = FrameBuffer()
    buffer.feed(bytes(frame))
    try:
        arrived = buffer.take()
        reply = arrived and ReplyDecoder().decode(arrived)
    except ExecutionError:
        return
    assert reply is None or isinstance(reply, Reply)


@pytest.mark.parametrize("header", [[], {"s": 1}, {"s": 1, "t": [], "p": [["onnx", 0, 9, [], []]], "c": [], "r": []}])
def test_malformed_requests_are_refused(header: object) -> None:
    with pytest.raises(ExecutionError):
        decode_batch(Frame(json.loads(json.dumps(header)), b""))


def test_a_tensor_stored_wrongly_is_refused() -> None:
    wrong = Tensor("bfloat16", np.zeros(2, np.float32))
    with pytest.raises(ExecutionError, match="bfloat16"):
        ReplyEncoder(0).encode(0, Values(((wrong,),)))
