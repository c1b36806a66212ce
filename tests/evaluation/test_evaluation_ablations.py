"""Ablations on a played compiler: the settings, what a series counts, and how settings are compared."""

import json
from itertools import islice

import pytest
from played_pools import PlayedPool, series_pools, with_passes

from evaluation.failure_log import SettledFailures
from evaluation.measures import ConfirmedFailure
from evaluation.oatest.ablations import PAPERS, ArmSeries, Group, arms, compared, measure
from evaluation.oatest.libraries import Libraries, build
from evaluation.oatest.sources import plain_graphs
from miscompile.core.outcome import Raised
from miscompile.ops.seed import Seed
from miscompile.ops.support import Support
from miscompile.producers.synthesis.options import OatestOptions

OPEN = Support(open=True)
OPTIONS = OatestOptions(nodes=4, opsets=(17,), calls=0.0)


def fires(operators: list[str]) -> list[str]:
    return sorted({f"On{op}" for op in operators if op in ("Add", "Relu", "Mul", "Cast", "Abs")})


@pytest.fixture(scope="module")
def libraries() -> Libraries:
    """Pairs of generated programs and played passes."""
    graphs = islice(plain_graphs(OPEN, (17,), 2), 25)
    programs = [Seed(one.name, one.graph, one.opset, one.ranges, one.fixed) for one in graphs]
    found = build(programs, "toy", PlayedPool(with_passes(fires)), 2, 0)
    assert len(found.pairs) >= 4
    return found


def test_settings_differ_in_patterns_or_in_seeds(libraries: Libraries) -> None:
    found = {arm.name: arm for arm in arms(libraries, plain_graphs(OPEN, (17,), 5), 0)}
    assert list(found) == ["own", "block", "subgraph", "whole", "random", "tests", "alone"]
    assert {len(arm.patterns) for arm in found.values()} == {len(libraries.pairs)}
    assert found["tests"].patterns is found["alone"].patterns is found["own"].patterns
    assert found["tests"].contexts == libraries.tests
    assert [found[name].seeds for name in ("own", "tests", "alone")] == ["generated", "patterns", "none"]
    assert found["block"].operators <= found["subgraph"].operators <= found["whole"].operators
    assert not any(one.triggers for one in found["random"].patterns)
    assert set(PAPERS) == set(found) - {"alone"}


def test_a_series_counts_what_fires_and_what_fires_together(libraries: Libraries) -> None:
    arm = next(arms(libraries, plain_graphs(OPEN, (17,), 5), 0))
    pools, _, _ = series_pools(with_passes(fires))
    told: list[tuple[str, int, int]] = []
    series = measure(pools, arm, OPTIONS, OPEN, 15, 6, 1.0, lambda *what: told.append(what))
    assert series.tests == series.observed == sum(series.endings.values()) == 15
    assert series.valid == 1.0
    assert 1 <= series.passes <= 5
    assert 1 <= series.sets <= 15
    assert series.pairs <= series.passes * (series.passes - 1) / 2
    assert 1 <= series.used <= series.patterns
    assert series.trigger is not None
    assert series.trigger.watched == 6
    assert series.trigger.rate > series.trigger.by_chance / 2
    assert told[14] == ("toy, patterns: own", 15, 15)
    data = json.loads(json.dumps(series.as_json()))
    assert data["sets"]["per_thousand"] == pytest.approx(1000 * series.sets / 15)
    assert data["paper"] == {"tvm": 29, "onnxruntime": 13, "ratio": 1.0}


def test_refused_programs_are_not_valid(libraries: Libraries) -> None:
    arm = next(arms(libraries, plain_graphs(OPEN, (17,), 5), 0))
    pools, _, _ = series_pools(lambda _: Raised("compile", "KeyError", "no"))
    series = measure(pools, arm, OPTIONS, OPEN, 3, 2, 0.0)
    assert series.valid == 0.0
    assert (series.observed, series.sets) == (0, 0)


def series_of(arm: str, group: Group, signatures: int, sets: int) -> ArmSeries:
    failures = tuple(ConfirmedFailure(number, "wrong", "wrong", (), f"toy:{number}") for number in range(signatures))
    settled = SettledFailures(failures, 1, (), 2, (), {"flaky": 3})
    return ArmSeries("toy", arm, group, 9, 2.5, 8, 100, {"values": 80}, 70, 6, sets, 7, settled, None, (1.0, 2.0, 3.0))


def test_settings_are_compared_with_the_papers_own() -> None:
    found = compared([series_of("own", "patterns", 4, 20), series_of("block", "patterns", 1, 30)])
    assert found["own"] == {"signatures": 1.0, "sets": 1.0, "pairs": 1.0, "passes": 1.0}
    assert (found["block"]["signatures"], found["block"]["sets"]) == (0.25, 1.5)
    assert "signatures" not in compared([series_of("own", "patterns", 0, 20)])["own"]
    assert compared([series_of("block", "patterns", 1, 30)]) == {}


def test_the_papers_ratios_are_those_of_both_compilers() -> None:
    assert PAPERS["block"].ratio == pytest.approx(22 / 42)
    assert PAPERS["random"].ratio == pytest.approx(10 / 42)
