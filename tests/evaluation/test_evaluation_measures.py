"""What benches count: spreads, and what makes two failures the same."""

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.measures import ConfirmedFailure, failure_of, sample_statistics, trace_of, unique
from miscompile.core.case import Case, Program
from miscompile.core.outcome import Crashed, Observations, Raised, Values
from miscompile.core.run import Build, Run
from miscompile.core.verdict import Evidence, FindingKind

FINITE = st.floats(-1e6, 1e6)
FAILURES = st.builds(
    ConfirmedFailure,
    st.integers(0, 99),
    st.just("wrong"),
    st.sampled_from("abc"),
    st.sampled_from([(), ("f",), ("f", "g")]),
    st.sampled_from("xyz"),
)

BACKTRACE = """
#0  0x00007f33 in tvm::tir::Bound(int) () from /opt/libtvm.so
#1  0x00007f35 in tvm::relax::Build(int) ()
"""


def evidence(kind: FindingKind, message: str = "output v3 differs by 0.25") -> Evidence:
    case = Case(Program("onnx", b"", (), ()), (), {})
    return Evidence(kind, "exact", message, Run(case, "toy", Build()))


@given(st.lists(FINITE, min_size=2, max_size=20))
def test_spread_is_the_textbooks(values: list[float]) -> None:
    found = sample_statistics(values)
    assert found.mean == pytest.approx(statistics.fmean(values), abs=1e-6)
    assert found.deviation == pytest.approx(statistics.stdev(values), rel=1e-6, abs=1e-4)
    assert (found.least, found.most, found.count) == (min(values), max(values), len(values))


def test_spread_of_one_and_of_none() -> None:
    assert sample_statistics([3.0]).deviation == 0.0
    assert str(sample_statistics([1234.5])) == "1,234.5"
    assert str(sample_statistics([1.0, 3.0])) == "2.0 ± 1.4"
    with pytest.raises(ValueError, match="nothing was measured"):
        sample_statistics([])


@given(st.lists(FAILURES, max_size=12))
def test_a_finer_key_never_counts_less(failures: list[ConfirmedFailure]) -> None:
    found = unique(failures)
    assert found.by_message <= found.by_trace <= found.failures == len(failures)
    assert found.by_signature <= found.failures
    assert unique([*failures, *failures]).by_trace == found.by_trace


def test_an_error_is_told_by_text_and_frames_without_what_varies() -> None:
    def raised(node: int, line: int) -> Raised:
        return Raised("compile", "RuntimeError", f"node {node} has rank {node}", (f"fuse.cc:{line}",))

    first, second, other = (
        failure_of(number, evidence("exception"), outcome, "s")
        for number, outcome in enumerate([raised(3, 10), raised(7, 10), Raised("compile", "ValueError", "no", ())])
    )
    assert first.message == second.message != other.message
    assert first.trace == second.trace
    assert unique([first, second, other]).by_trace == 2


def test_a_death_is_told_by_signal_and_backtrace() -> None:
    death = failure_of(0, evidence("death"), Crashed("compile", 11, Observations(stderr=BACKTRACE)), "s")
    assert death.message.startswith("death: signal 11")
    assert len(death.trace) == 2
    assert "Bound" in death.trace[0]
    assert trace_of(Crashed("compile", 6)) == ()


def test_wrong_results_have_neither_text_nor_trace() -> None:
    one = failure_of(0, evidence("wrong"), Values(()), "a")
    other = failure_of(1, evidence("wrong", "output v12 differs by 7"), Values(()), "b")
    assert one.trace == ()
    found = unique([one, other])
    assert (found.by_message, found.by_trace, found.by_signature) == (1, 1, 2)
    assert one.message == "wrong"
