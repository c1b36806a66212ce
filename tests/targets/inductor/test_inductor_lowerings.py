"""The lowerings to torch, run eagerly: the standard's node cases, and random calls against ONNX Runtime."""

import importlib.util

import pytest
from inductor_calls import Call, difference, draws, node_cases, table

from miscompile.core.outcome import Outcome, Unsupported, Values
from miscompile.core.run import Build, Run
from miscompile.execution.limits import Limits
from miscompile.execution.pool import LocalPool
from miscompile.graph.read import read
from miscompile.ops.registry import specs
from miscompile.targets.lowering.torch_program import program

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")

OPEN = {
    "Attention": "no lowering that gives its scores, and none for windows",
    "Col2Im": "two axes only",
    "DFT": "no one-sided inverse",
    "Dropout": "random in training",
    "Loop": "no results of every turn, if their number is fed",
    "Resize": "no antialiasing, cropping or kept aspect ratio",
    "ReduceMax": "not of no elements",
    "ReduceMin": "not of no elements",
    "RoiAlign": "means only",
    "Scan": "no batch, which it had before opset 9",
    "SpaceToDepth": "an attribute of a later version",
}
"""Operators some of whose node cases have no lowering, beside those that are refused for their element type."""


def outcomes(target: str, calls: list[Call]) -> list[Outcome]:
    with LocalPool(target, limits=Limits(seconds=60)) as pool:
        return pool.run([Run(call.case, target, Build("off")) for call in calls])


def test_every_operator_of_the_generator_has_a_lowering() -> None:
    assert set(specs()) <= set(table().operators)


def test_the_source_of_a_lowering_compiles_and_defines_the_program() -> None:
    for call in draws(1, seed=5):
        text = program(read(call.case.program.payload))
        assert "def program(" in text.source
        compile(text.source, "program.py", "exec")


@needs_torch
@pytest.mark.compiler
@pytest.mark.process
def test_node_cases_of_the_standard() -> None:
    calls = list(node_cases())
    wrong, refused = [], set()
    for call, outcome in zip(calls, outcomes("inductor", calls), strict=True):
        if isinstance(outcome, Unsupported):
            refused |= {call.op} if "not implemented for '" not in outcome.message else set()
        elif not isinstance(outcome, Values):
            wrong.append(f"{call.name}: {outcome}")
        elif call.expected is not None:
            found = [difference(*pair) for pair in zip(outcome.results[0], call.expected, strict=True)]
            wrong += [f"{call.name}: {text}" for text in found if text]
    assert not wrong, "\n".join(wrong)
    assert refused == set(OPEN)
    assert len(calls) > 1000


@needs_torch
@pytest.mark.compiler
@pytest.mark.process
def test_random_calls_against_another_compiler() -> None:
    calls = list(draws(3, seed=1))
    wrong, compared = [], 0
    found, wanted = outcomes("inductor", calls), outcomes("onnxruntime", calls)
    for call, mine, other in zip(calls, found, wanted, strict=True):
        if isinstance(mine, Unsupported) or not isinstance(other, Values):
            continue
        if not isinstance(mine, Values):
            wrong.append(f"{call.name}: {mine}")
            continue
        compared += 1
        for got, want in zip(mine.results[0], other.results[0], strict=True):
            text = "" if want is None else difference(got, want.numbers())
            wrong += [f"{call.name}: {text}"] if text else []
    assert not wrong, "\n".join(wrong)
    assert compared > 250
