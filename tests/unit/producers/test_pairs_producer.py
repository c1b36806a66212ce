"""The sweep of pairs: its list, the two operators of every program, and what the second one reads."""

import os
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from miscompile.base.errors import RejectedDraft, UsageError
from miscompile.base.rng import stream
from miscompile.core.case import Case
from miscompile.graph.check import check
from miscompile.graph.foreign import to_foreign
from miscompile.graph.model import Model, Node, TensorType
from miscompile.graph.read import read
from miscompile.graph.typing import value_types
from miscompile.ops.registry import specs
from miscompile.ops.support import Support
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.pairs import ROUNDS, Pairs

OPEN = Support(open=True)

DIGESTS = """
from miscompile.base.rng import stream
from miscompile.ops.support import Support
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.pairs import Pairs
pairs = Pairs(GeneratorOptions(ops=("Add", "Concat", "Conv", "Cast", "TopK")), Support(open=True))
for index, task in enumerate(pairs.tasks):
    pairs.begin(task)
    print(task, pairs.propose(stream(7, "case", index)).program.digest)
"""


def made(pairs: Pairs, seed: int = 0) -> dict[str, Case]:
    """Return the cases of all tasks by name, those left out that cannot be drawn."""
    found = {}
    for index, task in enumerate(pairs.tasks):
        pairs.begin(task)
        try:
            found[task] = pairs.propose(stream(seed, "pairs", index))
        except RejectedDraft:
            continue
    return found


def calls(model: Model) -> list[Node]:
    """Return the nodes but for constants."""
    return [node for node in model.graph.nodes if node.op != "Constant"]


def test_all_pairs_of_fitting_types_come_once_before_any_comes_twice() -> None:
    ops = ("Add", "Relu", "Equal", "Not", "Cast", "ConstantOfShape")
    tasks = Pairs(GeneratorOptions(ops=ops, dtypes=("float32", "bool")), OPEN).tasks
    number, both = {"Add", "Relu", "Cast"}, {"Equal", "Cast"}
    expected = {(one, other) for one in (*number, "ConstantOfShape") for other in number | {"Equal"}}
    expected |= {(one, other) for one in ("Equal", "Not", "Cast", "ConstantOfShape") for other in both | {"Not"}}
    expected |= {("Cast", other) for other in number | {"Equal"}}
    half = len(tasks) // ROUNDS
    assert [task.rpartition(" ")[0] for task in tasks[:half]] == [task.rpartition(" ")[0] for task in tasks[half:]]
    assert {tuple(task.split(" ")[:2]) for task in tasks} == expected
    assert len(set(tasks)) == len(tasks) == ROUNDS * len(expected)


def test_the_second_operator_reads_the_first_and_both_reach_the_outputs() -> None:
    ops = ("Add", "Relu", "Transpose", "MatMul", "Where", "TopK", "Gather", "Conv", "ReduceSum", "Split")
    found = made(Pairs(GeneratorOptions(ops=ops), OPEN))
    assert len(found) == ROUNDS * len(ops) ** 2
    main = 0
    for task, case in found.items():
        model = read(case.program.payload)
        check(model)
        first, second = calls(model)
        assert [first.op, second.op] == task.split(" ")[:2] == case.recipe["pair"]
        places = [place for place, name in enumerate(second.inputs) if name in first.outputs]
        assert places
        assert {name for name in second.outputs if name} <= {port.name for port in case.program.outputs}
        main += specs()[second.op].main in places
    assert main == len(found)


def test_operators_of_all_families_make_valid_pairs_with_finite_results() -> None:
    pairs = Pairs(GeneratorOptions(), OPEN)
    drawn = evaluated = 0
    for index, task in enumerate(pairs.tasks[:300]):
        pairs.begin(task)
        try:
            case = pairs.propose(stream(3, "pairs", index))
        except RejectedDraft:
            continue
        drawn += 1
        model = read(case.program.payload)
        check(model)
        assert len(calls(model)) == 2
        for port, value in zip(case.program.inputs, case.feeds[0], strict=True):
            assert (value.dtype, value.shape) == (port.dtype, port.shape)
        evaluated += _finite(case)
    assert drawn > 240
    assert evaluated > 100


def _finite(case: Case) -> bool:
    """Check the outputs that onnx's reference computes for a case; tell whether it computes any."""
    feed = {port.name: to_foreign(value) for port, value in zip(case.program.inputs, case.feeds[0], strict=True)}
    try:
        results = ReferenceEvaluator(case.program.payload).run(None, feed)
    except Exception:  # noqa: BLE001 - onnx's reference lacks many forms, and says so in many ways
        return False
    arrays = [np.asarray(one) for one in results]
    for port, array in zip(case.program.outputs, arrays, strict=True):
        if array.dtype.name == port.dtype and array.dtype.kind == "f":
            assert np.isfinite(array).all(), case.recipe
    return True


def test_the_second_draw_of_a_pair_is_another_one() -> None:
    found = made(Pairs(GeneratorOptions(ops=("Concat", "Conv", "Pad", "Softmax"), opsets=(21,)), OPEN))
    digests = {task: case.program.digest for task, case in found.items()}
    assert all(digests[task] != digests[f"{task[:-1]}1"] for task in found if task.endswith(" 0"))


def test_dtypes_opsets_and_ranks_are_those_asked_for() -> None:
    options = GeneratorOptions(ops=("Add", "Relu", "Cast"), dtypes=("float16",), opsets=(18,), max_rank=2)
    for case in made(Pairs(options, OPEN)).values():
        model = read(case.program.payload)
        assert model.opset == 18
        types = value_types(model)
        first, second = calls(model)
        link = types[next(name for name in second.inputs if name in first.outputs)]
        assert isinstance(link, TensorType)
        assert link.dtype == "float16"
        assert all(len(port.shape or ()) <= 2 for port in (*case.program.inputs, *case.program.outputs))


def test_a_pair_that_the_target_does_not_take_is_not_in_the_list() -> None:
    support = Support(taken={"Relu-14(float32)float32", "Neg-13(float32)float32", "Not-1(bool)bool"})
    tasks = Pairs(GeneratorOptions(opsets=(21,)), support).tasks
    pairs = Counter(tuple(task.split(" ")[:2]) for task in tasks)
    fitting = {(one, other) for one in ("Relu", "Neg") for other in ("Relu", "Neg")} | {("Not", "Not")}
    assert pairs == dict.fromkeys(fitting, ROUNDS)


def test_a_pair_that_no_draft_joins_is_rejected() -> None:
    pairs = Pairs(GeneratorOptions(ops=("Sin", "Acosh")), OPEN)
    pairs.begin("Sin Acosh 0")  # no sine is above one
    with pytest.raises(RejectedDraft, match="Sin and Acosh make no program"):
        pairs.propose(stream(0, "pairs"))


def test_no_pair_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="no pair of operators is left"):
        Pairs(GeneratorOptions(ops=("Not",), dtypes=("float32",)), OPEN)


def test_the_same_seed_makes_the_same_bytes_whatever_the_hash_seed() -> None:
    printed = []
    for hash_seed in ("0", "12345"):
        done = subprocess.run(
            [sys.executable, "-c", DIGESTS],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True, text=True, check=True, timeout=120,
        )  # fmt: skip
        printed.append(done.stdout.splitlines())
    assert printed[0] == printed[1]
    assert len(printed[0]) == ROUNDS * 25
