"""What the library said is kept for later front ends of the same library, in little memory and within bounds."""

from collections.abc import Sequence

import numpy as np

from miscompile.core.case import Case, Program
from miscompile.core.outcome import Outcome, Raised, Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Array, Tensor, tensor
from miscompile.instances.instance import Instance
from miscompile.instances.program import to_case
from miscompile.instances.values import Held
from miscompile.migration.answers import LibraryCache, LibraryRunner
from miscompile.oracles.library_judge import judge
from miscompile.oracles.library_reference import NOISES, LibraryReference, assess

SIZE = 1000


def answer(results: list[Array], dtype: str = "float32") -> LibraryReference:
    """Assess results that lie in one buffer, as those from a worker do."""
    frame = np.concatenate(results).astype(dtype)
    views = [(tensor(frame[place * SIZE : (place + 1) * SIZE]),) for place in range(len(results))]
    instance = Instance("torch", "torch.abs", "function", (Held(tensor(np.ones(SIZE, np.float32))),))
    found = assess(instance, to_case(instance), Values(tuple(views)))
    assert isinstance(found, LibraryReference)
    return found


STILL = [np.arange(SIZE)] * (2 + NOISES)
MOVED = [*STILL[:-1], np.arange(SIZE) + 0.5]


def test_an_answer_holds_no_more_than_its_own_elements() -> None:
    still, moved = answer(STILL), answer(MOVED)
    for one in (still, moved):
        assert isinstance(one.results[0], Tensor)
        assert one.results[0].array.base is None
    assert still.size == 4 * SIZE
    assert moved.size == 8 * SIZE
    assert answer(MOVED, "float64").size == 16 * SIZE
    assert still.spread[0] is not None
    assert still.spread[0].shape == (SIZE,)


def test_a_small_spread_judges_like_a_large_one() -> None:
    exact = answer([np.full(SIZE, 3e38)] * (2 + NOISES - 1) + [np.full(SIZE, -3e38)])
    other = (tensor(np.full(SIZE, 1e38, np.float32)),)
    assert judge(exact, Values((other,)), "strict", {}).kind is None
    for one in (answer(STILL), answer(MOVED), answer(MOVED, "float64")):
        assert judge(one, Values((tuple(one.results),)), "strict", {}).kind is None
        result = one.results[0]
        assert result is not None
        far = (tensor(np.arange(SIZE, dtype=result.array.dtype) + 1e4),)
        assert judge(one, Values((far,)), "strict", {}).kind == "wrong"


def said() -> Values:
    """Return an outcome of `SIZE` floats."""
    return Values(((tensor(np.zeros(SIZE, np.float32)),),))


def test_only_what_a_later_front_end_runs_is_kept() -> None:
    answers, found = LibraryCache(), said()
    answers.expect(["a", "b"])
    answers.expect(["b", "c"])
    answers.begin(["a", "b"])
    for digest in ("a", "b"):
        assert answers.take(digest) is None
        answers.keep(digest, found)
    assert answers.size == SIZE * 4
    answers.end()
    answers.begin(["b", "c"])
    assert answers.take("a") is None
    assert answers.take("b") is found
    assert answers.take("c") is None
    answers.keep("c", found)
    assert answers.size == 0


def test_what_a_front_end_did_not_come_to_is_forgotten() -> None:
    answers = LibraryCache()
    for _ in range(2):
        answers.expect(["a"])
    answers.begin(["a"])
    answers.keep("a", said())
    answers.begin(["a"])  # the second, which stops before it
    answers.end()
    assert answers.size == 0
    assert answers.take("a") is None


def test_three_front_ends_share_an_answer() -> None:
    answers, found = LibraryCache(), said()
    for _ in range(3):
        answers.expect(["a"])
    seen = []
    for _ in range(3):
        answers.begin(["a"])
        seen.append(answers.take("a"))
        answers.keep("a", found)
        answers.end()
    assert seen == [None, found, found]
    assert answers.size == 0


def test_there_is_a_bound_in_bytes_and_what_came_first_stays() -> None:
    first, second, dropped = said(), said(), Raised("run", "E", "no")
    answers = LibraryCache(SIZE * 4)
    for _ in range(2):
        answers.expect(["a", "b", "c"])
    answers.begin(["a", "b", "c"])
    for digest, one in (("a", first), ("b", second), ("c", dropped)):
        answers.keep(digest, one)
    answers.begin(["a", "b", "c"])
    assert [answers.take(digest) for digest in "abc"] == [first, None, dropped]


def test_the_library_is_asked_only_about_what_is_not_known() -> None:
    asked: list[Run] = []

    class Library:
        def run(self, runs: Sequence[Run]) -> list[Outcome]:
            asked.extend(runs)
            return [said() for _ in runs]

    cache = LibraryCache()
    cases = [Case(Program("torch", bytes([place]), (), ()), ((),)) for place in range(3)]
    digests = [case.program.digest for case in cases]
    runner = LibraryRunner(Library(), "torch", cache)
    runner.tests = {id(case.program): digest for case, digest in zip(cases, digests, strict=True)}
    for _ in range(2):
        cache.expect(digests)
    seen = []
    for _ in range(2):
        cache.begin(digests)
        seen.append(runner.run([*(Run(case, "torch", Build("off")) for case in cases), Run(cases[0], "toy", Build())]))
        cache.end()
    assert len(asked) == 3 + 1 + 1
    assert all(one is other for one, other in zip(seen[0][:3], seen[1][:3], strict=True))
    assert cache.size == 0
