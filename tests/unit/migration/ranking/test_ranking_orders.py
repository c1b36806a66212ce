"""Orders: permutations that the seed decides, each greedy in what it says it is."""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from miscompile.base.errors import UsageError
from miscompile.instances.instance import Instance
from miscompile.instances.values import Value
from miscompile.migration.ranking.order import ORDERS, RankingFacts, ranked
from miscompile.migration.ranking.partition import ABSENT, Subspace, setting
from miscompile.migration.ranking.score import key_of, operator_of, signature_scores


def instances() -> st.SearchStrategy[list[Instance]]:
    given_values: st.SearchStrategy[Value] = st.sampled_from([None, True, 0, 1, 5, -1, 0.5, "same", (2, 1)])
    named = st.dictionaries(st.sampled_from(["a", "b", "c"]), given_values, max_size=3)
    api = st.sampled_from(["torch.add", "torch.mul", "torch.nn.Conv2d"])
    one = st.builds(lambda path, kwargs: Instance("torch", path, "function", (), kwargs), api, named)
    return st.lists(one, max_size=14)


COUNTS = {"add": 4, "conv2d": 0}


@settings(max_examples=60)
@given(instances(), st.integers(0, 3), st.sampled_from(sorted(ORDERS)))
def test_an_order_is_a_permutation_that_the_seed_decides(tests: list[Instance], seed: int, name: str) -> None:
    facts = RankingFacts(seed, COUNTS)
    places = ranked(name, tests, facts)
    assert sorted(places) == list(range(len(tests)))
    assert ranked(name, tests, facts) == places


class Definition:
    """The scores as the paper words them, counted anew at every step."""

    def __init__(self, tests: Sequence[Instance], scores: dict[tuple[str, str], float]) -> None:
        self.tests = tests
        self.scores = scores
        names: dict[tuple[str, str], set[str]] = {}
        for test in tests:
            names.setdefault(operator_of(test), set()).update(setting(test))
        self.names = {operator: sorted(found) for operator, found in names.items()}

    def items(self, place: int) -> list[object]:
        test = self.tests[place]
        given = setting(test)
        row: list[tuple[str, Subspace]] = [(n, given.get(n, ABSENT)) for n in self.names[operator_of(test)]]
        return [*row, *combinations(row, 2)] or ["no parameter"]

    def product(self, place: int, before: Sequence[int]) -> float:
        operator = operator_of(self.tests[place])
        met = {item for one in before if operator_of(self.tests[one]) == operator for item in self.items(one)}
        items = self.items(place)
        return self.scores[operator] * sum(item not in met for item in items) / len(items)


@settings(max_examples=80)
@given(instances(), st.integers(0, 3), st.sampled_from(["opera", "parameters"]))
def test_the_greatest_product_comes_next(tests: list[Instance], seed: int, name: str) -> None:
    scores = signature_scores(tests, COUNTS)
    definition = Definition(tests, scores if name == "opera" else dict.fromkeys(scores, 1.0))
    places = ranked(name, tests, RankingFacts(seed, COUNTS))
    for step, place in enumerate(places):
        before = places[:step]
        best = max(definition.product(other, before) for other in places[step:])
        assert definition.product(place, before) == pytest.approx(best)


def test_an_operator_that_is_never_tested_counts_as_tested_once() -> None:
    tests = [Instance("torch", api, "function") for api in ("torch.add", "torch.add", "torch.mul", "torch.nn.Conv2d")]
    found = {operator[0]: score for operator, score in signature_scores(tests, COUNTS).items()}
    assert found == {"torch.add": 0.5, "torch.mul": 1.0, "torch.nn.Conv2d": 1.0}


def test_ways_to_one_operator_are_counted_together_in_the_library_too() -> None:
    ways = [("torch.nn.Conv2d", 3), ("torch.nn.functional.conv2d", 4), ("torch.conv2d", 2)]
    tests = [Instance("torch", api, "function") for api, count in ways for _ in range(count)]
    assert set(signature_scores(tests, {"conv2d": 3}).values()) == {3.0}


def test_instances_that_were_made_are_no_uses_in_tests() -> None:
    tests = [Instance("onnx", "Add", "node", (), {"x": 1}, source="tests")]
    made = [Instance("onnx", api, "node", (), {"x": 2}, source="versions") for api in ("Add", "Add", "Mul")]
    found = {operator[0]: score for operator, score in signature_scores(tests + made, {}).items()}
    assert found == {"Add": 1.0, "Mul": 1.0}


@pytest.mark.parametrize(
    ("library", "api", "key"),
    [
        ("onnx", "ai.onnx.ml.Scaler", "Scaler"),
        ("torch", "torch.nn.MaxPool2d", "maxpool2d"),
        ("torch", "torch.nn.functional.max_pool2d", "maxpool2d"),
        ("torch", "torch.Tensor.add_", "add"),
        ("keras", "keras.layers.Conv2DTranspose", "conv2dtranspose"),
    ],
)
def test_ways_to_one_operator_have_one_key(library: str, api: str, key: str) -> None:
    assert key_of(library, api) == key


def test_operators_alone_rank_by_the_ratio() -> None:
    tests = [Instance("torch", f"torch.{name}", "function", (), {"a": n}) for n in range(4) for name in ("add", "mul")]
    places = ranked("operators", tests, RankingFacts(counts=COUNTS))
    assert [tests[place].operator for place in places] == ["mul"] * 4 + ["add"] * 4


def test_what_cannot_be_ranked_is_said() -> None:
    one = Instance("torch", "torch.add", "function")
    with pytest.raises(UsageError, match="there is no order 'best'"):
        ranked("best", [one], RankingFacts())
    with pytest.raises(UsageError, match="several libraries"):
        ranked("random", [one, Instance("onnx", "Add", "node")], RankingFacts())


def test_after_one_test_of_each_class_the_rest_has_no_score() -> None:
    tests = [Instance("torch", "torch.add", "function", (), {"a": number}) for number in (5, 6, 7, 0, 0, 1)]
    first = [
        subclass for place in ranked("opera", tests, RankingFacts())[:3] for subclass in setting(tests[place]).values()
    ]
    assert Counter(first) == {("int", 2): 1, ("int", 0): 1, ("int", 1): 1}
