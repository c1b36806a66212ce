"""The form: options, what it presents, and how a reducer takes its rewrites away one by one."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from egraph_models import cases, model_of, operators, shared
from hypothesis import given, settings
from hypothesis import strategies as st

from miscompile.base.errors import RejectedDraft, SpecError
from miscompile.base.specs import parse_options, parse_spec, print_spec
from miscompile.graph.check import check
from miscompile.graph.emit import emit
from miscompile.graph.model import Model, TensorType
from miscompile.graph.read import read
from miscompile.transforms.egraph.choice import Pick
from miscompile.transforms.egraph.transform import Saturated, sites

forms = st.builds(
    Saturated,
    seed=st.integers(0, 10**6),
    pick=st.sampled_from(("most", "least", "random")),
    layers=st.integers(1, 3),
    rounds=st.integers(1, 3),
    nodes=st.sampled_from((50, 500, 2000)),
    structural=st.sampled_from((0.0, 0.5, 1.0, 2.0)),
    share=st.sampled_from((0.1, 0.25, 1.0)),
    exactness=st.sampled_from(("bits", "zero", "rounding")),
    taps=st.integers(0, 2),
    only=st.sampled_from(("", "a", "a+b+d")),
)


def presented(model: Model, form: Saturated) -> Model | None:
    try:
        return form.apply(model)
    except RejectedDraft:
        return None


@given(forms)
def test_the_spec_prints_and_parses(form: Saturated) -> None:
    spec = parse_spec(print_spec("egraph", form))
    assert spec.name == "egraph"
    assert parse_options(Saturated, dict(spec.options), "egraph") == form


@pytest.mark.parametrize(
    "options",
    [{"layers": 0}, {"rounds": 0}, {"nodes": 0}, {"taps": -1}, {"structural": -0.1}, {"share": 0.0}, {"share": 1.1}],
)
def test_values_that_mean_nothing_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(SpecError):
        Saturated(**options)  # type: ignore[arg-type]


def test_rules_that_do_not_exist_are_refused() -> None:
    with pytest.raises(SpecError, match="nonsense"):
        Saturated(groups="nonsense").apply(shared())


@settings(max_examples=40)
@given(forms)
def test_what_is_presented_is_valid_and_keeps_the_ports(form: Saturated) -> None:
    model = shared()
    found = presented(model, form)
    if found is None:
        return
    check(found)
    assert found.graph.inputs == model.graph.inputs
    assert found.graph.outputs[: len(model.graph.outputs)] == model.graph.outputs
    assert len(found.graph.outputs) <= len(model.graph.outputs) + form.taps


@settings(max_examples=20)
@given(forms)
def test_the_same_options_and_model_give_the_same_bytes(form: Saturated) -> None:
    first, second = presented(shared(), form), presented(shared(), form)
    assert (first and emit(first)) == (second and emit(second))


PRINTED = """
import hashlib, sys
sys.path.insert(0, sys.argv[1])
from egraph_models import shared
from miscompile.transforms.egraph.transform import Saturated
from miscompile.graph.emit import emit
for pick in ("most", "random"):
    for seed in range(4):
        print(hashlib.sha256(emit(Saturated(seed, pick).apply(shared()))).hexdigest())
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
    assert len(set(printed[0].split())) > 4


def test_a_model_with_nothing_to_rewrite_is_rejected() -> None:
    with pytest.raises(RejectedDraft, match="the model itself"):
        Saturated(structural=0).apply(model_of("%y = Mod(%x, %z) {fmod=1}"))
    with pytest.raises(RejectedDraft, match="the model itself"):
        Saturated(pick="least").apply(shared())


def test_the_simplest_drops_what_cancels() -> None:
    model = model_of(
        "%a = Neg(%x) %b = Neg(%a) %c = Transpose(%b) {perm=[1,0]} %d = Transpose(%c) {perm=[1,0]} %y = Mul(%d, %z)"
    )
    assert operators(Saturated(pick="least", share=1.0).apply(model)) == ("Mul",)


