"""Orders that OPERA is compared with: permutations that the seed decides, each greedy in its own measure."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.opera.fast import fast
from evaluation.opera.orders import BY_STATEMENTS, ORDERS, CoveredFacts, ranked
from evaluation.opera.statements import additional, text_of, total
from miscompile.base.errors import UsageError
from miscompile.instances.code import digest_of
from miscompile.instances.instance import Instance
from miscompile.instances.values import Drawn
from miscompile.migration.ranking import order
from miscompile.migration.ranking.order import RankingFacts

TESTS = [
    Instance("torch", f"torch.{name}", "function", (), {"a": number}) for number in (5, 0, 1) for name in ("a", "b")
]


def facts_for(tests: Sequence[Instance], seed: int) -> CoveredFacts:
    covered = {digest_of(test): frozenset[int | str](range(place)) for place, test in enumerate(tests)}
    return CoveredFacts(seed, {"a": 4}, covered)


@pytest.mark.parametrize("name", ORDERS)
def test_an_order_is_a_permutation_that_the_seed_decides(name: str) -> None:
    places = [ranked(name, TESTS, facts_for(TESTS, seed)) for seed in (0, 0, 1, 2, 3)]
    assert all(sorted(one) == list(range(len(TESTS))) for one in places)
    assert places[0] == places[1]


def test_the_orders_of_migrate_are_among_them_and_rank_alike() -> None:
    assert list(ORDERS) == [*order.ORDERS, "fast", "total", "additional", "first-come"]
    for name in order.ORDERS:
        assert ranked(name, TESTS, facts_for(TESTS, 7)) == order.ranked(name, TESTS, RankingFacts(7, {"a": 4}))


def test_statements_decide() -> None:
    assert ranked("total", TESTS, facts_for(TESTS, 0)) == [5, 4, 3, 2, 1, 0]
    assert ranked("first-come", TESTS, facts_for(TESTS, 0)) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("name", sorted(BY_STATEMENTS))
@pytest.mark.parametrize("facts", [CoveredFacts(), RankingFacts()])
def test_an_order_by_statements_needs_them(name: str, facts: RankingFacts) -> None:
    with pytest.raises(UsageError, match="collect them first"):
        ranked(name, TESTS, facts)


def test_what_cannot_be_ranked_is_said() -> None:
    with pytest.raises(UsageError, match=r"no order .best.; there are: opera, .*first-come"):
        ranked("best", TESTS, CoveredFacts())
    with pytest.raises(UsageError, match="several libraries"):
        ranked("fast", [TESTS[0], Instance("onnx", "Add", "node")], CoveredFacts())


@given(st.lists(st.frozensets(st.integers(0, 12)), max_size=12))
def test_additional_takes_what_adds_most_and_starts_anew(covered: list[frozenset[int]]) -> None:
    places = additional(covered, range(len(covered)))
    assert sorted(places) == list(range(len(covered)))
    reached: frozenset[int] = frozenset()
    for step, place in enumerate(places):
        gains = [len(covered[other] - reached) for other in places[step:]]
        if not any(gains):
            reached = frozenset()
            gains = [len(covered[other]) for other in places[step:]]
        assert len(covered[place] - reached) == max(gains)
        reached |= covered[place]


@given(st.lists(st.frozensets(st.integers(0, 9)), max_size=12))
def test_total_ranks_by_number(covered: list[frozenset[int]]) -> None:
    sizes = [len(covered[place]) for place in total(covered, range(len(covered)))]
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.quality
def test_fast_spreads_over_what_is_different() -> None:
    kinds = [f"{letter * 30}({letter}=" for letter in "pqrst"]
    texts = [f"{kind}{number})" for kind in kinds for number in range(40)]
    early = [len({place // 40 for place in fast(texts, seed)[:8]}) for seed in range(10)]
    assert sum(early) / len(early) > 4.5, "eight of 200 texts of five kinds meet nearly all kinds"


def test_fast_takes_short_and_no_texts() -> None:
    assert fast([], 0) == []
    assert sorted(fast(["", "a", "a", "añb"], 1)) == [0, 1, 2, 3]


def test_a_text_tells_type_and_shape_but_no_values() -> None:
    one = Instance("torch", "torch.add", "function", (Drawn("float32", (2, 3), seed=1),), {"alpha": 2})
    other = Instance("torch", "torch.add", "function", (Drawn("float32", (2, 3), seed=2),), {"alpha": 2})
    assert text_of(one) == text_of(other) == "torch.add(0=float32[2, 3], alpha=2)"
