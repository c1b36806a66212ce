"""The tables of HIRFUZZ with real workers: processes for repetitions, and planted bugs of the toy compiler."""

import pytest

from evaluation.hirfuzz.diversity import measure
from evaluation.hirfuzz.experiments import HirfuzzSettings, run
from miscompile.producers.hirfuzz.producer import HirfuzzOptions

pytestmark = pytest.mark.process


def test_figures_do_not_depend_on_the_number_of_workers() -> None:
    options = HirfuzzOptions(nodes=6)
    one, two = (list(measure(options, 3, 2, 0, workers=workers))[-1] for workers in (1, 2))
    for mode in one.modes:
        assert [series.scores for series in mode.series] == [series.scores for series in two.mode(mode.mode).series]


@pytest.mark.slow
def test_planted_bugs_are_found_confirmed_and_counted_once() -> None:
    target = "toy{bugs=sub_commutes+rank0_key_error}"
    options = HirfuzzSettings("failures", (target,), tests=120, test_nodes=10, patience=240.0, probe_seconds=60.0)
    *_, results = run(options)
    guided, free = results.failures
    assert (guided.mode, free.mode) == ("gate", "off")
    for series in results.failures:
        settled = series.settled
        assert settled.failures
        assert settled.unstable == settled.untriaged == len(settled.unconfirmed) == 0
        assert not settled.problems
        wrong = [failure for failure in settled.failures if failure.kind == "wrong"]
        errors = [failure for failure in settled.failures if failure.kind == "exception"]
        assert wrong
        assert errors
        assert {failure.signature for failure in wrong} == {"toy:wrong:OperandOrdering"}
        known = [failure.signature.removeprefix("toy:exception@compile:") for failure in errors]
        named = {one.partition(" in ")[0] for one in known}
        assert "OperandOrdering" in named
        assert all("OperandOrdering" in culprits.split("+") for culprits in named)  # others may make the rank 0
        assert {(failure.message, failure.trace) for failure in wrong} == {("wrong", ())}
        assert all(failure.message.startswith("exception: KeyError") and failure.trace for failure in errors)
