"""Function wrapping and rewriting: what comes out is valid, says the same, and depends on seed and model alone."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator
from symbolic_values import terms_of
from wrapped_models import TEXTS, made

from miscompile.base.errors import RejectedDraft, SpecError
from miscompile.base.rng import stream
from miscompile.base.specs import parse_options, parse_spec, print_spec
from miscompile.graph.check import check
from miscompile.graph.emit import emit
from miscompile.graph.fingerprint import fingerprint
from miscompile.graph.inline import inline
from miscompile.graph.model import Model
from miscompile.graph.prune import prune
from miscompile.graph.read import read
from miscompile.graph.text.parser import parse_model
from miscompile.ops.support import Support
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.strict import Strict
from miscompile.transforms.functions.rewrite import Rewrite
from miscompile.transforms.functions.transform import Functions, describe

shares = st.sampled_from((0.0, 0.5, 1.0))
forms = st.builds(
    Functions,
    seed=st.integers(0, 10**6),
    count=st.integers(1, 4),
    depth=st.integers(1, 3),
    rewrite=st.sampled_from(("none", "closure", "forward", "any")),
    attributes=shares,
    constants=shares,
    shared=shares,
    overloads=st.booleans(),
)
STRICTLY = Functions(count=3, constants=0.0, shared=0.0)
"""Nothing is made twice, and nothing becomes a node that was none: inlining gives the very graph back."""


def wrapped(model: Model, form: Functions) -> Model | None:
    try:
        return form.apply(model)
    except RejectedDraft:
        return None


def feeds_of(model: Model) -> dict[str, np.ndarray]:
    values = np.array([[-1.5, 2.0, 0.5], [3.0, -0.25, -4.0]], np.float32)
    return {info.name: np.array(True) if info.name == "c" else values for info in model.graph.inputs}


@settings(max_examples=60)
@given(st.sampled_from(sorted(TEXTS)), forms)
def test_wrapped_models_are_valid_and_compute_the_same_terms(name: str, form: Functions) -> None:
    model = made(name)
    presented = wrapped(model, form)
    if presented is None:
        return
    check(presented)
    assert (presented.graph.inputs, presented.graph.outputs) == (model.graph.inputs, model.graph.outputs)
    assert terms_of(presented) == terms_of(model)
    check(inline(presented))


@settings(max_examples=15)
@given(st.sampled_from(("plain", "twice", "bodies")), forms)
def test_the_reference_gives_the_same_bits_when_it_is_inlined(name: str, form: Functions) -> None:
    """Not with left-out values: in bodies the reference takes a left-out result for a left-out operand."""
    model = made(name)
    presented = wrapped(model, form)
    if presented is not None:
        assert_same_bits(model, inline(presented))


@settings(max_examples=15)
@given(st.sampled_from(("plain", "twice")), st.integers(0, 10**6))
def test_the_reference_gives_the_same_bits(name: str, seed: int) -> None:
    """The reference hands no attributes over to functions, and finds no functions that stand after their callers."""
    model = made(name)
    assert_same_bits(model, Functions(seed, 3, 1, attributes=0.0, shared=0.0).apply(model))


def assert_same_bits(model: Model, presented: Model) -> None:
    feeds = feeds_of(model)
    expected = ReferenceEvaluator(emit(model)).run(None, feeds)
    actual = ReferenceEvaluator(emit(presented)).run(None, feeds)
    for want, got in zip(expected, actual, strict=True):
        np.testing.assert_array_equal(want, got)


@settings(max_examples=30)
@given(st.sampled_from(sorted(TEXTS)), st.integers(0, 10**6), st.sampled_from(("none", "forward")))
def test_inlining_gives_the_same_graph_back(name: str, seed: int, how: Rewrite) -> None:
    model = made(name)
    form = Functions(seed, 3, 3, how, constants=0.0, shared=0.0)
    presented = wrapped(model, form)
    if presented is not None:
        assert same_graph(presented, model)


def same_graph(presented: Model, model: Model) -> bool:
    plain = inline(model)
    found = prune(inline(presented))
    return fingerprint(Model(found.graph, plain.opsets)) == fingerprint(Model(prune(plain).graph, plain.opsets))


def test_generated_graphs_stay_valid_and_the_same() -> None:
    producer = Strict(GeneratorOptions(nodes=8), Support(open=True))
    seen = Counter[str]()
    for number in range(24):
        model = read(producer.propose(stream(3, "wrapped", number)).program.payload)
        ways: tuple[Rewrite, ...] = ("none", "closure", "forward", "any")
        how = ways[number % len(ways)]
        presented = wrapped(model, Functions(number, 3, rewrite=how))
        if presented is None:
            continue
        check(presented)
        assert terms_of(presented) == terms_of(model)
        assert presented.graph.outputs == model.graph.outputs
        seen.update(describe(presented))
        strictly = wrapped(model, STRICTLY)
        assert strictly is None or same_graph(strictly, model)
    assert seen["functions"] > 40
    assert seen["calls"] > seen["functions"]


@settings(max_examples=15)
@given(st.sampled_from(sorted(TEXTS)), forms)
def test_the_same_seed_and_model_give_the_same_bytes(name: str, form: Functions) -> None:
    first, second = wrapped(made(name), form), wrapped(made(name), form)
    assert (first and emit(first)) == (second and emit(second))


PRINTED = """
import hashlib, sys
sys.path.insert(0, sys.argv[1])
from wrapped_models import TEXTS, made
from miscompile.transforms.functions.transform import Functions
from miscompile.graph.emit import emit
for name in TEXTS:
    for seed in range(3):
        print(hashlib.sha256(emit(Functions(seed, 3, rewrite="forward").apply(made(name)))).hexdigest())
