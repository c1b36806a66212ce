"""Programs with symbolic sizes: valid as they are and at every size they are fed, and the same there as static ones."""

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from miscompile.base.errors import RejectedDraft
from miscompile.base.rng import stream
from miscompile.core.case import Case, Feed, Program
from miscompile.core.outcome import Unsupported, Values
from miscompile.core.tensor import Array, Tensor, tensor
from miscompile.core.verdict import Holds
from miscompile.graph.check import check
from miscompile.graph.read import read
from miscompile.graph.specialise import folded, is_symbolic
from miscompile.ops.spec import OperatorLimits
from miscompile.ops.support import Support
from miscompile.ops.values import Range, Style
from miscompile.producers.dynamic.plan import Base, Linear, ReplayError, SizePlan, require_same_kind
from miscompile.producers.dynamic.planting import PATTERNS
from miscompile.producers.dynamic.producer import SIZES, DynamicProducer
from miscompile.producers.dynamic.search import GENERIC, search
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.scope import Scope
from miscompile.transforms.static import specialise

OPS = (
    "Add", "Mul", "Sub", "Max", "Relu", "Neg", "Abs", "MatMul", "Transpose", "Concat", "Reshape", "Slice", "Expand",
    "Softmax", "Gather", "Where", "Less", "Cast", "Squeeze", "Unsqueeze", "Tile", "Identity",
)  # fmt: skip
OPTIONS = GeneratorOptions(nodes=5, spread=0.0, ops=OPS, dtypes=("float32", "int64"), opsets=(18,), noops=0.0)
OPEN = Support(open=True)


def cases(count: int) -> list[Case]:
    producer = DynamicProducer(OPTIONS, OPEN)
    return [producer.propose(stream(3, "dynamic", number)) for number in range(count)]


@pytest.fixture(scope="module")
def made() -> list[Case]:
    return cases(20)


def evaluate(program: Program, feed: Feed) -> list[Array]:
    evaluator = ReferenceEvaluator(onnx.load_model_from_string(program.payload))
    given = {port.name: value.array for port, value in zip(program.inputs, feed, strict=True)}
    with np.errstate(all="ignore"):
        return [np.asarray(value) for value in evaluator.run([port.name for port in program.outputs], given)]


def test_a_case_has_symbols_and_feeds_that_bind_them(made: list[Case]) -> None:
    for case in made:
        assert is_symbolic(case.program.inputs)
        assert case.recipe["oracle"] == "dynamic"
        assert len(case.recipe["sizes"]) == len(case.feeds) >= 2
        for sizes, feed in zip(case.recipe["sizes"], case.feeds, strict=True):
            for port, value in zip(case.program.inputs, feed, strict=True):
                assert port.shape is not None
                wanted = tuple(sizes[size] if isinstance(size, str) else size for size in port.shape)
                assert (port.dtype, wanted) == (value.dtype, value.shape)


def test_programs_are_correct_with_symbols_and_at_each_size(made: list[Case]) -> None:
    for case in made:
        check(case.program.payload)
        for feed in case.feeds:
            static = specialise(case.program, feed)
            assert not is_symbolic(static.inputs)
            check(static.payload)


def test_the_symbolic_program_does_what_the_static_ones_do(made: list[Case]) -> None:
    for case in made:
        for sizes, feed in zip(case.recipe["sizes"], case.feeds, strict=True):
            static = specialise(case.program, feed)
            for port, one, other in zip(
                static.outputs, evaluate(case.program, feed), evaluate(static, feed), strict=True
            ):
                np.testing.assert_array_equal(one, other)
                assert port.shape is not None
                assert all(want in (None, have) for want, have in zip(port.shape, one.shape, strict=True)), sizes


def test_sizes_are_small_and_large_and_shape_arithmetic_is_common(made: list[Case]) -> None:
    seen = {size for case in made for sizes in case.recipe["sizes"] for size in sizes.values()}
    assert set(SIZES) <= seen
    computed = {mark for case in made for mark in case.recipe["computed"]}
    assert {"Reshape:1", "Expand:1"} <= computed


def test_shape_arithmetic_folds_to_constants_at_each_size(made: list[Case]) -> None:
    for case in made:
        for feed in case.feeds:
            done = folded(read(specialise(case.program, feed).payload))
            constants = set(done.graph.initializers)
            fixed = {name for node in done.graph.nodes if node.op == "Constant" for name in node.outputs}
            given = {info.name for info in done.graph.inputs}
            loose: set[str] = set()  # what hangs on sizes that an input holds
            check(done)
            for node in done.graph.nodes:
                sizes = {node.inputs[1]} if node.op in ("Reshape", "Expand") else set()
                assert sizes <= constants | fixed | given | loose
                if loose.intersection(node.inputs) or sizes & given:
                    loose.update(node.outputs)


