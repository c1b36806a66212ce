"""The graph under construction: rollback, guards, and motifs that can really be planted."""

import random
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator

from miscompile.base.dtypes import NUMBERS, is_float
from miscompile.base.errors import RejectedDraft
from miscompile.base.rng import stream
from miscompile.ops.registry import dtypes_of, specs, version_of
from miscompile.ops.spec import OperatorLimits
from miscompile.ops.support import Support
from miscompile.ops.values import Range, Style, choose_range
from miscompile.patterns.language import Motif, parse_motifs
from miscompile.patterns.shipped import catalogue, noop_motifs
from miscompile.producers.finish import finish, leaves
from miscompile.producers.guards import guard
from miscompile.producers.motifs.plant import NONE, Mutations, plant, plant_noop
from miscompile.producers.scope import Scope
from miscompile.producers.sites import GivenSite, ScopeSite, insert

OPSETS = (17, 18, 20, 21, 22)
PAIRS = [(op, dtype) for op in specs() for dtype in dtypes_of(op, 21)]

NOT_PLANTABLE: frozenset[str] = frozenset()
"""Motifs that never come off, each with a reason beside it. Nothing may join it without one."""


def scope(seed: int | str, opset: int = 21, style: Style | None = None) -> Scope:
    return Scope(stream(0, "scope", seed), opset, OperatorLimits(), style or Style(), Support(open=True))


def snapshot(known: Scope) -> dict[str, object]:
    """Everything that a scope holds, by value."""
    fields = {name: value for name, value in vars(known).items() if isinstance(value, dict | list | int)}
    kept: dict[str, object] = {}
    for name, value in fields.items():
        if name.startswith("_") and name != "_fresh":
            continue  # caches may stay
        if name == "pool":
            kept[name] = {
                dtype: [operand.name for operand in operands] for dtype, operands in known.pool.items() if operands
            }
        elif isinstance(value, dict):
            kept[name] = list(value.items()) if name in ("uses", "producer", "types") else list(value)
        else:
            kept[name] = list(value) if isinstance(value, list) else value
    return kept


def grow(known: Scope, rng: random.Random, steps: int) -> None:
    """Insert operators, plant motifs and guard values, as generation does; refusals are part of it."""
    motifs = catalogue()
    for _ in range(steps):
        chance = rng.random()
        mark = known.mark()
        try:
            if chance < 0.6 or not known.operands:
                op, dtype = rng.choice(PAIRS)
                insert(known, op, ScopeSite(known, dtype))
            elif chance < 0.85:
                plant(known, rng.choice(motifs), Mutations(), noop_motifs())
            else:
                guard(known, rng.choice(list(known.operands.values())), (0.5, 4))
        except RejectedDraft:
            known.rollback(mark)


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.integers(0, 6), st.integers(1, 6))
def test_rollback_restores_everything(seed: int, before: int, after: int) -> None:
    known = scope(seed)
    grow(known, stream(seed, "before"), before)
    mark, kept = known.mark(), snapshot(known)
    grow(known, stream(seed, "after"), after)
    known.rollback(mark)
    assert snapshot(known) == kept
    known.rollback(mark)
    assert snapshot(known) == kept


@settings(max_examples=40)
@given(st.integers(0, 2**32))
def test_after_a_rollback_the_same_names_are_given_again(seed: int) -> None:
    known = scope(seed)
    grow(known, stream(seed, "before"), 3)
    mark = known.mark()
    first = known.new_input("float32", (2,), choose_range("float32", Style())).name
    known.rollback(mark)
    assert known.new_input("float32", (2,), choose_range("float32", Style())).name == first


@settings(max_examples=150)
@given(
    st.integers(0, 2**32),
    st.sampled_from([name for name in NUMBERS if name != "bfloat16"]),
    st.sampled_from([(0.0, 100.0), (0.25, 4.0), (1.0, 64.0), (-1.0, 1.0), (2.0, 3.0), (-100.0, -1.0)]),
)
def test_a_guarded_value_lies_in_its_range(seed: int, dtype: str, within: tuple[float, float]) -> None:
    known = scope(seed)
    x = known.new_input(dtype, (2, 3), choose_range(dtype, Style(full=seed % 2 == 0)))
    mark = known.mark()
    try:
        guarded = guard(known, x, within)
    except RejectedDraft:
        assert len(known.nodes) == mark.nodes
        return
    assert guarded.facts.inside(*within)
    assert guarded.dtype == dtype
    item = finish(known, [guarded.name], 3, {})
    session = ReferenceEvaluator(item.program.payload)
    for feed in item.feeds:
        names = [port.name for port in item.program.inputs]
        (found,) = session.run(None, {name: value.array for name, value in zip(names, feed, strict=True)})
        assert (np.asarray(found).astype(np.float64) >= within[0]).all()
        assert (np.asarray(found).astype(np.float64) <= within[1]).all()


