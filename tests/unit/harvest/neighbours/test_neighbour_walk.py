"""Laws of the walk from instances to their neighbours, and of pairwise coverage."""

from collections.abc import Mapping

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from miscompile.core.tensor import tensor
from miscompile.graph.check import check
from miscompile.harvest.neighbours.call import OPERANDS, OUTPUTS, parameters_of
from miscompile.harvest.neighbours.classes import classes
from miscompile.harvest.neighbours.coverage import Coverage
from miscompile.harvest.neighbours.onnx import refusal, subjects
from miscompile.harvest.neighbours.walk import STEPS, neighbours, scene_of
from miscompile.instances.classes import Pair, pairs_of
from miscompile.instances.code import decoded, digest_of, encoded
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
            assert name in change.words or name in (OPERANDS, OUTPUTS) or change.words.startswith("every size")


def _found(test: Instance, seed: int, limit: int = 8) -> list[Instance]:
    ((subject, known),) = subjects([test])
    return list(neighbours(subject, known, seed, limit, refusal, Coverage(test.api)))


@pytest.mark.parametrize("test", TESTS, ids=lambda test: test.api)
def test_neighbours_are_valid_distinct_and_say_where_they_are_from(test: Instance) -> None:
    found = _found(test, 0)
    assert 4 <= len(found) <= 8
    assert len({digest_of(one) for one in (*found, test)}) == len(found) + 1
    for one in found:
        assert one.source == "neighbours"
        assert one.origin.endswith(f"; from test_{test.api}")
        assert decoded(encoded(one)) == one
        migrated = migrate(one)
        assert migrated is not None
        check(migrated.case.program.payload)


def test_the_same_seed_gives_the_same_neighbours() -> None:
    assert list(map(encoded, _found(TESTS[0], 5))) == list(map(encoded, _found(TESTS[0], 5)))


def test_a_neighbour_covers_a_pair_that_nothing_before_it_covers() -> None:
    ((subject, known),) = subjects([TESTS[2]])
    covered: set[object] = set()
    for one in (TESTS[2], *neighbours(subject, known, 0, 12, refusal, Coverage("Gemm"))):
        values = parameters_of(subject, one)
        assert values is not None
        pairs = pairs_of(classes(scene_of(subject, values)))
        assert pairs - covered
        covered |= pairs


def _pairs(**found: str) -> frozenset[Pair]:
    return pairs_of(found)


def test_coverage_counts_and_says_why_a_class_is_missing() -> None:
    coverage = Coverage("Op")
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
    assert row["pairs"] == {"tests": 3, "neighbours": 2, "refused": 2, "not tried": 2, "not generated": 1}
    why: Mapping[str, str] = {item["class"]: item["why"] for item in row["missing"]}
    assert why["bool"] == "refused"
    assert why["int8"].startswith("not tried")


@pytest.mark.parametrize(
    ("policy", "inputs", "constants"), [("", 2, 0), ("first fed", 1, 1), ("first constant", 1, 1), ("shared", 1, 0)]
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