"""


def test_the_order_of_sets_in_a_process_does_not_matter() -> None:
    printed = [
        subprocess.run(
            [sys.executable, "-c", PRINTED, str(Path(__file__).parent)],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True, text=True, check=True, timeout=120,
        ).stdout
        for hash_seed in ("0", "12345")
    ]  # fmt: skip
    assert printed[0] == printed[1]
    assert len(printed[0].split()) == 3 * len(TEXTS)


def test_seeds_matter() -> None:
    assert len({emit(Functions(seed).apply(made("plain"))) for seed in range(20)}) > 15


@settings(max_examples=30)
@given(st.sampled_from(sorted(TEXTS)), st.integers(0, 10**6), st.integers(1, 3))
def test_wrapping_keeps_to_its_depth(name: str, seed: int, depth: int) -> None:
    model = made(name)
    presented = wrapped(model, Functions(seed, 6, depth))
    if presented is not None:
        assert 1 <= describe(presented)["depth"] <= max(depth, describe(model)["depth"])


def test_functions_nest_and_are_called_from_several_places() -> None:
    found = [describe(Functions(seed, 4, 3, shared=0.5).apply(made("bodies"))) for seed in range(40)]
    assert {entry["depth"] for entry in found} >= {1, 2, 3}
    assert any(entry["calls"] > entry["functions"] for entry in found)


def test_ir_versions_rise_to_what_functions_need() -> None:
    old = Model(made("plain").graph, {"": 13}, (), 7)
    bare = Functions(2, attributes=0.0).apply(old)
    assert bare.ir_version == 8
    given = [Functions(seed, 3, attributes=1.0).apply(old) for seed in range(10)]
    assert all(model.ir_version == (9 if any(f.defaults for f in model.functions) else 8) for model in given)
    twins = [Functions(seed, 4, overloads=True).apply(old) for seed in range(10)]
    assert any(function.overload for model in twins for function in model.functions)
    assert all(model.ir_version == 10 for model in twins if any(f.overload for f in model.functions))
    for model in (bare, *given, *twins):
        check(model)


def test_functions_import_what_they_use_and_no_more() -> None:
    model = parse_model(
        """ir 8 opset 17 opset ai.onnx.ml 3 graph g(%x: float32[2]) -> (%y: float32[1,2]) {
        %a = Neg(%x) %y = ai.onnx.ml::Scaler(%a) {offset=[0.0], scale=[2.0]} }"""
    )
    imports = [f.opsets for seed in range(20) for f in Functions(seed, 2).apply(model).functions]
    assert {"": 17} in imports
    assert any("ai.onnx.ml" in opsets and "" not in opsets for opsets in imports)


@pytest.mark.parametrize(
    "text",
    [
        "ir 8 opset 17 graph g(%x: float32[2]) -> (%x: float32[2]) { }",
        "ir 8 opset 17 graph g(%x: float32[2]) -> (%x: float32[2]) { %dead = Neg(%x) }",
        """ir 8 opset 17 graph g() -> (%y: float32[2]) {
        init %s = sparse [2] float32[1] [2.0] at int64[1] [1] %y = Neg(%s) }""",
    ],
)
def test_models_with_nothing_to_wrap_are_rejected(text: str) -> None:
    with pytest.raises(RejectedDraft, match="no part of the model"):
        Functions(shared=0.0).apply(parse_model(text))


def test_a_function_that_returns_a_function_cannot_be_said() -> None:
    with pytest.raises(RejectedDraft, match="cannot return a function"):
        Functions(rewrite="factory").apply(made("plain"))


def test_functions_of_the_model_itself_may_be_rewritten() -> None:
    model = made("nested")
    found = [Functions(seed, 1, 3, "forward").apply(model) for seed in range(10)]
    assert any(f.name.startswith(("forward_outer", "forward_inner")) for each in found for f in each.functions)


@given(forms)
def test_the_spec_prints_and_parses(form: Functions) -> None:
    spec = parse_spec(print_spec("functions", form))
    assert spec.name == "functions"
    assert parse_options(Functions, dict(spec.options), "functions") == form


@pytest.mark.parametrize("options", [{"count": 0}, {"depth": 0}, {"shared": 1.5}, {"attributes": -0.1}])
def test_values_that_mean_nothing_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(SpecError):
        Functions(**options)  # type: ignore[arg-type]
