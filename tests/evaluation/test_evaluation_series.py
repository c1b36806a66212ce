"""Series of tests on workers that are only played."""

import random
from collections.abc import Callable, Sequence

from played_pools import series_pools

from evaluation.hirfuzz.invalid import ENDINGS, measure_proven
from evaluation.series import AHEAD, run_series
from miscompile.base.rng import stream
from miscompile.core.case import Case, Program
from miscompile.core.examination import MOST_ROUNDS
from miscompile.core.outcome import Crashed, Outcome, Raised, Values
from miscompile.core.run import Build, Run
from miscompile.core.verdict import Holds, Inconclusive, Needs, Verdict
from miscompile.ops.support import Support
from miscompile.producers.disruptive.checker import refusal_of

RIGHT = Values(())


class Numbers:
    """Producer of cases that carry what their stream drew; remembers what it learnt."""

    def __init__(self) -> None:
        self.learnt: list[float] = []

    def propose(self, rng: random.Random) -> Case:
        return Case(Program("onnx", b"", (), ()), (), {"drawn": rng.random()})

    def learn(self, case: Case, outcomes: Sequence[Outcome], verdict: Verdict) -> None:
        assert outcomes == [RIGHT] or tuple(outcomes) == (RIGHT,)
        self.learnt.append(case.recipe["drawn"])


class Asking:
    """Oracle that asks for `rounds` further rounds before it is content."""

    def __init__(self, rounds: int = 0) -> None:
        self.rounds = rounds

    def plan(self, case: Case, rng: random.Random) -> tuple[Run, ...]:
        del rng
        return (Run(case, "toy", Build()),)

    def judge(self, runs: Sequence[Run], outcomes: Sequence[Outcome]) -> Verdict:
        assert len(runs) == len(outcomes)
        return Needs((runs[0],)) if len(runs) <= self.rounds else Holds(f"{len(runs)} runs")


def test_tests_come_in_order_with_their_own_streams_and_a_fixed_number_ahead() -> None:
    pools, pool, _ = series_pools(lambda _: RIGHT)
    producer = Numbers()
    found = list(run_series(pools, producer, Asking(), 10, lambda number: stream(4, number)))
    drawn = [stream(4, number).random() for number in range(10)]
    assert [judged.test for judged in found] == list(range(10))
    assert [judged.case.recipe["drawn"] for judged in found] == drawn == producer.learnt
    assert all(judged.verdict == Holds("1 runs") for judged in found)
    assert pool.most == AHEAD


def test_further_rounds_are_run_and_judged_as_often_as_in_a_campaign() -> None:
    pools, _, _ = series_pools(lambda _: RIGHT)
    (twice,) = run_series(pools, Numbers(), Asking(1), 1, lambda number: stream(0, number))
    assert twice.verdict == Holds("2 runs")
    assert len(twice.runs) == len(twice.outcomes) == 2
    (more,) = run_series(pools, Numbers(), Asking(MOST_ROUNDS + 1), 1, lambda number: stream(0, number))
    assert isinstance(more.verdict, Inconclusive)


def test_no_tests_are_no_series() -> None:
    pools, _, _ = series_pools(lambda _: RIGHT)
    assert list(run_series(pools, Numbers(), Asking(), 0, lambda number: stream(0, number))) == []


def broken(
    play: Callable[[Run], Outcome], again: Callable[[Run], Outcome] | None = None, programs: int = 12
) -> tuple[dict[str, int], int, int, int]:
    """Return endings, findings, unstable ones, and how often a fresh worker was asked for."""
    pools, _, second = series_pools(play, again)
    series = measure_proven(pools, Support(open=True), programs, refusal_of)
    assert sum(series.endings.values()) == series.programs == programs
    assert set(series.endings) <= set(ENDINGS)
    assert 1 <= series.combinations <= programs
    assert series.as_json()["unique"]["failures"] == len(series.failures)
    return dict(series.endings), len(series.failures), series.unstable, second.made_fresh


def test_clean_errors_are_refusals() -> None:
    assert broken(lambda _: Raised("compile", "TypeError", "no")) == ({"refused": 12}, 0, 0, 0)


def test_deaths_that_repeat_are_findings() -> None:
    assert broken(lambda _: Crashed("compile", 11)) == ({"death": 12}, 12, 0, 12)


def test_deaths_that_do_not_repeat_are_none() -> None:
    no = Raised("compile", "TypeError", "no")
    assert broken(lambda _: Crashed("compile", 11), lambda _: no) == ({"refused": 12}, 0, 12, 12)


def test_what_runs_to_values_is_accepted_or_tolerated() -> None:
    endings, findings, unstable, _ = broken(lambda _: RIGHT)
    assert set(endings) <= {"accepted", "tolerated"}
    assert findings == endings.get("accepted", 0)
    assert unstable == 0
