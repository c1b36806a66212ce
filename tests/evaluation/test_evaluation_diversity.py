"""The diversity bench: reproducible, and its figures follow from its series."""

import json

import pytest

from evaluation.hirfuzz.diversity import Diversity, DiversityRepetition, ModeDiversity, measure
from miscompile.producers.hirfuzz.producer import HirfuzzOptions

SMALL = HirfuzzOptions(nodes=15, dtypes=("float32", "bool"), max_rank=1, max_dim=3)


def last(options: HirfuzzOptions = SMALL, repetitions: int = 2, seed: int = 0) -> Diversity:
    *_, found = measure(options, 8, repetitions, seed)
    return found


def series(*scores: int) -> DiversityRepetition:
    return DiversityRepetition(scores, 1, 2, 3, 0, 10, 0.5)


def test_guidance_covers_more_where_coverage_saturates() -> None:
    found = last()
    assert found.ratio("gate").least > 1
    assert found.ratio("off").mean == 1
    for mode in found.modes:
        for one in mode.series:
            assert list(one.scores) == sorted(one.scores)
            assert one.score == one.dtypes + one.shapes + one.edges + one.paths


def test_the_same_seed_gives_the_same_scores_and_another_one_others() -> None:
    scores = [[mode.score.mean for mode in last(seed=seed).modes] for seed in (0, 0, 1)]
    assert scores[0] == scores[1] != scores[2]


def test_repetitions_come_one_by_one_and_are_kept() -> None:
    seen: list[tuple[str, int, int]] = []
    steps = list(measure(SMALL, 2, 3, 0, watch=lambda *told: seen.append(told)))
    assert [step.mode("gate").score.count for step in steps] == [1, 2, 3]
    for mode in ("gate", "off", "steer"):
        assert steps[-1].mode(mode).series[:1] == steps[0].mode(mode).series[:1]
    assert [done for _, done, _ in seen] == list(range(10))
    assert {total for _, _, total in seen} == {9}


def test_figures_follow_from_the_series() -> None:
    mode = ModeDiversity("gate", (series(10, 16, 20), series(12, 18, 26)))
    assert mode.score.mean == 23
    assert mode.curve() == [(1, 11.0), (2, 17.0), (3, 23.0)]
    assert mode.gained() == (11.0, 6.0)
    free = ModeDiversity("off", (series(5, 9, 10), series(5, 9, 13)))
    both = Diversity((mode, free))
    assert (both.ratio("gate").mean, both.ratio("gate").deviation) == (2.0, 0.0)
    with pytest.raises(KeyError):
        both.mode("steer")
    data = json.loads(json.dumps(both.as_json()))
    assert data["ratios"] == {"gate": both.ratio("gate").as_json()}
    assert [one["mode"] for one in data["modes"]] == ["gate", "off"]
    assert data["modes"][0]["curve"][-1] == [3, 23.0]
    assert "ratios" in Diversity((mode,)).as_json()


def test_a_long_curve_has_twenty_points_and_ends_at_the_last_graph() -> None:
    curve = ModeDiversity("off", (series(*range(1, 201)),)).curve()
    assert len(curve) == 20
    assert curve[-1] == (200, 200.0)
