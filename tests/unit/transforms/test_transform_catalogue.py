"""Forms by name: what is presented, what stays the case's own, and what a form says about itself."""

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from miscompile.base.errors import SpecError
from miscompile.base.specs import Spec, parse_spec
from miscompile.core.case import Case, Feed, Program
from miscompile.core.tensor import tensor
from miscompile.graph.emit import to_program
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.graph.read import read
from miscompile.transforms.catalogue import (
    AGAIN,
    STATIC,
    TRANSFORMS,
    UNEQUAL,
    exact_beside,
    is_own,
    keeps_bits,
    may_be_refused,
    places_of,
    present,
    restricted,
    seeded,
    transform_of,
)

KIND = TensorType("float32", (2, 3))


def case(feeds: int = 1, opset: int = 18) -> Case:
    """(x + w) * w - x: enough for every form to find something."""
    nodes = (
        Node("Add", ("x", "w"), ("a",)),
        Node("Mul", ("a", "w"), ("m",)),
        Node("Neg", ("x",), ("n",)),
        Node("Add", ("m", "n"), ("s",)),
        Node("Identity", ("s",), ("y",)),
    )
    weight = {"w": tensor(np.arange(6, dtype=np.float32).reshape(2, 3))}
    graph = Graph("g", (ValueInfo("x", KIND),), (ValueInfo("y", KIND),), nodes, weight)
    program = to_program(Model(graph, {"": opset}), exact=("y",))
    fed: tuple[Feed, ...] = tuple((tensor(np.full((2, 3), 2 + turn, np.float32)),) for turn in range(feeds))
    return Case(program, fed, {"origin": "test"})


def run(program: Program, feed: Feed) -> list[np.ndarray]:
    fed = {port.name: value.array for port, value in zip(program.inputs, feed, strict=True)}
    found: list[np.ndarray] = ReferenceEvaluator(program.payload).run([port.name for port in program.outputs], fed)
    return found


ELSEWHERE = frozenset({"inline", "merge", "expand", "functions", "wrap", *UNEQUAL})
"""Transforms that find nothing in the case below, whose programs onnx's reference does not run, or that compute
something else: tested elsewhere."""


@pytest.mark.parametrize("name", sorted(TRANSFORMS.built_in.keys() - ELSEWHERE))
def test_every_transform_makes_a_program_that_gives_the_same(name: str) -> None:
    """Seeds differ in what they draw; most must present something else."""
    own, others = case(2), 0
    for seed in range(8):
        for share in present(own, parse_spec(f"{name}{{seed={seed}}}")):
            others += share.case.program != own.program
            assert share.case.recipe == own.recipe
            assert share.case.program.outputs[:1] == own.program.outputs
            for place, feed in zip(share.feeds, share.case.feeds, strict=True):
                want, got = run(own.program, own.feeds[place]), run(share.case.program, feed)
                np.testing.assert_array_equal(want[0], got[0])
    assert others >= 4


@pytest.mark.parametrize("name", sorted(TRANSFORMS.built_in.keys()))
def test_old_models_get_no_operators_in_new_forms(name: str) -> None:
    own = case(1, opset=9)
    for seed in range(8):
        for share in present(own, seeded(Spec(name), seed)):
            added = {node.op for node in read(share.case.program.payload).graph.nodes} - {"Add", "Mul", "Neg"}
            assert added <= {"Identity", "Constant"}
            onnx.checker.check_model(share.case.program.payload, full_check=True)


def test_again_comes_back_to_every_feed_with_the_same_tensors() -> None:
    own = case(3)
    (share,) = present(own, AGAIN)
    assert share.feeds == (0, 1, 2, 2, 1, 0)
    assert share.case.program is own.program
    assert all(fed is own.feeds[place] for place, fed in zip(share.feeds, share.case.feeds, strict=True))


def test_a_transform_with_nothing_to_say_gives_the_case_itself() -> None:
    own = case()
    (share,) = present(own, Spec("inline"))
    assert share.case is own


def test_what_transforms_say_about_themselves() -> None:
    relax, functions = parse_spec("relax{count=1}"), parse_spec("functions{seed=1}")
    assert all(map(keeps_bits, (None, STATIC, AGAIN, parse_spec("order{seed=1}"), Spec("resist"), relax)))
    assert not any(map(keeps_bits, map(parse_spec, ("egraph{seed=1}", "expand", "resist{exactness=rounding}"))))
    assert keeps_bits(parse_spec("egraph{exactness=bits}"))
    assert is_own(relax)
    assert not any(map(is_own, (None, STATIC, Spec("order"))))
    assert may_be_refused(parse_spec("wrap{seed=3}"))
    assert not any(map(may_be_refused, (None, STATIC, AGAIN, functions, relax)))


def test_rounding_transforms_are_exact_where_both_programs_are() -> None:
    own = case()
    assert exact_beside(own, parse_spec("order{seed=1}")) == {"y"}
    assert exact_beside(own, parse_spec("egraph{seed=1}")) == {"y"}  # small integers in both
    large = Case(own.program, ((tensor(np.full((2, 3), 2.0**22, np.float32)),),))
    assert exact_beside(large, parse_spec("egraph{seed=1}")) == frozenset()


@pytest.mark.parametrize("name", ["egraph", "resist", "constness", "duplicate", "identity", "stored", "wrap"])
def test_a_transform_restricted_to_all_its_places_gives_the_same(name: str) -> None:
    own, spec = case(), parse_spec(f"{name}{{seed=3}}")
    places = places_of(own, spec)
    assert places
    assert [s.case for s in present(own, restricted(spec, places))] == [s.case for s in present(own, spec)]


def test_no_places_where_a_transform_is_all_or_nothing() -> None:
    assert places_of(case(), AGAIN) == places_of(case(), None) == places_of(case(), parse_spec("relax{count=1}")) == ()


def test_unknown_transforms_and_options_are_said_plainly() -> None:
    with pytest.raises(SpecError, match="there is no transform 'nope'"):
        transform_of(Spec("nope"))
    with pytest.raises(SpecError, match="has no option 'far'"):
        transform_of(parse_spec("egraph{far=1}"))
