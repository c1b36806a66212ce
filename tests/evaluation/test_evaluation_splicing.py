"""The splicing part on a played compiler: what is counted, and that figures come as they are made."""

import json

import pytest
from played_pools import PlayedPool, operators, series_pools, with_passes

from evaluation.oatest.splicing import ending_of, measure, words_of
from evaluation.oatest.tracing import Traced
from miscompile.core.outcome import Crashed, Outcome, Raised, Rejected, TimedOut, Unsupported, Values
from miscompile.core.run import Run
from miscompile.ops.support import Support
from miscompile.patterns.pattern import Pattern, Trigger
from miscompile.patterns.shipped import fusion_motifs
from miscompile.producers.synthesis.options import OatestOptions
from miscompile.targets.registry import parse_target

WAKE = (Trigger("toy", "1", "OperandOrdering"),)
PATTERNS = [Pattern(motif.name, None, motif, "block", WAKE) for motif in fusion_motifs()[:40]]
OPTIONS = OatestOptions(nodes=5, opsets=(17,), variants=1)


def producer(patterns: list[Pattern] | None = None) -> Traced:
    return Traced(OPTIONS, Support(open=True), patterns or PATTERNS, parse_target("toy").about)


@pytest.mark.parametrize(
    ("outcome", "word"),
    [
        (Values(()), "values"),
        (Rejected("compile", "no"), "refused"),
        (Unsupported("compile", "no"), "refused"),
        (Raised("compile", "KeyError", "no"), "raised"),
        (Crashed("run", 11), "crashed"),
        (TimedOut("run", 3.0), "timedout"),
    ],
)
def test_a_lawful_no_is_told_from_a_failure(outcome: Outcome, word: str) -> None:
    assert ending_of(outcome) == word


def test_words_leave_out_what_varies() -> None:
    raised = [words_of(Raised("compile", "E", f"node n{place} has {place} axes")) for place in (1, 23)]
    assert raised[0] == raised[1] != ""
    assert words_of(Crashed("run", 11)) == "signal 11"
    assert words_of(TimedOut("run", 3.0)) == ""


def test_figures_come_as_they_are_made_and_end_with_the_trigger_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaluation.oatest.splicing._EVERY", 5)
    pools, _, second = series_pools(with_passes(lambda _: ["OperandOrdering"]))
    told: list[tuple[str, int, int]] = []
    steps = list(measure(pools, producer(), 12, 7, lambda *what: told.append(what)))
    assert [step.syntheses for step in steps] == [5, 10, 12, 12]
    assert [step.trigger is None for step in steps] == [True, True, True, False]
    end = steps[-1]
    assert end.trigger is not None
    assert (end.trigger.watched, end.trigger.rate) == (7, 1.0)
    assert end.checked == end.valid == 12
    assert end.endings == {"values": 12}
    assert not end.unchecked
    assert end.disputed == 0
    assert end.inside <= min(end.into, end.out)
    assert end.into + end.fixed <= 12
    assert end.into > 6
    assert sum(end.strategies.values()) == end.bridges.count == end.orders.count == 12
    assert told[11] == ("toy, syntheses", 12, 12)
    assert isinstance(second, PlayedPool)
    data = json.loads(json.dumps(end.as_json()))
    assert data["shares"]["valid"] == 1.0
    assert 0 < data["generation"] <= 1
    assert data["paper"]["trigger"] is None


def test_refusals_and_failures_are_not_valid_and_are_counted_apart() -> None:
    usual = with_passes(lambda _: [])

    def play(run: Run) -> Outcome:
        number = len(operators(run))
        if number % 3 == 0:
            return Rejected("compile", "no")
        return Raised("compile", "KeyError", "no") if number % 3 == 1 else usual(run)

    *_, end = measure(series_pools(play)[0], producer(), 30, 5)
    assert end.checked == 30
    assert end.refused == end.endings["refused"]
    assert end.valid == end.endings.get("values", 0)
    assert set(end.endings) == {"refused", "raised", "values"}
    assert end.trigger is not None
    assert end.trigger.rate == 0.0


def test_without_known_passes_there_is_no_trigger_rate() -> None:
    plain = [Pattern(one.name, None, one.motif, "block") for one in PATTERNS]
    *_, end = measure(series_pools(with_passes(lambda _: []))[0], producer(plain), 4, 4)
    assert end.trigger is None
    assert end.as_json()["trigger"] is None
