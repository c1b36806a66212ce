"""The oracle of cost makes a series, doubles it until something shows, and measures that three times."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from oracle_cases import case, values

from miscompile.core.case import Case
from miscompile.core.examination import examine
from miscompile.core.outcome import Measured, Observations, Outcome, Raised, TimedOut, Values
from miscompile.core.run import Build, Run
from miscompile.core.verdict import Holds, Inconclusive, Violated
from miscompile.oracles.conformance import check_oracle
from miscompile.oracles.cost import KIND, MOST_COPIES, CostSeries, rows_from
from miscompile.oracles.kinds import OracleContext
from miscompile.oracles.registry import hold


@dataclass
class Bench:
    """A runner with a clock of its own: `seconds` of a build by its level, size and number of measurement."""

    seconds: Callable[[str, int, int], float]
    run: Callable[[str], float] = lambda level: 1e-3
    limit: float = 10.0
    seen: list[Run] = field(default_factory=list)

    def run_all(self, runs: Sequence[Run]) -> list[Outcome]:
        self.seen += runs
        return [self._outcome(run) for run in runs]

    def _outcome(self, run: Run) -> Outcome:
        plain = values([1.0, 1.0, 1.0])
        if not run.build.measure or run.build.transform is None:
            return plain
        size = int(dict(run.build.transform.options)["n"])
        spent = self.seconds(run.build.level, size, run.build.measure)
        if spent > self.limit:
            return TimedOut("compile", self.limit, Observations(cpu_seconds=self.limit))
        once = self.run(run.build.level)
        repeats = int(0.25 / once) + 1
        return Values(plain.results, Observations(measured=Measured(spent, once, repeats, 1 << 20, 1 << 20)))


@dataclass
class Runner:
    """The port that an examination asks."""

    bench: Bench

    def run(self, runs: Sequence[Run]) -> list[Outcome]:
        return self.bench.run_all(runs)


def linear(level: str, size: int, measure: int) -> float:
    return size / 50_000 if level == "full" else size / 100_000


def cubic(level: str, size: int, measure: int) -> float:
    return linear(level, size, measure) + (4e-9 * size**3 if level == "full" else 0.0)


def quadratic(level: str, size: int, measure: int) -> float:
    return linear(level, size, measure) + (6e-6 * size**2 if level == "full" else 0.0)


def judged(bench: Bench, oracle: CostSeries | None = None, item: Case | None = None) -> object:
    return examine(
        item or case(), oracle or CostSeries("toy", patterns=("chain",)), Runner(bench), random.Random(0)
    ).verdict


def test_the_oracle_conforms() -> None:
    check_oracle(KIND, Runner(Bench(linear)), Runner(Bench(cubic)), [case()], OracleContext(("toy",)))


def test_a_linear_build_costs_one_round() -> None:
    bench = Bench(linear)
    assert judged(bench) == Holds()
    assert [run.build.measure for run in bench.seen] == [0, 0, 1, 1, 1, 1]


def test_growth_is_found_with_a_series_of_three_fresh_measurements() -> None:
    verdict = judged(Bench(cubic))
    assert isinstance(verdict, Violated)
    evidence = verdict.evidence
    assert (evidence.kind, evidence.rule, evidence.details["cost"]) == ("cost", "cost", "growth")
    rows = rows_from(evidence.details["series"])
    assert [row.copies for row in rows] == [row.copies for row in rows][:1] + [2 * row.copies for row in rows[:-1]]
    assert {len(row.full.compile_cpu) for row in rows} == {3}
    assert "grows with the power" in evidence.message


def test_a_quadratic_build_is_found_by_its_ratio_where_it_takes_long() -> None:
    verdict = judged(Bench(quadratic))
    assert isinstance(verdict, Violated)
    assert verdict.evidence.details["cost"] == "compile time"


def test_a_series_goes_no_further_than_the_time_limit() -> None:
    verdict = judged(Bench(quadratic, limit=5.5))
    assert isinstance(verdict, Violated)
    assert verdict.evidence.details["series"][-1]["full"]["ended"] is False


def test_a_busy_machine_during_the_quick_measurements_makes_no_finding() -> None:
    def busy(level: str, size: int, measure: int) -> float:
        return cubic(level, size, measure) if measure == 1 else linear(level, size, measure)

    assert judged(Bench(busy)) == Holds("a cost that further measurements do not confirm")


def test_a_machine_that_is_busy_at_random_makes_no_finding() -> None:
    for seed in range(200):
        rng = random.Random(seed)

        def noisy(level: str, size: int, measure: int) -> float:
            return linear(level, size, measure) * rng.choice((1.0, 1.0, 1.3, 3.0, 20.0))  # noqa: B023

        assert not isinstance(judged(Bench(noisy)), Violated), seed


def test_slow_code_is_found_and_noise_of_a_run_is_not() -> None:
    verdict = judged(Bench(linear, run=lambda level: 2e-2 if level == "full" else 1e-3))
    assert isinstance(verdict, Violated)
    assert verdict.evidence.details["cost"] == "run time"
    assert judged(Bench(linear, run=lambda level: 6e-3 if level == "full" else 1e-3)) == Holds()


def test_programs_without_floats_and_failing_builds_are_not_judged() -> None:
    assert judged(Bench(cubic), item=case("int32")) == Inconclusive("no series can be made of the program")
    oracle = CostSeries("toy")
    runs = oracle.plan(case(), random.Random(0))
    outcomes: list[Outcome] = [Raised("compile", "Error", "no")] * len(runs)
    assert oracle.judge(runs, outcomes) == Inconclusive("raised before any series")


def test_the_property_of_a_finding_asks_little_and_its_strict_form_asks_as_the_campaign() -> None:
    verdict = judged(Bench(cubic))
    assert isinstance(verdict, Violated)
    held = hold("cost", verdict.evidence, OracleContext(("toy",)))
    assert isinstance(held, CostSeries)
    bench = Bench(cubic)
    assert isinstance(judged(bench, held), Violated)
    assert {run.build.measure for run in bench.seen} == {0, 1}
    again = judged(Bench(cubic), held.strict())
    assert isinstance(again, Violated)
    assert again.evidence.details["cost"] == "growth"
    assert isinstance(judged(Bench(linear), held), Holds)
    healed = Build("full", frozenset({"Fusion"}))
    assert held.with_faulty(healed).faulty == healed


def test_no_series_is_larger_than_its_bounds() -> None:
    def slowly(level: str, size: int, measure: int) -> float:
        return 1e-7 * size**2 if level == "full" else 1e-8 * size

    bench = Bench(slowly)
    judged(bench)
    sizes = [int(dict(run.build.transform.options)["n"]) for run in bench.seen if run.build.transform]
    assert max(sizes) <= MOST_COPIES
