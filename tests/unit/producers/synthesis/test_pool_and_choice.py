"""Who becomes a seed, who stays one, and which pattern is next."""

import random
from collections import Counter
from types import SimpleNamespace
from typing import cast

import pytest

from miscompile.base.errors import SpecError
from miscompile.patterns.pattern import Pattern, Trigger
from miscompile.patterns.shipped import fusion_motifs
from miscompile.producers.synthesis.choice import Chooser
from miscompile.producers.synthesis.host import Host
from miscompile.producers.synthesis.options import OatestOptions
from miscompile.producers.synthesis.pool import SeedPool

HOST = cast(Host, object())


def pattern(name: str, *passes: str) -> Pattern:
    return Pattern(name, None, fusion_motifs()[0], "block", tuple(Trigger("toy", "1", one) for one in passes))


def test_a_set_of_passes_is_new_once() -> None:
    pool = SeedPool(4)
    assert pool.observe(frozenset("ab"))
    assert not pool.observe(frozenset("ab"))
    assert pool.observe(frozenset("a"))
    assert pool.fired == {"a": 3, "b": 2}
    assert pool.together == {("a", "b"): 2}


def test_the_longest_idle_seed_has_to_go_else_the_oldest() -> None:
    pool = SeedPool(3)
    entries = [pool.put(HOST, frozenset(letter)) for letter in "abc"]
    pool.put(HOST, frozenset("d"))
    assert entries[0] not in pool.entries
    entries[2].idle = 100
    pool.put(HOST, frozenset("e"))
    assert entries[2] not in pool.entries
    assert entries[1] in pool.entries
    assert len(pool.entries) == 3


def test_a_seed_is_drawn_whose_passes_were_seen_least_beside_the_wanted_ones() -> None:
    pool = SeedPool(10)
    common, rare = pool.put(HOST, frozenset("a")), pool.put(HOST, frozenset("b"))
    for _ in range(50):
        pool.observe(frozenset("ax"))
    pool.observe(frozenset("bx"))
    rng = random.Random(1)
    drawn = [pool.draw(rng, ["x"]) for _ in range(60)]
    assert drawn.count(rare) > 2 * drawn.count(common)
    assert SeedPool(1).draw(rng) is None


def test_a_seed_of_an_opset_that_serves_is_drawn() -> None:
    pool = SeedPool(10)
    for opset in (17, 18, 17, 21):
        pool.put(cast(Host, SimpleNamespace(opset=opset)))
    rng = random.Random(1)
    found = [pool.draw(rng, wanted, opsets) for wanted, opsets in [("", (18,))] * 9 + [("x", (17, 21))] * 40]
    assert all(one is pool.entries[1] for one in found[:9])
    assert {one.host.opset for one in found[9:] if one is not None} == {17, 21}
    assert pool.draw(rng, (), (19,)) is None


def test_steering_prefers_passes_that_were_seen_less() -> None:
    chooser = Chooser([pattern("often", "A"), pattern("seldom", "B"), pattern("unknown")], ["toy"])
    rng = random.Random(0)
    drawn = Counter(chooser.draw(rng, {"A": 10_000}).name for _ in range(600))
    assert drawn["seldom"] > 2 * drawn["often"]
    assert drawn["unknown"] > 50
    assert chooser.intended(chooser.patterns[0]) == {"A"}
    assert Chooser([pattern("other", "A")], ["elsewhere"]).by_pass == {}


def test_a_pattern_that_never_fits_is_given_up_and_one_that_did_is_not() -> None:
    never, once = pattern("never", "A"), pattern("once", "A")
    chooser = Chooser([never, once], ["toy"])
    chooser.placed(once)
    for _ in range(30):
        chooser.failed(never)
        chooser.failed(once)
    assert chooser.patterns == [once]
    assert chooser.by_pass == {"A": [once]}


@pytest.mark.parametrize("wrong", [{"nodes": 0}, {"share": 0.0}, {"calls": 1.5}, {"shipped": False}, {"max_rank": -1}])
def test_options_that_leave_nothing_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(SpecError):
        OatestOptions(**wrong)  # type: ignore[arg-type]