def test_the_same_stream_gives_the_same_cases(made: list[Case]) -> None:
    again = cases(5)
    assert [case.program.digest for case in again] == [case.program.digest for case in made[:5]]
    assert [case.recipe for case in again] == [case.recipe for case in made[:5]]


def test_what_is_refused_when_computed_is_given_up() -> None:
    producer = DynamicProducer(OPTIONS, OPEN)
    for number in range(30):
        case = producer.propose(stream(4, "refused", number))
        refused = bool(case.recipe["computed"])
        full = Unsupported("compile", "no computed shapes") if refused else Values(())
        producer.learn(case, [Values(()), full], Holds())
    later = [producer.propose(stream(5, "refused", number)) for number in range(8)]
    assert not [mark for case in later for mark in case.recipe["computed"] if mark in ("Reshape:1", "Expand:1")]


def scope(opset: int = 18) -> Scope:
    return Scope(stream(0, "scope"), opset, OperatorLimits(), Style(), OPEN)


def test_a_constant_target_follows_the_size_it_depends_on() -> None:
    graph = scope()
    x = graph.new_input("float32", (4, 3), Range(-1, 1, integral=False))
    flat = graph.call("Reshape", x, graph.new_constant(_vector(12)))
    found = search(Base(graph, [flat.name]), stream(1, "search"), 1)
    shapes = [operands[flat.name].shape for operands in found.generic]
    tied = {axis for _, axis in found.plan.ties}
    assert shapes == [(sizes["N"] * (3 if tied == {0} else 4),) for sizes in GENERIC]


def test_operands_that_must_agree_share_a_symbol() -> None:
    graph = scope()
    span = Range(-1, 1, integral=False)
    x, y = graph.new_input("float32", (4, 3), span), graph.new_input("float32", (4, 1), span)
    total = graph.call("Add", x, y)
    for number in range(10):
        plan = search(Base(graph, [total.name]), stream(number, "search"), 1).plan
        rows = {name for name, axis in plan.ties if axis == 0}
        assert rows in (set(), {x.name, y.name})


def test_a_size_of_one_that_would_stretch_is_refused() -> None:
    graph = scope()
    span = Range(-1, 1, integral=False)
    x, y = graph.new_input("float32", (4,), span), graph.new_input("float32", (9,), span)
    part = graph.call("Slice", y, graph.new_constant(_vector(0)), graph.new_constant(_vector(4)))
    base = Base(graph, [graph.call("Add", x, part).name])
    plan = SizePlan().tied((y.name, 0), "N")
    generic = base.replay(plan, {"N": 11})
    require_same_kind(base, generic, base.replay(plan, {"N": 4}))
    with pytest.raises(ReplayError, match="stretches"):
        require_same_kind(base, generic, base.replay(plan, {"N": 1}))


def test_undefined_sizes_are_refused() -> None:
    graph = scope()
    x = graph.new_input("float32", (4, 3), Range(-1, 1, integral=False))
    base = Base(graph, [graph.call("ReduceMax", x, graph.new_constant(_vector(0))).name])
    plan = SizePlan().tied((x.name, 0), "N")
    assert base.replay(plan, {"N": 1})
    with pytest.raises(ReplayError) as caught:
        base.replay(plan, {"N": 0})
    assert caught.value.place == 0


def test_elements_are_linear_in_a_size() -> None:
    assert Linear("N", 2, -1).at({"N": 5}) == 9
    assert Linear("", 0, -1).at({}) == -1


def test_a_graph_whose_sizes_are_all_one_has_nothing_symbolic() -> None:
    graph = scope()
    x = graph.new_input("float32", (1, 1), Range(-1, 1, integral=False))
    with pytest.raises(RejectedDraft, match="no size"):
        search(Base(graph, [graph.call("Relu", x).name]), stream(0, "search"), 1)


def _vector(*numbers: int) -> Tensor:
    return tensor(np.array(numbers), "int64")


@pytest.mark.parametrize("pattern", range(8))
def test_planted_patterns_can_follow_a_size(pattern: int) -> None:
    follow = 0
    for number in range(12):
        graph = scope()
        x = graph.new_input("float32", (4, 3, 2), Range(-1, 1, integral=False))
        rng = stream(number, "plant", pattern)
        try:
            result = PATTERNS[pattern](graph, rng, x)
            plan = search(Base(graph, [result.name]), rng, 1).plan
        except RejectedDraft:
            continue
        follow += bool(plan.adapted) or bool(plan.ties)
    assert follow > 3
    assert len(PATTERNS) == 8
