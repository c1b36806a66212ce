"""Blocks of sequences and optionals: valid in every opset, right by onnx's reference, and asked for one by one."""

import random

import numpy as np
import onnx
import pytest
from onnx import checker
from onnx.reference import ReferenceEvaluator

from miscompile.ops.spec import OperatorLimits
from miscompile.ops.support import Support
from miscompile.ops.values import Style
from miscompile.producers.finish import finish, leaves
from miscompile.producers.motifs.containers import (
    BLOCKS,
    DTYPES_OF_BLOCKS,
    block_key,
    plant_container,
    questions,
    taken_blocks,
)
from miscompile.producers.scope import Scope

OPEN = Support(open=True)
EVALUATED = sorted(name for name in BLOCKS if not name.startswith("optional") and name != "mapped")
"""onnx.reference takes an optional tensor for a list, and does not see what the body of SequenceMap captures."""


def scope_of(seed: int, opset: int) -> Scope:
    return Scope(random.Random(seed), opset, OperatorLimits(max_elements=256), Style(integral=True), OPEN)


@pytest.mark.parametrize("name", sorted(BLOCKS))
def test_blocks_pass_the_full_checker(name: str) -> None:
    planted = 0
    for seed in range(24):
        opset = 17 + seed % 12
        scope = scope_of(seed, opset)
        found = plant_container(scope, name, DTYPES_OF_BLOCKS[seed % len(DTYPES_OF_BLOCKS)])
        if found is None:
            continue
        planted += 1
        case = finish(scope, leaves(scope), 1, {})
        checker.check_model(onnx.load_model_from_string(case.program.payload), full_check=True)
        assert {port.name for port in case.program.outputs} <= {result.name for result in found.results}
    assert planted > 15


@pytest.mark.parametrize("name", EVALUATED)
def test_types_and_bounds_hold_in_the_reference(name: str) -> None:
    for seed in range(12):
        scope = scope_of(seed, 22)
        found = plant_container(scope, name, ("float32", "int64", "bool")[seed % 3])
        if found is None:
            continue
        case = finish(scope, [result.name for result in found.results], 1, {})
        feeds = {port.name: value.array for port, value in zip(case.program.inputs, case.feeds[0], strict=True)}
        results = ReferenceEvaluator(onnx.load_model_from_string(case.program.payload)).run(None, feeds)
        for result, operand in zip(map(np.asarray, results), found.results, strict=True):
            assert (result.shape, result.dtype.name) == (operand.shape, operand.dtype)
            assert operand.facts.inside(-np.inf, np.inf)
            assert operand.facts.lo <= result.min()
            assert result.max() <= operand.facts.hi


def test_what_is_no_tensor_has_no_entry_in_the_scope() -> None:
    scope = scope_of(0, 22)
    mark = scope.mark()
    assert plant_container(scope, "construct_at", "float32") is not None
    made = {name for node in scope.nodes if node.op in ("SequenceConstruct", "SequenceEmpty") for name in node.outputs}
    assert made
    assert not made & set(scope.operands)
    scope.rollback(mark)
    assert not scope.nodes
    assert not scope.operands


def test_only_blocks_that_were_taken_are_offered() -> None:
    key = block_key("split_at", "int64", 21)
    assert taken_blocks(Support(taken={key}), 21, DTYPES_OF_BLOCKS) == (("split_at", "int64"),)
    assert taken_blocks(Support(taken={key}), 24, DTYPES_OF_BLOCKS) == ()  # SplitToSequence is another one there
    assert taken_blocks(Support(), 21, DTYPES_OF_BLOCKS) == ()
    assert taken_blocks(OPEN, 21, ("float32",)) == tuple((name, "float32") for name in BLOCKS)


def test_old_opsets_have_no_optionals() -> None:
    assert not any(name.startswith("optional") for name, _ in taken_blocks(OPEN, 14, DTYPES_OF_BLOCKS))


def test_each_key_is_asked_about() -> None:
    asked = list(questions((17, 24)))
    keys = {question.key for question in asked}
    assert keys == {
        block_key(*pair, opset) for opset in (17, 24) for pair in taken_blocks(OPEN, opset, DTYPES_OF_BLOCKS)
    }
    assert all(question.case.program.outputs for question in asked)
