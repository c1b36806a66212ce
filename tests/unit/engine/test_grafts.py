"""Instances as seeds: an operator keeps the parameters of its test, and its floats the range that they had there."""

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from miscompile.base.errors import RejectedDraft, UsageError
from miscompile.base.rng import stream
from miscompile.core.tensor import tensor
from miscompile.engine.grafts import grafts, seed_of, seeds_from
from miscompile.graph.check import check
from miscompile.graph.read import read
from miscompile.instances.archive import Archive, write_archive
from miscompile.instances.instance import Instance
from miscompile.instances.values import Held, Value
from miscompile.ops.support import Support
from miscompile.producers.instances.migrated import cases_of
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.seeded import Seeded

X = np.array([[0.5, 2.0, 3.5]], np.float32)


def node(op: str, *operands: object, version: int = 17, **attributes: Value) -> Instance:
    inputs = tuple(Held(tensor(np.asarray(one))) for one in operands)
    return Instance("onnx", op, "node", (), attributes, inputs, version=version, origin=f"test_{op}")


INSTANCES = (
    node("LeakyRelu", X, alpha=0.3),
    node("Reshape", X, np.array([3, 1], np.int64)),
    node("Gather", X, np.array([0, 0], np.int64), axis=0),
    node("TopK", X, np.array([2], np.int64), largest=0),
)


def test_floats_range_as_in_the_test_and_integers_stay() -> None:
    seed = seed_of(node("Gather", X, np.array([0], np.int64), axis=0))
    assert [(span.lo, span.hi) for span in seed.ranges.values()] == [(0.5, 3.5)]
    assert [value.array.tolist() for value in seed.pinned.values()] == [[0]]


def test_operands_that_decide_on_shapes_are_constants() -> None:
    seed = seed_of(node("Reshape", X, np.array([3, 1], np.int64)))
    assert len(seed.graph.inputs) == 1
    assert [value.array.tolist() for value in seed.graph.initializers.values()] == [[3, 1]]


@pytest.mark.parametrize(
    "instance",
    [
        node("NonZero", X),
        node("Abs", np.array([np.inf], np.float32)),
        node("Abs", np.zeros((200, 200), np.float32)),
        Instance("onnx", "ai.onnx.ml.Binarizer", "node", (), {}, (Held(tensor(X)),), version=3),
    ],
)
def test_what_cannot_stand_in_a_graph_is_refused(instance: Instance) -> None:
    with pytest.raises(RejectedDraft):
        seed_of(instance)


def test_operators_take_turns() -> None:
    many = [node("Abs", X + number) for number in range(9)] + list(INSTANCES)
    found = seeds_from(many, random.Random(1), Counter())
    assert {seed.operators[0] for seed in found[:5]} == {"Abs", "Gather", "LeakyRelu", "Reshape", "TopK"}
    assert len(found) == len(many)


def test_programs_with_instances_are_valid_and_keep_parameters(tmp_path: Path) -> None:
    path = tmp_path / "onnx.jsonl.gz"
    write_archive(Archive("onnx", INSTANCES), path)
    said: list[str] = []
    producer = Seeded(grafts([path], 0, said.append).seeds, GeneratorOptions(), Support(open=True))
    assert producer.usable == len(INSTANCES)
    kinds, alphas = Counter[str](), Counter[float]()
    for number in range(60):
        case = producer.propose(stream(5, "grafts", number))
        check(case.program.payload)
        kinds[case.recipe["kind"]] += 1
        for one in read(case.program.payload).graph.nodes:
            if one.op == "LeakyRelu" and "alpha" in one.attributes:
                alphas[round(float(one.attributes["alpha"].value), 4)] += 1
    assert len(kinds) == 3
    assert alphas[0.3] > 3


def test_archives_without_such_instances_are_named(tmp_path: Path) -> None:
    path = tmp_path / "onnx.jsonl.gz"
    write_archive(Archive("onnx", (node("NonZero", X),)), path)
    said: list[str] = []
    with pytest.raises(UsageError, match="none of the 1 instances"):
        grafts([path], 0, said.append)
    assert len(list(cases_of([path]))) == 1