def plantable(motif: Motif) -> bool:
    for opset in reversed(OPSETS):
        for dtype in motif.dtypes:
            for attempt in range(4):
                style = Style(attempt % 2 == 0, attempt > 1)
                known = scope(f"{motif.name}{dtype}{attempt}", opset, style)
                if plant(known, motif, NONE, dtypes=(dtype,)):
                    return True
    return False


def test_motifs_can_be_planted() -> None:
    never = {motif.name for motif in catalogue() if not plantable(motif)}
    assert never <= NOT_PLANTABLE, f"these motifs can no longer be planted: {sorted(never - NOT_PLANTABLE)}"
    assert set(NOT_PLANTABLE) <= {motif.name for motif in catalogue()}


@pytest.mark.parametrize("motif", noop_motifs(), ids=lambda motif: motif.name)
def test_a_no_op_changes_nothing(motif: Motif) -> None:
    for dtype in motif.dtypes:
        for attempt in range(6):
            known = scope(f"{motif.name}{dtype}{attempt}", 21, Style(integral=True))
            planted = plant(known, motif, NONE, dtypes=(dtype,))
            if planted is None or dtype == "bfloat16":
                continue
            item = finish(known, [planted.results[-1].name], 1, {})
            (feed,) = item.feeds
            names = [port.name for port in item.program.inputs]
            try:
                given = dict(zip(names, feed, strict=True))
                (found,) = ReferenceEvaluator(item.program.payload).run(
                    None, {name: value.array for name, value in given.items()}
                )
            except (NotImplementedError, RuntimeError, TypeError, ValueError):
                continue  # onnx's reference lacks this form
            source = given[names[0]].array
            array = np.asarray(found)  # a neutral element may raise the rank
            assert (array.dtype, array.size) == (source.dtype, source.size), (motif.name, dtype)
            assert np.array_equal(array.reshape(source.shape), source), (motif.name, dtype)


def test_mutations_only_touch_settings() -> None:
    """Whatever the mutations do, a planted motif leaves a graph with results; a refused one leaves no trace."""
    for number, motif in enumerate(catalogue()):
        known = scope(number)
        kept = snapshot(known)
        planted = plant(known, motif, Mutations(*[0.3] * len(fields(Mutations))), noop_motifs())
        if planted is None:
            assert snapshot(known) == kept
        else:
            assert leaves(known)
            assert set(planted.outputs) <= set(known.producer)


def test_a_near_miss_has_another_value_of_the_type_where_the_pattern_needs_the_same_one() -> None:
    motif = only("x = value(2, 3)\na = Sigmoid(x)\ny = Mul(x, a)\ndtypes('float32')")
    known = scope(1)
    assert plant(known, motif, replace(NONE, other_operand=1.0)) is not None
    first, last = known.nodes
    assert last.inputs[0] != first.inputs[0]
    assert len({known.operands[name].shape for name in (*first.inputs, *last.inputs)}) == 1


def test_a_near_miss_has_the_same_operator_in_any_other_form() -> None:
    (motif,) = (one for one in catalogue() if one.name == "pad_averagepool")
    pads, kernels = set(), set()
    for number in range(60):
        known = scope(number)
        if plant(known, motif, replace(NONE, other_form=1.0)) is None:
            continue
        first, pool = known.nodes[-2:]
        assert (first.op, pool.op) == ("Pad", "AveragePool")
        assert pool.inputs[0] == first.outputs[0]
        kernels.add(pool.attributes["kernel_shape"].value)
        pads |= {pool.attributes["pads"].value} if "pads" in pool.attributes else set()
    assert len(kernels) > 3
    assert any(any(one) for one in pads)


def test_all_axes_of_a_planting_are_counted_from_the_other_end() -> None:
    motif = only(
        "x = value(2, 3, 4)\nr = ReduceSum(x, axes=(0,), keepdims=0)\n"
        "s = Softmax(r, axis=-1)\ny = Squeeze(s)\ndtypes('float32')"
    )
    known = scope("axes", opset=13)
    planted = plant(known, motif, replace(NONE, other_end=1.0))
    assert planted is not None
    assert [one.shape for one in planted.results] == [(3, 4), (3, 4), (3, 4)]
    reduction, softmax = known.nodes[-3:-1]
    (axes,) = (one for operands in known.pool.values() for one in operands if one.name == reduction.inputs[1])
    assert axes.value is not None
    assert axes.value.tolist() == [-3]
    assert softmax.attributes["axis"].value == 1
    wider = only("x = value(2, 3)\nu = Unsqueeze(x, axes=(0,))\ny = Flatten(u, axis=3)\ndtypes('float32')")
    planted = plant(scope("wider", opset=13), wider, replace(NONE, other_end=1.0))
    assert planted is not None
    assert [one.shape for one in planted.results] == [(1, 2, 3), (6, 1)]


