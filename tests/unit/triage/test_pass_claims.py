"""What reports say about switching culprits is what happens in the compiler, twins included."""

import random

import numpy as np
import pytest
from virtual_compiler import FLOAT, PASSES, VirtualCompiler, case_of, on, pair

from miscompile.core.case import Case
from miscompile.core.outcome import Raised
from miscompile.core.run import Build
from miscompile.graph.model import Graph, Model, Node, ValueInfo
from miscompile.triage.claims import PassClaims, claims


def relu() -> Case:
    graph = Graph("g", (ValueInfo("x", FLOAT),), (ValueInfo("a", FLOAT),), (Node("Relu", ("x",), ("a",)),), {})
    return case_of(Model(graph, {"": 18}), {"x": np.ones((3, 4), np.float32)})


def claimed(bug: str, guilty: tuple[str, ...], twins: tuple[tuple[str, ...], ...] = ()) -> PassClaims:
    def strikes(model: Model, build: Build) -> Raised | None:
        del model
        struck = eval(bug, {"on": lambda name: on(build, name)})
        return Raised("compile", "Fail", "bad") if struck else None

    return claims(relu(), pair(), guilty, PASSES, twins, VirtualCompiler([strikes]), random.Random(0))


@pytest.mark.parametrize(
    ("bug", "guilty", "expected"),
    [
        ("on('Pass10')", ("Pass10",), PassClaims(True, {"Pass10": True})),
        ("on('Pass10') or on('Pass20')", ("Pass10",), PassClaims(True, {"Pass10": False})),
        (
            "on('Pass10') and (on('Pass20') or on('Pass30'))",
            ("Pass10", "Pass20"),
            PassClaims(True, {"Pass10": True, "Pass20": False}),
        ),
    ],
)
def test_each_claim_is_a_run(bug: str, guilty: tuple[str, ...], expected: PassClaims) -> None:
    assert claimed(bug, guilty) == expected


def test_twins_are_switched_together() -> None:
    found = claimed("on('Pass10') or on('Pass20')", ("Pass10",), (("Pass10", "Pass20"),))
    assert found == PassClaims(True, {"Pass10": True})
