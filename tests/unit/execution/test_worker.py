"""How the worker names what a compiler raises."""

import re

import numpy as np
import pytest

from miscompile.core.outcome import Defect, OutOfMemory, Raised, Rejected, Unsupported
from miscompile.core.tensor import Tensor
from miscompile.execution.worker import FRAMES, MESSAGE, MOST_RESULTS, checked, outcome_of
from miscompile.targets.known import Known, Rejection
from miscompile.targets.onnxruntime import runner

KNOWN = Known(
    (
        Rejection("unsupported", re.compile("NotImplementedError: no kernel"), "no kernel"),
        Rejection("rejected", re.compile("indices element out of"), "index out of range"),
    ),
    (),
)


class BrokenError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("broken")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            NotImplementedError("no kernel for Foo(13)"),
            Unsupported("compile", "no kernel for Foo(13)", kind="NotImplementedError"),
        ),
        (ValueError("indices element out of data bounds"), Rejected("compile", "indices element out of data bounds")),
        (MemoryError(), OutOfMemory("compile", "")),
        (RuntimeError("std::bad_alloc"), OutOfMemory("compile", "std::bad_alloc")),
        (RuntimeError("Failed to allocate memory for requested buffer"), OutOfMemory),
        (ValueError("no kernel for Foo(13)"), Raised("compile", "ValueError", "no kernel for Foo(13)")),
        (KeyboardInterrupt(), Raised("compile", "KeyboardInterrupt", "")),
        (BrokenError(), Raised("compile", "BrokenError", "(no message: RuntimeError)")),
        (RuntimeError("x" * 9_000), Raised("compile", "RuntimeError", "x" * MESSAGE)),
    ],
)
def test_errors_are_classified(error: BaseException, expected: object) -> None:
    outcome = outcome_of(error, "compile", KNOWN)
    assert isinstance(outcome, expected) if isinstance(expected, type) else outcome == expected


def test_results_that_cannot_be_compared_in_memory_count_as_a_lack_of_memory() -> None:
    half = Tensor("int8", np.broadcast_to(np.int8(0), (MOST_RESULTS // 2,)))
    assert checked((half, None, half)) == (half, None, half)
    with pytest.raises(MemoryError, match="at most") as caught:
        checked((half, half, Tensor("int8", np.zeros(1, np.int8))))
    assert isinstance(outcome_of(caught.value, "run", KNOWN), OutOfMemory)
    with pytest.raises(TypeError, match="a str where a Tensor belongs"):
        checked(("y",))  # type: ignore[arg-type]


def test_frames_are_the_innermost_ones_innermost_first() -> None:
    def sink(depth: int) -> None:
        if depth:
            sink(depth - 1)
        raise ValueError

    with pytest.raises(ValueError) as caught:
        sink(20)
    outcome = outcome_of(caught.value, "run", KNOWN)
    assert isinstance(outcome, Raised)
    assert len(outcome.frames) == FRAMES
    assert all(re.fullmatch(r".*test_worker\.py:\d+:[\w.<>]*\bsink", frame) for frame in outcome.frames)
    assert outcome.frames[0] != outcome.frames[1]


def defect_of(error: BaseException, *, external: bool = True) -> object:
    return type(outcome_of(error, "compile", KNOWN, external=external))


def test_an_error_in_an_adapters_own_code_is_no_error_of_the_compiler() -> None:
    with pytest.raises(KeyError) as caught:
        runner.session_options("no such level", 1)
    assert defect_of(caught.value) is Defect
    assert defect_of(caught.value, external=False) is Raised, "a compiler within this package has the same folder"
    with pytest.raises(Exception, match="INVALID_PROTOBUF") as failed:
        runner.start(b"no model", runner.session_options("full", 1), ())
    assert defect_of(failed.value) is Raised, "the extension has no frame, so the adapter's call is the last one"
    assert defect_of(KeyError("nowhere")) is Raised
