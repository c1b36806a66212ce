"""The division of time among arms, with simulated rewards."""

import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miscompile.core.arms import ArmYield
from miscompile.engine.bandit import EVERYDAY, FLOORS, Bandit, fixed_weights

SECOND = 1_000_000


@dataclass(frozen=True)
class SimulatedArm:
    technique: str
    check: str = "levels"
    weight: float = 1.0
    tag: str = ""

    @property
    def name(self) -> str:
        return f"{self.technique}/{self.check}"

    @property
    def everyday(self) -> bool:
        return self.technique == "everyday"


def grid(techniques: str = "abcd", checks: str = "xyz") -> list[SimulatedArm]:
    return [SimulatedArm(one, other) for one in techniques for other in checks]


def simulated(
    bandit: Bandit, rate: Callable[[str, float], float], seconds: float, rng: random.Random, turn: float = 20.0
) -> dict[str, float]:
    """Let CPU time pass in turns; `rate` gives confirmed signatures a second by arm and time. Returns the shares."""
    shares = bandit.shares(rng)
    passed = 0.0
    while passed < seconds:
        for name, share in shares.items():
            spent = share * turn
            found = sum(rng.random() < rate(name, passed) * spent / 10 for _ in range(10))
            bandit.add(name, ArmYield(round(spent * 50), round(spent * SECOND), found, found, found))
        passed += turn
        shares = bandit.shares(rng)
    return shares


@pytest.mark.parametrize("seed", range(5))
def test_a_good_arm_gets_most_of_the_time(seed: int) -> None:
    bandit = Bandit(grid())
    shares = simulated(bandit, lambda name, _: 0.5 if name == "c/y" else 0.02, 1200, random.Random(seed))
    assert max(shares, key=shares.__getitem__) == "c/y"
    assert shares["c/y"] > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_yields_that_end_lose_their_share(seed: int) -> None:
    bandit, rng = Bandit(grid()), random.Random(seed)
    before = simulated(bandit, lambda name, _: 0.5 if name == "c/y" else 0.0, 600, rng)
    after = simulated(bandit, lambda name, _: 0.2 if name == "a/x" else 0.0, 4000, rng)
    assert before["c/y"] > 0.5
    assert after["c/y"] < 0.1
    assert after["a/x"] > 0.4


def test_an_arm_borrows_from_its_technique_and_its_check() -> None:
    bandit = Bandit(grid())
    for arm in grid():
        found = 4 if arm.technique == "b" or arm.check == "z" else 0
        if arm.name != "b/z":
            bandit.add(arm.name, ArmYield(100, 10 * SECOND, found, found, found))
    shares = bandit.shares(random.Random(1))
    assert shares["b/z"] == max(shares.values())


def test_pairs_of_passes_count_less_than_signatures() -> None:
    bandit = Bandit([SimulatedArm("a"), SimulatedArm("b", "other")])
    bandit.add("a/levels", ArmYield(100, 20 * SECOND, pairs=20))
    bandit.add("b/other", ArmYield(100, 20 * SECOND, signatures=10, confirmed=10))
    shares = bandit.shares(random.Random(2))
    assert shares["b/other"] > shares["a/levels"]


def test_a_costly_arm_is_drawn_more_rarely_for_its_share() -> None:
    bandit = Bandit([SimulatedArm("a"), SimulatedArm("b", "other")])
    bandit.add("a/levels", ArmYield(10_000, 100 * SECOND, signatures=5, confirmed=5))
    bandit.add("b/other", ArmYield(100, 100 * SECOND, signatures=5, confirmed=5))
    weights = bandit.weights(random.Random(3))
    assert weights["a/levels"] > 20 * weights["b/other"]


ARMS = st.lists(
    st.builds(
        SimulatedArm,
        st.sampled_from(["everyday", "a", "b", "c"]),
        st.sampled_from(["x", "y", "z"]),
        st.floats(0.1, 10),
    ),
    min_size=1,
    unique_by=lambda arm: arm.name,
)
COUNTS = st.builds(
    ArmYield, *[st.integers(0, 10**6), st.integers(0, 10**11), st.integers(0, 100)], *[st.integers(0, 1000)] * 3
)


@given(ARMS, st.lists(st.tuples(st.integers(0, 11), COUNTS), max_size=30), st.integers(0, 99))
def test_every_arm_keeps_its_floor_and_the_everyday_class_its_share(
    arms: list[SimulatedArm], history: list[tuple[int, ArmYield]], seed: int
) -> None:
    bandit, rng = Bandit(arms), random.Random(seed)
    for place, counts in history:
        bandit.add(arms[place % len(arms)].name, counts)
        bandit.shares(rng)
    for shares in (bandit.shares(rng), fixed_weights(arms)):
        assert sum(shares.values()) == pytest.approx(1)
        everyday = sum(shares[arm.name] for arm in arms if arm.everyday)
        assert everyday == 0 or everyday >= EVERYDAY - 1e-9
    floor = FLOORS / len(arms) * (1 - EVERYDAY)
    assert min(bandit.shares(rng).values()) >= floor - 1e-9
    weights = bandit.weights(rng)
    assert sum(weights.values()) == pytest.approx(1)
    assert min(weights.values()) > 0


@given(st.lists(st.sampled_from(["t", "u"]), min_size=1, unique=True))
def test_every_target_has_its_everyday_share(tags: list[str]) -> None:
    arms = [SimulatedArm(one, f"x@{tag}", 9.0 if one == "a" else 1.0, tag) for tag in tags for one in ("everyday", "a")]
    weights = fixed_weights(arms)
    for tag in tags:
        own = {arm.technique: weights[arm.name] for arm in arms if arm.tag == tag}
        assert own["everyday"] == pytest.approx(EVERYDAY * sum(own.values()))


def test_an_arm_that_is_dropped_gets_nothing_and_the_last_one_stays() -> None:
    bandit = Bandit([SimulatedArm("a"), SimulatedArm("b")])
    bandit.drop("a/levels")
    bandit.drop("b/levels")
    bandit.add("a/levels", ArmYield(signatures=9))
    assert bandit.shares(random.Random(0)) == {"b/levels": pytest.approx(1)}
