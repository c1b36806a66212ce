"""What reports say about switching culprits is what happens in the compiler, twins included."""

import random
from collections.abc import Callable

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


Strikes = Callable[[Build], bool]


def first(build: Build) -> bool:
    return on(build, "Pass10")


def either(build: Build) -> bool:
    return on(build, "Pass10") or on(build, "Pass20")


def first_with_another(build: Build) -> bool:
    return on(build, "Pass10") and (on(build, "Pass20") or on(build, "Pass30"))


def claimed(strikes: Strikes, guilty: tuple[str, ...], twins: tuple[tuple[str, ...], ...] = ()) -> PassClaims:
    def bug(model: Model, build: Build) -> Raised | None:
        del model
        return Raised("compile", "Fail", "bad") if strikes(build) else None

    return claims(relu(), pair(), guilty, PASSES, twins, VirtualCompiler([bug]), random.Random(0))


@pytest.mark.parametrize(
    ("strikes", "guilty", "expected"),
    [
        (first, ("Pass10",), PassClaims(True, {"Pass10": True})),
        (either, ("Pass10",), PassClaims(True, {"Pass10": False})),
        (first_with_another, ("Pass10", "Pass20"), PassClaims(True, {"Pass10": True, "Pass20": False})),
    ],
)
def test_each_claim_is_a_run(strikes: Strikes, guilty: tuple[str, ...], expected: PassClaims) -> None:
    assert claimed(strikes, guilty) == expected


def test_twins_are_switched_together() -> None:
    assert claimed(either, ("Pass10",), (("Pass10", "Pass20"),)) == PassClaims(True, {"Pass10": True})
