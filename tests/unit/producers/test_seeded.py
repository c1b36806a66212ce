"""Cases from seeds: valid, defined, within what the target takes, and changed as asked."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from miscompile.base.errors import RejectedDraft, UsageError
from miscompile.base.rng import stream
from miscompile.core.case import Case
from miscompile.core.tensor import Tensor
from miscompile.graph.check import check
from miscompile.graph.model import TensorType
from miscompile.graph.read import read
from miscompile.graph.text.parser import parse_model
from miscompile.graph.typing import value_types
from miscompile.ops.seed import Seed
from miscompile.ops.spec import Call, Operand, OperatorLimits
from miscompile.ops.support import Support
from miscompile.ops.values import Range, Style
from miscompile.producers.finish import Finisher
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.propagation import elements_of
from miscompile.producers.replay import AS_IT_IS, Changes, has_batch, replay
from miscompile.producers.scope import Scope
from miscompile.producers.seeded import Seeded

OPEN = Support(open=True)
OPTIONS = GeneratorOptions(opsets=(17, 18, 20, 21))

RESHAPED = """ir 8 opset 17 graph g(%x: float32[2, 3, 4], %s: int64[1]) -> (%y: float32[2, 12]) {
  init %zero: int64[] = [0]
  init %axes: int64[1] = [0]
  %shape = Shape(%x)
  %batch = Gather(%shape, %zero)
  %first = Unsqueeze(%batch, %axes)
  %whole = Concat(%first, %s) {axis=0}
  %r = Relu(%x)
  %y = Reshape(%r, %whole)
}"""

RESIDUAL = """ir 8 opset 17 graph g(%x: float32[2, 3], %m: float32[2, 3]) -> (%y: float32[2, 3], %p: float32[2, 3]) {
  init %w: float32[3, 3] = [0.5, -0.25, 0.75, 0.125, 0.5, -1, 0.25, 1.5, -0.5]
  %h = MatMul(%x, %w)
  %a = Add(%h, %m)
  %p = Softmax(%a)
  %y = Add(%a, %x)
}"""

DIVIDED = """ir 8 opset 17 graph g(%x: float32[2, 3], %d: float32[2, 3]) -> (%y: float32[2, 3]) {
  %q = Div(%x, %d)
  %y = Sqrt(%d)
  %z = Add(%q, %y)
}"""

BRANCHING = """ir 8 opset 17 graph g(%x: float32[3], %c: bool[]) -> (%y: float32[3]) {
  init %w: float32[3] = [1, -2, 0.5]
  %b = If(%c) {then_branch=graph t() -> (%t: float32[3]) { %t = Add(%x, %w) },
               else_branch=graph e() -> (%e: float32[3]) { %e = Neg(%x) }}
  %y = Relu(%b)
}"""

ENDLESS = """ir 8 opset 17 graph g(%x: float32[3], %n: int64[]) -> (%y: float32[3]) {
  init %go: bool[] = [true]
  %y = Loop(%n, %go, %x) {body=graph b(%i: int64[], %c: bool[], %s: float32[3]) -> (%k: bool[], %t: float32[3]) {
    %k = Identity(%c) %t = Neg(%s) }}
}"""


def seed(
    text: str, ranges: dict[str, Range] | None = None, pinned: dict[str, list[int]] | None = None, name: str = "s"
) -> Seed:
    model = parse_model(text)
    check(model)
    values = {key: Tensor("int64", np.array(value, np.int64)) for key, value in (pinned or {}).items()}
    graph = replace(model.graph, types=value_types(model))
    return Seed(name, graph, model.opset, ranges or {}, values)


def reshaped() -> Seed:
    return seed(RESHAPED, {"x": Range(-2, 2, integral=False)}, {"s": [-1]}, name="6")


def residual() -> Seed:
    return seed(RESIDUAL, {"x": Range(-1.5, 2.5, integral=False), "m": Range(-9, 0, integral=True)}, name="4")


def divided() -> Seed:
    return seed(DIVIDED, {"x": Range(-3, 3, integral=False), "d": Range(0.5, 2, integral=False)}, name="3")


@cache
def cases(count: int = 250) -> tuple[Case, ...]:
    producer = Seeded((reshaped(), residual(), divided()), OPTIONS, OPEN)
    assert producer.usable == 3
    return tuple(producer.propose(stream(3, "case", index)) for index in range(count))


def of_kind(*kinds: str) -> list[Case]:
    return [case for case in cases() if case.recipe["kind"] in kinds]


def scope(number: int = 0, support: Support = OPEN) -> Scope:
    return Scope(stream(number, "scope"), 17, OperatorLimits(), Style(), support)


def operators(case: Case) -> list[str]:
    return [node.op for node in read(case.program.payload).graph.nodes]


def test_cases_are_valid_models_with_fitting_feeds() -> None:
    for case in cases():
        model = read(case.program.payload)
        check(model)
        for feed in case.feeds:
            for port, value in zip(case.program.inputs, feed, strict=True):
                assert (value.dtype, value.shape) == (port.dtype, port.shape)


def test_plain_and_changed_slices_run_and_give_what_is_declared() -> None:
    known = {"float32", "float16", "float64", "int64", "bool"}
    chosen = [
        case
        for case in of_kind("plain", "mutated")
        if not case.recipe["motifs"]
        and len(operators(case)) <= 8
        and {port.dtype for port in (*case.program.inputs, *case.program.outputs)} <= known
    ]
    assert len(chosen) > 40
    for case in chosen:
        names = [port.name for port in case.program.inputs]
        evaluator = ReferenceEvaluator(case.program.payload)
        for feed in case.feeds:
            found = evaluator.run(None, {name: value.array for name, value in zip(names, feed, strict=True)})
            for port, value in zip(case.program.outputs, found, strict=True):
                assert (np.asarray(value).dtype.name, np.asarray(value).shape) == (port.dtype, port.shape)
                assert np.isfinite(np.asarray(value, np.float64)).all()


def test_a_plain_case_is_the_slice_and_nothing_else() -> None:
    plain = of_kind("plain")
    assert {len(operators(case)) for case in plain} == {3, 4, 6}
    for case in plain:
        if "Softmax" in operators(case):
            assert operators(case) == ["MatMul", "Add", "Softmax", "Add"]
            first, second = (value.array for value in case.feeds[0])
            assert first.min() >= -1.5
            assert first.max() <= 2.5
            assert (second == np.floor(second)).all()


def test_extended_cases_go_on_from_the_slice() -> None:
    extended = of_kind("extended")
    assert len(extended) > 50
    assert np.mean([len(operators(case)) for case in extended]) > 6
    fed = 0
    for case in extended:
        nodes, size = read(case.program.payload).graph.nodes, int(case.recipe["slice"])
        own = {name for node in nodes[:size] for name in node.outputs}
        fed += any(own & set(node.inputs) for node in nodes[size:])
    assert fed > 0.7 * len(extended), "what is added uses values of the slice"


def test_every_change_occurs_and_is_in_the_recipe() -> None:
    words = {word for case in of_kind("mutated") for change in case.recipe["changes"] for word in change.split(" ")}
    assert {"float32", "float16", "float64", "batch", "same", "integers", "usual"} <= words
    settings = [(len(case.program.inputs), len(case.program.outputs)) for case in cases() if case.recipe["variant"]]
    assert len(set(settings)) > 3


def test_the_same_stream_makes_the_same_cases() -> None:
    def made() -> list[str]:
        producer = Seeded((reshaped(), residual()), OPTIONS, OPEN)
        return [producer.propose(stream(1, "case", index)).program.digest for index in range(12)]

    assert made() == made()


@pytest.mark.parametrize("changes", [AS_IT_IS, Changes(integral=True), Changes(twice=0.5), Changes(batch=3)])
def test_every_value_lies_in_its_interval(changes: Changes) -> None:
    for number, one in enumerate((reshaped(), residual(), divided())):
        place = scope(number)
        found = {operand.name: operand for operand in replay(place, one, changes).values()}
        names = [name for name, op in place.producer.items() if op]
        case = Finisher(place).case(names, 2, {})
        fed = [port.name for port in case.program.inputs]
        for feed in case.feeds:
            inputs = {name: value.array for name, value in zip(fed, feed, strict=True)}
            for name, array in zip(names, ReferenceEvaluator(case.program.payload).run(names, inputs), strict=True):
                facts, value = found[name].facts, found[name].value
                assert facts.lo <= np.min(array)
                assert np.max(array) <= facts.hi
                assert not facts.integral or (np.asarray(array) == np.floor(array)).all()
                assert value is None or np.array_equal(value, array)


def test_another_dtype_goes_through_the_whole_slice() -> None:
    for dtype in ("float16", "float64", "bfloat16"):
        found = replay(scope(), residual(), Changes(dtypes={"float32": dtype}))
        assert {operand.dtype for operand in found.values()} == {dtype}
        assert found["y"].shape == (2, 3)


def test_constants_that_a_type_cannot_hold_are_refused() -> None:
    large = seed(RESIDUAL.replace("0.5, -0.25", "0.5, -1e30"), {"x": Range(-1e-30, 1e-30, integral=False)})
    assert replay(scope(), large, Changes(dtypes={"float32": "float64"}))["y"].dtype == "float64"
    with pytest.raises(RejectedDraft, match="cannot hold"):
        replay(scope(), large, Changes(dtypes={"float32": "float16"}))


def test_another_batch_reaches_computed_shapes() -> None:
    assert has_batch(reshaped())
    found = replay(scope(), reshaped(), Changes(batch=5))
    assert found["x"].shape == (5, 3, 4)
    assert found["y"].shape == (5, 12)
    assert found["whole"].value is not None
    assert found["whole"].value.tolist() == [5, -1]


def test_an_operator_can_get_one_operand_twice() -> None:
    place = scope()
    found = replay(place, residual(), Changes(twice=1.0))
    assert [node.inputs for node in place.nodes if node.op == "Add"] == [
        (found["h"].name, found["h"].name),
        (found["a"].name, found["a"].name),
    ]


def test_integers_make_results_exact() -> None:
    assert not replay(scope(), residual())["h"].facts.exact
    assert replay(scope(), residual(), Changes(integral=True))["h"].facts.exact


def test_what_may_be_undefined_is_no_seed() -> None:
    unbounded = seed(DIVIDED, {"d": Range(-1, 2, integral=False)})
    with pytest.raises(RejectedDraft):
        replay(scope(), unbounded)
    assert replay(scope(), divided())["z"].dtype == "float32"
    with pytest.raises(UsageError, match="none of the 1 slices"):
        Seeded((unbounded,), OPTIONS, OPEN)


def test_intervals_that_explode_claim_nothing() -> None:
    lines = ["  %a0 = MatMul(%x, %x)", *(f"  %a{n} = MatMul(%a{n - 1}, %a{n - 1})" for n in range(1, 6))]
    text = "ir 8 opset 17 graph g(%x: float32[4, 4]) -> (%a5: float32[4, 4]) {\n" + "\n".join(lines) + "\n}"
    found = replay(scope(), seed(text, {"x": Range(-9, 9, integral=True)}))
    assert found["a0"].facts.exact
    assert not found["a5"].facts.exact
    assert found["a5"].facts.magnitude == float("inf")
    with pytest.raises(RejectedDraft):
        replay(scope(), seed(text, {"x": Range(-9, 9, integral=True)}), Changes(dtypes={"float32": "float16"}))


class WithoutSoftmax(Support):
    """A table that admits everything but Softmax."""

    def may_admit(self, call: Call, opset: int) -> bool:
        return call.op != "Softmax"

    def offers(self, op: str, dtype: str, version: int, main: int) -> bool:
        return op != "Softmax"


def test_what_the_target_does_not_take_is_not_made() -> None:
    producer = Seeded((reshaped(), residual()), OPTIONS, WithoutSoftmax(open=True))
    assert producer.usable == 1
    for index in range(60):
        assert "Softmax" not in operators(producer.propose(stream(5, "case", index)))


def test_an_old_slice_is_written_in_an_opset_that_means_the_same() -> None:
    old = seed(RESIDUAL.replace("opset 17", "opset 14"))
    producer = Seeded((old,), OPTIONS, OPEN)
    opsets = {read(producer.propose(stream(0, "case", index)).program.payload).opset for index in range(20)}
    assert opsets <= {17, 18, 20, 21}


def test_bodies_stay_whole() -> None:
    place = scope()
    found = replay(place, seed(BRANCHING, {"x": Range(-1, 1, integral=False)}))
    assert found["y"].facts.exact is False
    (node,) = [node for node in place.nodes if node.op == "If"]
    assert sum(len(body.nodes) for body in node.subgraphs()) == 2
    assert place.uses[found["x"].name] == 2
    with pytest.raises(RejectedDraft):
        replay(scope(), seed(BRANCHING), Changes(batch=2))
    producer = Seeded((seed(BRANCHING, {"x": Range(-1, 1, integral=False)}),), OPTIONS, OPEN)
    for index in range(25):
        check(read(producer.propose(stream(0, "case", index)).program.payload))


def test_a_loop_that_may_take_long_is_refused() -> None:
    assert replay(scope(), seed(ENDLESS, {"n": Range(0, 7, integral=True)}))["y"].shape == (3,)
    with pytest.raises(RejectedDraft):
        replay(scope(), seed(ENDLESS, {"n": Range(0, 10**9, integral=True)}))


def known(place: Scope, values: Sequence[int]) -> Operand:
    return place.new_constant(Tensor("int64", np.array(values, np.int64)))


def test_elements_follow_from_sizes_and_known_elements() -> None:
    place = scope()
    x = place.new_input("float32", (2, 5), Range(0, 1, integral=False))
    for op, inputs, expected in (
        ("Shape", (x,), [2, 5]),
        ("Size", (x,), 10),
        ("Add", (known(place, [1, 2]), known(place, [3])), [4, 5]),
        ("Squeeze", (known(place, [7]),), 7),
    ):
        call = Call(op, inputs)
        found = elements_of(call, place.apply(call), 17)
        assert found is not None
        assert found.array.tolist() == expected
        assert found.dtype == "int64"
    fed = place.new_input("int64", (2,), Range(0, 4, integral=True))
    call = Call("Add", (fed, known(place, [1, 2])))
    assert elements_of(call, place.apply(call), 17) is None


def test_changes_say_what_they_are() -> None:
    assert AS_IT_IS.names() == []
    assert Changes({"float32": "float16"}, 3, 0.5, True, True).names() == [
        "float32 to float16", "batch 3", "same operand", "integers", "usual ranges",
    ]  # fmt: skip
    assert isinstance(reshaped().types["y"], TensorType)
