"""Titles of issues: the telling part of the error messages that compilers raise."""

import pytest

from miscompile.core.case import Case, Program
from miscompile.core.finding import Finding, Property, Signature
from miscompile.findings.folder import Stored
from miscompile.reports.wording import title_of

_RUN = "Fail at run: [ONNXRuntimeError] : 1 : FAIL : Non-zero status code returned while running"


def title(message: str) -> str:
    held = Property("pair", "toy", Signature("toy", "exception", "run", ("Fuse",), ""))
    return title_of(Stored(Finding("exception-1", held, Case(Program("other", b"", (), ()), ()), message)))


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (
            f"{_RUN} Pow node. Name:'' Status Message: /src/core/math/element_wise_ops.h:563 "
            "void onnxruntime::BroadcastIterator::Init(ptrdiff_t, ptrdiff_t) axis == 1 || axis == largest was false. "
            "Attempting to broadcast an axis by a dimension other than 1. 2 by 5\n",
            "running Pow node. Attempting to broadcast an axis by a dimension other than 1. 2 by 5",
        ),
        (
            f"{_RUN} Loop node. Name:'' Status Message: Non-zero status code returned while running Cast node. Name:'' "
            "Status Message: /src/op_kernel_context.h:45 const T* onnxruntime::OpKernelContext::Input(int) const "
            "[with T = onnxruntime::Tensor] Missing Input: x6_1",
            "running Loop node. running Cast node. Missing Input: x6_1",
        ),
        (
            f"{_RUN} GlobalAveragePool node. Name:'' Status Message: pool.cc:226 Compute Input dimension is negative.",
            "running GlobalAveragePool node. Input dimension is negative.",
        ),
        (
            f"{_RUN} Add node. Name:'' Status Message: /src/add.cc:7 void f(int) n == 0 was false.",
            "running Add node. n == 0 was false.",
        ),
        (
            "refused at compile by this build only: [ONNXRuntimeError] : 10 : INVALID_GRAPH : "
            "This is an invalid model. Type Error: Type 'tensor(int64)' of input parameter (x0)",
            "Type Error: Type 'tensor(int64)' of input parameter (x0)",
        ),
        ("IreeCompileError at compile: source.mlir:7:10: failed to legalize", "source.mlir:7:10: failed to legalize"),
    ],
)
def test_a_title_has_the_message_without_source_lines_and_codes(message: str, told: str) -> None:
    assert title(message).endswith(f"Fuse: error on a valid model: {told}")