def test_groups_and_exactness_limit_what_is_used() -> None:
    found = [presented(shared(), Saturated(seed, groups="commutative", exactness="bits")) for seed in range(6)]
    assert {operators(model) for model in found if model} <= {
        operators(shared()),
        ("Add", "Add", "Mul", "Sin", "Add", "Neg"),
    }
    swapped = {node.inputs for model in found if model for node in model.graph.nodes if node.op == "Mul"}
    assert swapped == {("b", "z"), ("z", "b")}


def test_groups_that_are_named_all_take_part() -> None:
    for seed in range(6):
        named = Saturated(seed, groups="commutative", exactness="bits")
        assert same(presented(shared(), replace(named, share=0.01)), presented(shared(), replace(named, share=1.0)))
    bare = [presented(shared(), Saturated(seed, share=0.01)) for seed in range(12)]
    assert sum(model is None for model in bare) > 3


def test_taps_are_further_outputs_at_the_end() -> None:
    plain = Saturated(3).apply(shared())
    for taps in (1, 3):
        model = Saturated(3, taps=taps).apply(shared())
        check(model)
        assert model.graph.nodes == plain.graph.nodes or len(model.graph.nodes) == len(plain.graph.nodes)
        assert model.graph.outputs[:2] == shared().graph.outputs
        added = model.graph.outputs[2:]
        assert len(added) == taps
        made = {name for node in model.graph.nodes for name in node.outputs}
        assert all(info.name in made and isinstance(info.type, TensorType) for info in added)
    chosen = {Saturated(seed, taps=1).apply(shared()).graph.outputs[-1].name for seed in range(12)}
    assert len(chosen) > 2


def test_taps_alone_make_another_model() -> None:
    model = model_of("%a = Mod(%x, %z) {fmod=1} %y = Mod(%a, %z) {fmod=1}")
    assert [info.name for info in Saturated(taps=1, structural=0).apply(model).graph.outputs] == ["y", "a"]


def same(one: Model | None, other: Model | None) -> bool:
    return (one and emit(one)) == (other and emit(other))


@settings(max_examples=40)
@given(st.integers(0, 39), st.sampled_from(("most", "least", "random")), st.integers(0, 5), st.data())
def test_sites_are_what_may_be_taken_away(number: int, pick: Pick, seed: int, data: st.DataObject) -> None:
    model = read(cases(40)[number].program.payload)
    form = Saturated(seed, pick)
    names = sites(model, form)
    whole = presented(model, form)
    if not names:
        return
    assert same(presented(model, with_only(form, names)), whole)
    assert presented(model, with_only(form, ("no such value",))) is None
    some = [name for name in names if data.draw(st.booleans())]
    part = presented(model, with_only(form, some or ("no such value",)))
    if part is None:
        return
    check(part)
    left = set(sites(model, with_only(form, some)))
    assert left <= set(some)


def with_only(form: Saturated, names: list[str] | tuple[str, ...]) -> Saturated:
    return replace(form, only="+".join(names))


def test_values_that_may_not_leave_are_computed_as_in_the_model() -> None:
    model = shared()
    for seed in range(6):
        form = Saturated(seed)
        for name in sites(model, form):
            part = presented(model, with_only(form, (name,)))
            assert part is not None
            made = {node.outputs: node.op for node in part.graph.nodes}
            kept = [node for node in model.graph.nodes if node.outputs[0] in {"y", "w"} - {name}]
            assert all(made[node.outputs] == node.op for node in kept)
            assert set(sites(model, with_only(form, (name,)))) <= {name}


def test_every_site_matters() -> None:
    model = shared()
    form = Saturated(2)
    names = sites(model, form)
    whole = emit(form.apply(model))
    for name in names:
        fewer = presented(model, with_only(form, tuple(other for other in names if other != name)))
        assert fewer is None or emit(fewer) != whole