def test_a_given_operand_comes_first_or_the_call_is_refused() -> None:
    known = scope("given")
    whole = known.new_input("float32", (2, 3), Range(0.0, 1.0, integral=False))
    call = specs()["Transpose"].sample(GivenSite(known, whole))
    assert call.inputs[0] == whole
    with pytest.raises(RejectedDraft):
        specs()["Conv"].sample(GivenSite(known, whole))  # a Conv takes no matrix


def test_a_near_miss_has_another_operator_of_the_same_kind() -> None:
    motif = only("x = value(2, 3)\na = Exp(x)\nb = Add(a, x)\ny = Transpose(b, perm=(1, 0))\ndtypes('float32')")
    met = set()
    for seed in range(20):
        known = scope(seed)
        assert plant(known, motif, replace(NONE, other_operator=1.0)) is not None
        met.add(tuple(node.op for node in known.nodes if node.op != "Clip"))
    met.discard(("Exp", "Add", "Transpose"))  # where the other operators are not defined, the motif is planted as it is
    assert len(met) > 5
    assert not any("Exp" in ops or "Add" in ops for ops in met)
    assert all(ops[-1] == "Transpose" for ops in met)


def test_the_sign_of_a_zero_is_kept() -> None:
    known = scope(1)
    assert plant(known, only("x = value(2)\na = Add(x, 0.0)\ny = Add(a, -0.0)\ndtypes('float32')"), NONE) is not None
    zeros = [known.operands[node.inputs[1]].value for node in known.nodes]
    assert [bool(np.signbit(zero)) for zero in zeros if zero is not None] == [False, True]


def test_float_motifs_take_the_default_floats() -> None:
    taken = [motif for motif in catalogue() if all(is_float(dtype) for dtype in motif.dtypes)]
    assert len(taken) > 50


def test_a_motif_that_needs_what_the_target_refuses_is_not_tried_again() -> None:
    support = Support({f"Neg-{version_of('Neg', 18)}(float32)float32"})
    known = Scope(stream(0, "barren"), 18, OperatorLimits(), Style(), support)
    x = known.call("Neg", known.new_input("float32", (2, 3), Range(-1, 1, integral=False)))
    motif = next(motif for motif in noop_motifs() if motif.name == "cast_same")
    assert plant_noop(known, [motif], x) is None
    assert support.barren == {("cast_same", "float32", 18)}
    assert len(known.nodes) == 1
    assert plant_noop(known, [motif], x) is None
    assert plant(known, motif, NONE, dtypes=("float32",)) is None


def test_an_input_of_a_negative_size_is_no_draft() -> None:
    known = scope(0)
    with pytest.raises(RejectedDraft, match="shape"):
        known.new_input("float32", (2, -1), Range(0, 1, integral=False))
    assert not known.inputs


def only(lines: str) -> Motif:
    (motif,) = parse_motifs(f"[m]\n{lines}", "here")
    return motif


def test_values_and_constants_have_the_dtypes_and_elements_that_the_motif_says() -> None:
    known = scope(1)
    motif = only(
        "x = value(2, 2)\n"
        "i = value(2, dtype='int64', lo=0, hi=2)\n"
        "w = weight(2, 1, dtype='int8', lo=-1, hi=1)\n"
        "c = numbers((1.5, -2), sizes=(2, 1))\n"
        "g = Cast(i, to=T)\n"
        "s = Cast(w, to=T)\n"
        "m = Mul(g, s)\n"
        "a = Add(m, c)\n"
        "y = Sub(x, a)\n"
        "dtypes('float16')\n"
    )
    planted = plant(known, motif, NONE)
    assert planted is not None
    kinds = {operand.dtype for operand in known.operands.values()}
    assert kinds == {"float16", "int64", "int8"}
    (indices,) = [name for name in known.inputs if known.operands[name].dtype == "int64"]
    assert known.inputs[indices] == Range(0, 2, integral=True)
    (weight,) = [value for value in known.initializers.values() if value.dtype == "int8"]
    assert weight.shape == (2, 1)
    assert np.abs(weight.array).max() <= 1
    adds = known.nodes[-2].inputs[1]
    added = known.operands[adds].value
    assert added is not None
    assert added.tolist() == [[1.5], [-2]]


