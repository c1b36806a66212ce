"""The preset `hirfuzz`: 58 operators that mean in ONNX what they mean in the paper, and Algorithm 1 over them."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator

from miscompile.base.errors import RejectedDraft, SpecError, UsageError
from miscompile.base.rng import stream
from miscompile.base.specs import parse_options, parse_spec, print_spec
from miscompile.core.case import Case
from miscompile.core.tensor import Array
from miscompile.graph.check import check
from miscompile.graph.read import read
from miscompile.ops.spec import OperatorLimits
from miscompile.ops.support import Support
from miscompile.ops.values import Style
from miscompile.producers.coverage import Coverage
from miscompile.producers.finish import finish
from miscompile.producers.hirfuzz.operators import (
    HIRFUZZ_DTYPES,
    HIRFUZZ_OPERATORS,
    by_name,
    plain_names,
)
from miscompile.producers.hirfuzz.paper_operator import encode, operands_of
from miscompile.producers.hirfuzz.producer import Hirfuzz, HirfuzzGraph, HirfuzzOptions, PresetGuidance
from miscompile.producers.scope import Scope
from miscompile.producers.sites import ScopeSite

OPEN = Support(open=True)

MEANING: dict[str, Callable[..., Array]] = {
    "Add": np.add, "Subtract": np.subtract, "Multiply": np.multiply, "Power": np.power, "Mod": np.fmod,
    "Divide": lambda a, b: a / b if a.dtype.kind == "f" else np.trunc(np.true_divide(a, b)),
    "Floor Mod": np.mod, "Floor Divide": np.floor_divide, "Logical And": np.logical_and,
    "Logical Or": np.logical_or, "Logical Xor": np.logical_xor, "Bitwise And": np.bitwise_and,
    "Bitwise Or": np.bitwise_or, "Equal": np.equal, "Not Equal": np.not_equal, "Less": np.less,
    "LessEqual": np.less_equal, "Greater": np.greater, "GreaterEqual": np.greater_equal, "Maximum": np.maximum,
    "Minimum": np.minimum, "Right Shift": np.right_shift, "Left Shift": np.left_shift, "Log": np.log,
    "Log2": np.log2, "Log10": np.log10, "Tan": np.tan, "Tanh": np.tanh, "Cos": np.cos, "Cosh": np.cosh,
    "Sin": np.sin, "Sinh": np.sinh, "Acos": np.arccos, "Acosh": np.arccosh, "Asin": np.arcsin,
    "Asinh": np.arcsinh, "Atan": np.arctan, "Atanh": np.arctanh, "Exp": np.exp,
    "Erf": lambda a: np.vectorize(math.erf, otypes=[a.dtype])(a), "Sqrt": np.sqrt, "Rsqrt": lambda a: 1 / np.sqrt(a),
    "Sigmoid": lambda a: 1 / (1 + np.exp(-a)), "Floor": np.floor, "Ceil": np.ceil, "Trunc": np.trunc,
    "Round": np.round, "Abs": np.abs, "Sign": np.sign, "Negative": np.negative, "Logical not": np.logical_not,
    "Bitwise not": np.invert, "Zeros Like": np.zeros_like, "Ones Like": np.ones_like, "Copy": np.copy,
    "isNan": np.isnan, "isFinite": np.isfinite, "isInf": np.isinf,
}  # fmt: skip
"""What the paper's operators compute, in numpy's words."""


def single(name: str, dtype: str, number: int) -> Case:
    """Return a program of one of the 58 whose outputs are its operands and its result. Raises RejectedDraft."""
    operator = by_name()[name]
    form = operator.decomposition(dtype)
    assert form is not None
    scope = Scope(
        stream(0, name, dtype, number), 22, OperatorLimits(2, 4, 16, 0.0), Style(number % 2 == 0, number % 3 == 0), OPEN
    )
    operands = operands_of(ScopeSite(scope, dtype, constants=0.0), operator, form)
    result = encode(scope, form, operands)[-1]
    copies = [scope.call("Identity", operand).name for operand in operands]
    return finish(scope, [*copies, result.name], 1, {})


@pytest.mark.parametrize("name", [operator.name for operator in HIRFUZZ_OPERATORS])
def test_a_form_means_what_the_operator_means(name: str) -> None:
    tried = 0
    for dtype in HIRFUZZ_DTYPES if name not in ("Erf",) else ("float32",):
        for number in range(4 if by_name()[name].decomposition(dtype) is not None else 0):
            try:
                case = single(name, dtype, number)
            except RejectedDraft:
                continue
            feed = dict(zip((port.name for port in case.program.inputs), case.feeds[0], strict=True))
            evaluator = ReferenceEvaluator(case.program.payload)
            *given_to, found = evaluator.run(None, {key: value.array for key, value in feed.items()})
            with np.errstate(over="ignore"):
                wanted = MEANING[name](*given_to)
            assert given_to[0].dtype == dtype
            rtol = 2e-5 if dtype == "float32" else 1e-9
            np.testing.assert_allclose(
                found, wanted.astype(found.dtype), rtol=rtol, atol=1e-6, err_msg=f"{name} {dtype}"
            )
            tried += 1
    assert tried >= 4


def test_there_are_the_papers_operators_and_dtypes() -> None:
    assert Counter(operator.arity for operator in HIRFUZZ_OPERATORS) == {2: 23, 1: 35}
    assert len(by_name()) == 58
    assert len(HIRFUZZ_DTYPES) == 11
    assert set(MEANING) == set(by_name())
    pairs = [(op.name, dtype) for op in HIRFUZZ_OPERATORS for dtype in HIRFUZZ_DTYPES if op.decomposition(dtype)]
    assert len(pairs) == len(set(pairs)) == 316


def test_a_name_for_each_plain_operator() -> None:
    assert plain_names()["Neg"] == "Negative"
    assert "Floor" in plain_names()
    assert not {"BitShift", "Cast", "Clip", "Reciprocal", "BitwiseAnd"} & set(plain_names())


@pytest.mark.parametrize("guidance", ["gate", "released", "steer", "off"])
def test_graphs_are_valid_and_have_as_many_operators_as_asked_for(guidance: PresetGuidance) -> None:
    producer = Hirfuzz(HirfuzzOptions(nodes=30, guidance=guidance), OPEN)
    for index in range(4):
        case = producer.propose(stream(1, index))
        check(read(case.program.payload))
        assert len(case.recipe["operators"]) == 30
        assert set(case.recipe["operators"]) <= set(by_name())
        assert {port.dtype for port in case.program.inputs} <= set(HIRFUZZ_DTYPES)
        assert all(len(port.shape or ()) <= 3 for port in case.program.inputs)


def grown(options: HirfuzzOptions, graphs: int, seed: int = 0) -> tuple[Coverage, list[HirfuzzGraph], list[int]]:
    """Return the coverage after some graphs, the graphs, and the score after each."""
    producer = Hirfuzz(options, OPEN)
    made, scores = [], []
    for index in range(graphs):
        made.append(producer.grow(stream(seed, "graph", index)))
        scores.append(producer.coverage.score)
    return producer.coverage, made, scores


def test_behind_the_gate_every_node_adds_coverage() -> None:
    coverage, graphs, _ = grown(HirfuzzOptions(nodes=50), 6)
    assert coverage.score >= sum(len(graph.operators) for graph in graphs) == 300


def test_the_gate_covers_more_than_no_guidance() -> None:
    few = HirfuzzOptions(nodes=40, dtypes=("float32", "bool"), max_rank=1, max_dim=4)  # small enough to saturate
    gated, _, _ = grown(replace(few, guidance="gate"), 10)
    free, _, _ = grown(replace(few, guidance="off"), 10)
    assert gated.score > free.score


def test_a_saturated_gate_ends_graphs_early() -> None:
    options = HirfuzzOptions(nodes=50, dtypes=("bool",), max_rank=0, patience=50)
    _, graphs, scores = grown(options, 12)
    assert len(graphs[0].operators) > len(graphs[-1].operators)
    assert scores == sorted(scores)
    assert scores[-1] < 12 * 50


def test_score_is_the_number_of_items_of_the_graphs() -> None:
    """The coverage is worked out again from the graphs alone."""
    coverage, graphs, _ = grown(HirfuzzOptions(nodes=40, path=3), 5)
    edges, shapes = set(), set()
    for graph in graphs:
        for name, parents in graph.parents.items():
            op = graph.labels[name]
            shapes.add((op, graph.scope.operands[name].shape))
            edges |= {(parent, op) for parent in parents if parent}
    assert shapes == coverage.shapes
    assert edges == coverage.edges
    assert coverage.paths
    assert {path[1:] for path in coverage.paths} <= coverage.edges
    assert coverage.score == len(coverage.dtypes) + len(shapes) + len(edges) + len(coverage.paths)


def test_inner_values_of_chains_are_not_operands_of_others() -> None:
    _, graphs, _ = grown(HirfuzzOptions(nodes=60, reuse=1.0, ops=("Sign", "Abs", "Floor", "Mul")), 3)
    for graph in graphs:
        trunc = [name for name, label in graph.labels.items() if label == "Trunc"]
        assert trunc
        makers = {node.outputs[0]: node for node in graph.scope.nodes}
        for name in trunc:
            inner = [value for value in makers[name].inputs if graph.scope.producer[value] in ("Sign", "Floor")]
            assert all(graph.scope.uses[value] == 1 for value in inner)


def test_only_operators_that_are_asked_for() -> None:
    _, graphs, _ = grown(HirfuzzOptions(nodes=20, ops=("Add", "Equal", "Not"), dtypes=("int8",)), 2)
    used = {name for graph in graphs for name in graph.operators}
    assert used == {"Add", "Equal", "Not Equal"}
    with pytest.raises(UsageError, match="none of HIRFUZZ's operators"):
        Hirfuzz(HirfuzzOptions(ops=("Conv",)), OPEN)


def test_a_target_that_lacks_a_step_of_a_chain_is_not_given_it() -> None:
    support = Support({"Sqrt-13(float32)float32", "Abs-13(float32)float32"})
    producer = Hirfuzz(HirfuzzOptions(nodes=20, guidance="off", opsets=(22,)), support)
    graph = producer.grow(stream(3))
    assert set(graph.operators) == {"Sqrt", "Abs"}
    assert "Rsqrt" not in graph.operators


def test_the_same_stream_makes_the_same_case() -> None:
    first, second = (Hirfuzz(HirfuzzOptions(nodes=25), OPEN).propose(stream(5)) for _ in range(2))
    assert first.program.payload == second.program.payload
    assert first.recipe == second.recipe


@settings(max_examples=40)
@given(
    st.integers(1, 500), st.sampled_from(["gate", "released", "steer", "off"]), st.sampled_from([2, 3]),
    st.lists(st.sampled_from(HIRFUZZ_DTYPES), unique=True), st.floats(0, 1),
)  # fmt: skip
def test_options_print_and_parse(
    nodes: int, guidance: PresetGuidance, path: int, dtypes: list[str], reuse: float
) -> None:
    options = HirfuzzOptions(nodes=nodes, guidance=guidance, path=path, dtypes=tuple(dtypes), reuse=reuse)
    spec = parse_spec(print_spec("hirfuzz", options))
    assert (spec.name, parse_options(HirfuzzOptions, dict(spec.options), "hirfuzz")) == ("hirfuzz", options)


@pytest.mark.parametrize("wrong", [{"nodes": 0}, {"path": 4}, {"reuse": 1.5}, {"opsets": ()}, {"share": 0.0}])
def test_meaningless_options_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(SpecError):
        HirfuzzOptions(**wrong)


def test_the_page_tells_every_form() -> None:
    """The documentation's table of operators is that of the code."""
    page = (Path(__file__).parents[3] / "docs" / "benchmarks-hirfuzz.md").read_text("utf-8")
    rows = {cells[1].strip(): cells[2] for line in page.splitlines() if len(cells := line.split("|")) == 5}
    for operator in HIRFUZZ_OPERATORS:
        told = [chain.partition(": ")[2].strip() for chain in rows[operator.name].split(";")]
        assert told == [" > ".join(form.operators) for form in operator.decompositions], operator.name
