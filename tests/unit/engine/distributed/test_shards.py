"""The account of shards: each lane is done once, whatever dies, and no lane is given to two nodes."""

import random

from hypothesis import given
from hypothesis import strategies as st

from miscompile.engine.distributed.shards import LEAST_SECONDS, MOST_ATTEMPTS, SHARD_SECONDS, Shard, ShardBook


@given(st.integers(1, 40), st.lists(st.tuples(st.integers(1, 8), st.booleans()), min_size=1), st.randoms())
def test_each_lane_is_completed_once_or_given_up(lanes: int, turns: list[tuple[int, bool]], rng: random.Random) -> None:
    book = ShardBook(lanes, None)
    running: list[Shard] = []
    done: list[int] = []
    given_up: list[int] = []
    turn = 0
    while not book.is_over(0.0) or running:
        cpus, dies = turns[turn % len(turns)]
        turn += 1
        shard = book.take(cpus, 0.0)
        if shard is not None:
            assert 1 <= shard.lanes <= cpus
            assert not {*shard.numbers} & {lane for other in running for lane in other.numbers}
            assert not {*shard.numbers} & {*done, *given_up}
            running.append(shard)
        if running and (dies or shard is None or rng.random() < 0.5):
            ended = running.pop(rng.randrange(len(running)))
            if dies:
                given_up += book.give_back(ended)
            else:
                done += ended.numbers
    assert sorted(done + given_up) == list(range(lanes))


def test_a_lane_that_never_ends_is_given_up() -> None:
    book = ShardBook(2, None)
    dropped = []
    for _ in range(MOST_ATTEMPTS):
        shard = book.take(2, 0.0)
        assert shard is not None
        dropped.append(book.give_back(shard))
    assert dropped == [()] * (MOST_ATTEMPTS - 1) + [(0, 1)]
    assert book.is_over(0.0)


def test_a_wide_shard_is_done_again_on_narrow_nodes() -> None:
    book = ShardBook(4, None)
    wide = book.take(4, 0.0)
    assert wide == Shard(0, 4, None)
    book.give_back(wide)
    assert [book.take(3, 0.0), book.take(3, 0.0), book.take(3, 0.0)] == [Shard(0, 3, None), Shard(3, 1, None), None]


def test_time_bounds_the_shards() -> None:
    book = ShardBook(None, 2 * SHARD_SECONDS)
    assert book.take(2, 0.0) == Shard(0, 2, SHARD_SECONDS)
    assert book.take(4, SHARD_SECONDS + 100.0) == Shard(2, 4, SHARD_SECONDS - 100.0)
    assert book.take(1, 2 * SHARD_SECONDS - LEAST_SECONDS / 2) is None
    assert book.is_over(2 * SHARD_SECONDS - LEAST_SECONDS / 2)
    assert not ShardBook(None, None).is_over(1e9)


def test_a_campaign_that_is_shorter_than_the_shortest_shard_runs() -> None:
    assert ShardBook(None, 1.0).take(1, 0.0) == Shard(0, 1, 1.0)