def test_numbers_of_the_motifs_dtype_are_rounded_and_clipped() -> None:
    known = scope(1)
    planted = plant(known, only("x = value(2)\nc = numbers((1000, -1.6))\ny = Max(x, c)\ndtypes('int8')"), NONE)
    assert planted is not None
    constant = known.operands[known.nodes[-1].inputs[1]]
    assert (constant.dtype, constant.value is not None and constant.value.tolist()) == ("int8", [127, -2])


@pytest.mark.parametrize(
    "line", ["y = Add(x, inf)", "y = Add(x, full(nan, 2))", "c = numbers((1, -inf), sizes=(2,))\ny = Add(x, c)"]
)
def test_a_number_that_an_integer_type_has_not_is_no_draft(line: str) -> None:
    (motif,) = parse_motifs(f'[m]\nx = value(2)\n{line}\ndtypes("int8", "uint64")', "")
    known = scope("infinite")
    assert plant(known, motif, NONE) is None
    assert not known.operands


def test_a_number_beyond_the_end_of_a_float_type_is_no_draft() -> None:
    for dtype, planted in (("float16", False), ("float32", True)):
        (motif,) = parse_motifs(f'[m]\nx = value(2, lo=-1, hi=1)\ny = Mul(x, 1e6)\ndtypes("{dtype}")', "")
        assert (plant(scope("large"), motif, NONE) is not None) == planted


def test_attributes_take_the_kind_that_the_schema_asks_for() -> None:
    known = scope(1)
    lines = (
        "x = value(2, 3)\nl = LeakyRelu(x, alpha=1)\nt = Transpose(l, perm=(1, 0))\n"
        "f = ConstantOfShape(ints(3, 2), value=numbers((7,)))\ns = Add(t, f)\n"
        "y = Cast(s, to='int32')\ndtypes('float32')"
    )
    assert plant(known, only(lines), NONE) is not None
    kinds = {(node.op, name, given.kind) for node in known.nodes for name, given in node.attributes.items()}
    wanted = {
        ("LeakyRelu", "alpha", "float"),
        ("Transpose", "perm", "ints"),
        ("ConstantOfShape", "value", "tensor"),
        ("Cast", "to", "int"),
    }
    assert wanted <= kinds
    assert known.operands[known.nodes[-1].outputs[0]].dtype == "int32"


HOLES = "a = value(..., N)\nb = value(N, M)\nm = value(1, M, dtype='bool')\np = MatMul(a, b)\ny = Where(m, p, p)"


def test_holes_are_bound_by_name_and_give_dtype_and_sizes() -> None:
    known = scope(2)
    span = Range(-1, 1, integral=False)
    b, m = known.new_input("float64", (3, 5), span), known.new_input("bool", (1, 5), Range(0, 1, integral=True))
    planted = plant(known, only(HOLES), NONE, holes={"b": b, "m": m})
    assert planted is not None
    product, where = known.nodes
    assert product.inputs[1] == b.name
    assert where.inputs[0] == m.name
    a = known.operands[product.inputs[0]]
    assert (a.dtype, a.shape[-1]) == ("float64", 3)


@pytest.mark.parametrize(
    ("name", "dtype", "shape"),
    [("b", "float32", (3,)), ("m", "float32", (1, 5)), ("m", "bool", (2, 5)), ("b", "bool", (3, 5))],
)
def test_a_hole_of_the_wrong_type_is_refused_and_leaves_no_trace(name: str, dtype: str, shape: tuple[int, ...]) -> None:
    known = scope(3)
    operand = known.new_input(dtype, shape, Range(0, 1, integral=True))
    kept = snapshot(known)
    assert plant(known, only(HOLES), NONE, holes={name: operand}) is None
    assert snapshot(known) == kept


def test_holes_that_contradict_each_other_are_refused() -> None:
    known = scope(4)
    span = Range(-1, 1, integral=False)
    a, b = known.new_input("float32", (2, 4), span), known.new_input("float32", (3, 5), span)
    assert plant(known, only(HOLES), NONE, holes={"a": a, "b": b}) is None
    c = known.new_input("float64", (4, 5), span)
    assert plant(known, only(HOLES), NONE, holes={"a": a, "b": c}) is None
    d = known.new_input("float32", (4, 5), span)
    assert plant(known, only(HOLES), NONE, holes={"a": a, "b": d}) is not None


def test_a_hole_that_the_motif_has_not_is_an_error_of_the_caller() -> None:
    known = scope(5)
    operand = known.new_input("float32", (2,), Range(-1, 1, integral=False))
    with pytest.raises(ValueError, match="no value called z"):
        plant(known, only(HOLES), NONE, holes={"z": operand})
