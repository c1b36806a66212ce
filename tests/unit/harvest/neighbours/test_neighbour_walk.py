"""Laws of the walk from instances to their neighbours, and of pairwise coverage."""

from collections.abc import Mapping

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from miscompile.core.tensor import tensor
from miscompile.graph.check import check
from miscompile.harvest.neighbours.call import OPERANDS, OUTPUTS, parameters_of, rebuilt
from miscompile.harvest.neighbours.classes import classes
from miscompile.harvest.neighbours.coverage import PairCoverage
from miscompile.harvest.neighbours.onnx import refusal, subjects
from miscompile.harvest.neighbours.specification import WORDS
from miscompile.harvest.neighbours.walk import STEPS, neighbours, scene_of
from miscompile.instances.classes import ClassPair, pairs_of
from miscompile.instances.code import decoded, digest_of, encoded, with_parent
from miscompile.instances.differences import differences
from miscompile.instances.instance import Instance, OperandPolicy
from miscompile.instances.values import Held
from miscompile.producers.instances.migrated import migrate


def _held(*shape: int) -> Held:
    return Held(tensor(np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(np.float32)))


def _node(api: str, *inputs: Held | None, version: int = 13, **kwargs: int | tuple[int, ...]) -> Instance:
    return Instance(
        "onnx", api, "node", kwargs=kwargs, inputs=inputs, version=version, source="tests", origin=f"test_{api}"
    )


TESTS = (
    _node("Clip", _held(2, 3), _held(), None),
    _node("Softmax", _held(2, 3), axis=1),
    _node("Gemm", _held(2, 3), _held(3, 4), _held(4), transA=0),
    _node("MaxPool", _held(1, 1, 5), version=12, kernel_shape=(2,)),
    _node("Add", _held(3), _held(3), version=14),
)


def _same(one: object, other: object) -> bool:
    return type(one) is type(other) and one == other


@given(st.sampled_from(TESTS), st.sampled_from(sorted(STEPS)), st.integers(0, 3))
def test_a_step_changes_what_it_says_and_nothing_else(test: Instance, step: str, seed: int) -> None:
    ((subject, _),) = subjects([test])
    values = parameters_of(subject, test)
    assert values is not None
    for change in STEPS[step](scene_of(subject, values, seed=seed)):
        changed = [name for name, value in change.values.items() if not _same(values.get(name), value)]
        assert changed
        for name in changed:
            every = change.words.startswith("every size") or change.words == WORDS
            assert name in change.words or name in (OPERANDS, OUTPUTS) or every


