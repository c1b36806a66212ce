"""What counts as a cost out of proportion, on made-up measurements."""

from collections.abc import Callable, Sequence

import pytest

from miscompile.oracles.cost_rules import BuildCost, Row, power, suspicions, violations

Seconds = Callable[[int], Sequence[float]]


def cost(seconds: Sequence[float], run: float = 1e-4, size: int = 1 << 20, *, ended: bool = True) -> BuildCost:
    """Measurements of a build; the program runs for `run` seconds and takes `size` bytes."""
    count = len(seconds)
    return BuildCost(tuple(seconds), (run,) * count, (0.25,) * count, (size,) * count, (size,) * count, ended)


def series(plain: Seconds, full: Seconds, last: int = 512) -> list[Row]:
    """The last four sizes of a doubling series, of one node in each copy."""
    return [Row(n, n, cost(plain(n)), cost(full(n))) for n in (last // 8, last // 4, last // 2, last)]


def thrice(seconds: Callable[[int], float]) -> Seconds:
    return lambda n: (seconds(n),) * 3


LINEAR = thrice(lambda n: n / 10_000)


def test_a_build_of_twenty_times_the_time_and_more_than_five_seconds_is_a_finding() -> None:
    assert violations(series(LINEAR, thrice(lambda n: 6 * (n / 512) ** 2))) == ["compile time"]
    assert violations(series(LINEAR, thrice(lambda n: 4.9 * (n / 512) ** 2))) == []
    assert violations(series(thrice(lambda n: n / 1_000), thrice(lambda n: 6 * (n / 512) ** 2))) == []


def test_a_build_that_is_slow_in_proportion_is_none() -> None:
    assert violations(series(LINEAR, thrice(lambda n: n / 50))) == []


def test_growth_faster_than_quadratic_is_a_finding_and_quadratic_growth_is_none() -> None:
    assert violations(series(LINEAR, thrice(lambda n: 1.2 * (n / 512) ** 3))) == ["growth"]
    assert violations(series(LINEAR, thrice(lambda n: 1.2 * (n / 512) ** 2))) == []
    assert violations(series(LINEAR, thrice(lambda n: 0.2 * (n / 512) ** 3))) == []


def test_growth_must_last_over_all_doublings() -> None:
    jump = {64: 0.1, 128: 0.11, 256: 0.12, 512: 4.0}
    assert violations(series(LINEAR, thrice(lambda n: jump[n]))) == []
    assert violations(series(LINEAR, thrice(lambda n: 1.2 * (n / 512) ** 3))[1:]) == []


@pytest.mark.parametrize("busy", range(3))
def test_one_measurement_alone_makes_no_finding(busy: int) -> None:
    """Two of three measurements are far too long because the machine is busy; one tells that the build is quick."""

    def noisy(n: int) -> Sequence[float]:
        return [n / 5_000 if place == busy else 30 * (n / 512) ** 3 for place in range(3)]

    assert violations(series(LINEAR, noisy)) == []


def test_a_slow_measurement_of_the_unoptimised_build_speaks_for_the_optimised_one() -> None:
    def noisy(n: int) -> Sequence[float]:
        return [n / 10_000, n / 10_000, 3.0]

    assert violations(series(noisy, thrice(lambda n: 6 * (n / 512) ** 2))) == []


def test_fewer_measurements_than_three_make_no_finding() -> None:
    rows = series(lambda n: (n / 10_000,) * 2, lambda n: (9 * (n / 512) ** 3,) * 2)
    assert violations(rows) == []
    assert violations(rows, quick=True) == ["compile time", "growth"]


def test_memory_counts_from_twenty_times_and_half_a_gibibyte_on() -> None:
    def rows(plain: int, full: int) -> list[Row]:
        return [Row(8, 8, cost([0.1] * 3, size=plain), cost([0.1] * 3, size=full))]

    assert violations(rows(10 << 20, 600 << 20)) == ["compile memory"]
    assert violations(rows(100 << 20, 600 << 20)) == []
    assert violations(rows(1 << 20, 300 << 20)) == []
    assert violations(rows(0, 600 << 20)) == []  # the system does not tell


def test_code_counts_that_runs_ten_times_longer() -> None:
    def rows(full: float) -> list[Row]:
        return [Row(8, 8, cost([0.1] * 3, run=1e-3), cost([0.1] * 3, run=full))]

    assert violations(rows(1.1e-2)) == ["run time"]
    assert violations(rows(0.9e-2)) == []
    short = rows(1.1e-2)[0]
    brief = short.full._replace(run_spent=(0.25, 0.1, 0.25))
    assert violations([short._replace(full=brief)]) == []


def test_a_build_that_the_time_limit_ended_has_taken_at_least_that_long() -> None:
    rows = series(LINEAR, thrice(lambda n: 9 * (n / 512) ** 3))
    rows[-1] = rows[-1]._replace(full=rows[-1].full._replace(ended=False, run_cpu=(), run_spent=()))
    assert violations(rows) == ["compile time"]


def test_only_names_the_class_that_counts_and_share_eases_the_seconds() -> None:
    rows = series(LINEAR, thrice(lambda n: 9 * (n / 512) ** 3))
    assert violations(rows) == ["compile time", "growth"]
    assert violations(rows, "growth") == ["growth"]
    assert violations(series(LINEAR, thrice(lambda n: 0.2 * (n / 512) ** 3)), "growth", 0.1) == ["growth"]


def test_linear_builds_are_not_suspicious_and_quadratic_ones_are() -> None:
    small, large = (Row(n, n, cost([n / 10_000]), cost([n / 2_000])) for n in (40, 160))
    assert suspicions(small, large, 2048) == []
    small, large = (Row(n, n, cost([n / 10_000]), cost([n**2 / 200_000])) for n in (40, 160))
    assert power(small, large) == pytest.approx(2.0)
    assert "compile time" in suspicions(small, large, 2048)