@given(st.sampled_from(TESTS), st.sampled_from(sorted(STEPS)), st.sampled_from(sorted(STEPS)), st.integers(0, 3))
@settings(max_examples=40)
def test_two_steps_give_an_instance_of_moderate_size_with_the_classes_of_its_parameters(
    test: Instance, first: str, second: str, seed: int
) -> None:
    ((subject, _),) = subjects([test])
    values = parameters_of(subject, test)
    assert values is not None
    middle = list(STEPS[first](scene_of(subject, values, seed=seed)))
    for one in middle[:: max(1, len(middle) // 4)]:
        between = {**values, **one.values}
        ends = list(STEPS[second](scene_of(subject, between, seed=seed)))
        for other in ends[:: max(1, len(ends) // 4)]:
            changed = {**between, **other.values}
            made = rebuilt(subject, test, changed)
            again = parameters_of(subject, made)
            assert again is not None
            assert classes(scene_of(subject, again)) == classes(scene_of(subject, changed))
            tensors = scene_of(subject, changed).tensors().values()
            assert all(len(value.shape) <= 8 and value.array.size <= 1 << 13 for value in tensors)
            assert decoded(encoded(made)) == made


def _found(test: Instance, seed: int, limit: int = 8) -> list[Instance]:
    ((subject, known),) = subjects([test])
    return list(neighbours(subject, known, seed, limit, refusal, PairCoverage(test.api)))


@pytest.mark.parametrize("test", TESTS, ids=lambda test: test.api)
def test_neighbours_are_valid_distinct_and_say_where_they_are_from(test: Instance) -> None:
    found = _found(test, 0)
    assert 4 <= len(found) <= 8
    assert len({digest_of(one) for one in (*found, test)}) == len(found) + 1
    for one in found:
        assert one.source == "neighbours"
        assert one.origin.endswith(f"; from test_{test.api}")
        assert decoded(with_parent(one)) == one
        assert one.parent is not None
        assert one.parent.instance.origin == test.origin
        assert differences(one, one.parent.instance)
        migrated = migrate(one)
        assert migrated is not None
        check(migrated.case.program.payload)


def test_the_same_seed_gives_the_same_neighbours() -> None:
    assert list(map(encoded, _found(TESTS[0], 5))) == list(map(encoded, _found(TESTS[0], 5)))


def test_a_neighbour_covers_a_pair_that_nothing_before_it_covers() -> None:
    ((subject, known),) = subjects([TESTS[2]])
    covered: set[object] = set()
    for one in (TESTS[2], *neighbours(subject, known, 0, 12, refusal, PairCoverage("Gemm"))):
        values = parameters_of(subject, one)
        assert values is not None
        pairs = pairs_of(classes(scene_of(subject, values)))
        assert pairs - covered
        covered |= pairs


def _pairs(**found: str) -> frozenset[ClassPair]:
    return pairs_of(found)


def test_coverage_counts_and_says_why_a_class_is_missing() -> None:
    coverage = PairCoverage("Op")
    coverage.test(_pairs(axis="0", type="float32"))
    assert coverage.gain(_pairs(axis="0", type="float32")) == 0
    assert coverage.gain(_pairs(axis="1", type="float32")) == 2
    coverage.keep(_pairs(axis="1", type="float32"))
    for _ in range(4):
        coverage.refuse(_pairs(axis="1", type="bool"), "refused")
    assert coverage.gain(_pairs(axis="0", type="bool")) == 0, "the library refuses bool"
    coverage.drawn |= _pairs(axis="0", type="int8")
    row = coverage.as_json()
    assert (row["tests"], row["kept"], row["refused"]) == (1, 1, 4)
    assert row["pairs"] == {"tests": 3, "neighbours": 2, "refused": 2, "not tried": 2, "not generated": 2}
    why: Mapping[str, str] = {item["class"]: item["why"] for item in row["missing"]}
    assert why["bool"] == "refused"
    assert why["int8"].startswith("not tried")


@pytest.mark.parametrize(
    ("policy", "inputs", "constants"),
    [("", 2, 0), ("first fed", 1, 1), ("first constant", 1, 1), ("constant", 0, 2), ("shared", 1, 0)],
)
def test_the_program_of_an_instance_obeys_its_operands(policy: OperandPolicy, inputs: int, constants: int) -> None:
    add = Instance("onnx", "Add", "node", inputs=(_held(3), _held(3)), version=14, operands=policy)
    test = migrate(decoded(encoded(add)))
    assert test is not None
    model = onnx.load_from_string(test.case.program.payload)
    assert (len(model.graph.input), len(model.graph.initializer)) == (inputs, constants)


def test_onnx_refuses_what_is_not_valid() -> None:
    assert refusal(TESTS[0]) == ""
    assert refusal(_node("Softmax", _held(2, 3), axis=7)) == "onnx's checker refuses it"
    assert refusal(_node("MatMul", _held(2, 3), _held(2, 3))) == "onnx's checker refuses it"


def test_the_walk_goes_two_and_three_steps_when_one_does_not_reach_all_pairs() -> None:
    few = [one.origin.partition("; from ")[0].count(" and ") for one in _found(TESTS[1], 0, limit=4)]
    many = [one.origin.partition("; from ")[0].count(" and ") for one in _found(TESTS[1], 0, limit=150)]
    assert set(many) == {0, 1, 2}
    assert many[: len(few)].count(0) >= 2


def test_refused_classes_are_tried_a_few_times_only() -> None:
    ((subject, known),) = subjects([TESTS[1]])
    tried: list[Instance] = []

    def floats_only(instance: Instance) -> str:
        tried.append(instance)
        (value,) = instance.inputs
        assert isinstance(value, Held)
        return "" if value.tensor.dtype == "float32" else "floats only"

    coverage = PairCoverage("Softmax")
    found = list(neighbours(subject, known, 0, 60, floats_only, coverage))
    assert len(found) > 20
    row = coverage.as_json()
    types = [item for item in row["missing"] if item["factor"] == "type T"]
    assert {item["class"]: item["why"] for item in types}["float16"] == "floats only"
    halves = [one for one in tried if isinstance(one.inputs[0], Held) and one.inputs[0].tensor.dtype == "float16"]
    assert 1 <= len(halves) <= 4


def test_constants_with_other_results_count_as_much_as_a_new_type() -> None:
    coverage = PairCoverage("Unique")
    coverage.test(_pairs(operands="as migrated", results="1111", type="float32"))
    folded = _pairs(operands="constant", results="1011", type="float32")
    fed = _pairs(operands="fed", results="1011", type="float32")
    assert coverage.gain(folded) - coverage.gain(fed) > 5
    coverage.keep(folded)
    assert coverage.gain(folded) == 0
