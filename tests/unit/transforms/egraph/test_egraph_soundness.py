"""Soundness as a whole: every term against its class, and every presented model against its original."""

from collections import Counter

import numpy as np
import pytest
from egraph_models import cases, everything, reference, ring, rule_text, rules_of, saturated, shared

from evaluation.polyjuice.plant import plant
from evaluation.polyjuice.verify import Verified, table, verify
from miscompile.base.dtypes import DTYPES
from miscompile.base.errors import ModelError, RejectedDraft
from miscompile.base.rng import stream
from miscompile.core.case import Case
from miscompile.graph.check import check
from miscompile.graph.model import Model, TensorType
from miscompile.graph.read import read
from miscompile.transforms.egraph.choice import Pick
from miscompile.transforms.egraph.program import program_of
from miscompile.transforms.egraph.saturation import SaturationLimits, chosen, saturate
from miscompile.transforms.egraph.transform import Saturated
from miscompile.transforms.rules.library import library


def test_every_term_has_the_value_of_its_class() -> None:
    found = Verified()
    for number, case in enumerate(cases(40)):
        program, _, _ = saturated(read(case.program.payload), chosen(), number)
        verify(program, number, found)
    assert found.bad == []
    assert found.checked > 2000
    assert found.exact > 0.95 * found.checked


@pytest.mark.parametrize(
    ("left", "right", "more"),
    [
        ("Sub(x, y)", "Sub(y, x)", ()),
        ("Mul(Add(x, y), z)", "Add(Mul(x, z), y)", ()),
        ("Transpose(x, perm=p)", "x", ('where = "x.shape == take(x.shape, p) and x.rank > 1"', 'shapes = {x = "aa"}')),
        ("Concat(x, y, axis=a)", "Concat(y, x, axis=a)", ()),
        ("Relu(x)", "Abs(x)", ()),
    ],
)
def test_an_unsound_rule_of_the_right_type_is_seen(left: str, right: str, more: tuple[str, ...]) -> None:
    found = Verified()
    rules = rules_of(rule_text("bad", left, right, *more))
    fired = Counter[str]()
    for number in range(20):
        model = plant(rules.rules[0], stream(1, "unsound", number))
        program, _, tally = saturated(model, rules, number)
        fired.update(tally.unions)
        verify(program, number, found)
    assert fired["bad"] > 0
    assert found.bad


def test_planted_models_hold_the_left_side_of_their_rule() -> None:
    """Each rule fires on what is planted for it: it matches, is not refused, and mostly finds something new."""
    matched, refused, names = Counter[str](), Counter[str](), set[str]()
    for rule in library()[::7]:
        for number in range(3):
            try:
                model = plant(rule, stream(0, rule.name, number))
            except RejectedDraft:
                continue
            check(model)
            program = program_of(model)
            tally = saturate(program, chosen(rule.name), SaturationLimits(1, 2000, 3), number)
            names.add(rule.name)
            matched.update(tally.matches)
            refused.update(tally.refused)
    assert refused == Counter()
    assert len(names) > 0.8 * len(library()[::7])
    assert len([name for name in names if matched[name]]) > 0.9 * len(names)


def test_a_table_of_rules_shows_the_rarest_first() -> None:
    assert table(["often", "never"], {"often": 3}, {"often": 2}).split() == ["0", "0", "never", "2", "3", "often"]


def feeds_of(case: Case) -> dict[str, np.ndarray] | None:
    """Return the first feed as onnx's reference takes it, or None where it takes no such type."""
    pairs = list(zip(case.program.inputs, case.feeds[0], strict=True))
    if any(
        value.dtype in ("bfloat16",) or value.dtype.startswith(("float8", "float4", "int4", "uint4", "int2", "uint2"))
        for _, value in pairs
    ):
        return None
    return {port.name: value.array for port, value in pairs}


def compared(case: Case, model: Model, changed: Model) -> str:
    """Return how the outputs of two models compare on a case's first feed."""
    feeds = feeds_of(case)
    if feeds is None:
        return "other types"
    try:
        expected = reference(model, feeds)
    except (RuntimeError, NotImplementedError, TypeError, ValueError, IndexError, AttributeError):
        return "not run"  # onnx's reference cannot run everything that onnx describes
    actual = reference(changed, feeds)
    verdict = "same"
    for info, want, got in zip(model.graph.outputs, expected, actual, strict=False):
        one, other = np.asarray(want), np.asarray(got)
        if isinstance(info.type, TensorType) and one.dtype != DTYPES[info.type.dtype].storage:
            return "not run"  # onnx's reference gives the mean of a LayerNormalization the type of its data
        assert one.shape == other.shape, info.name
        assert one.dtype == other.dtype, info.name
        if one.dtype.kind in "iub" and not np.array_equal(one, other):
            return "different"
        if one.dtype.kind == "f":
            if np.array_equal(one, other, equal_nan=True):
                continue
            tolerance = {2: 2e-2, 4: 1e-4, 8: 1e-9}[one.dtype.itemsize]
            scale = max(1.0, float(np.abs(one[np.isfinite(one)]).max(initial=0.0)))
            if not np.allclose(one, other, rtol=tolerance, atol=tolerance * scale, equal_nan=True):
                return "different"
            verdict = "close"
    return verdict


@pytest.mark.slow
@pytest.mark.parametrize("pick", ["most", "least", "random"])
def test_presented_models_compute_what_the_model_computes(pick: Pick) -> None:
    """Integers are fed, so that only division, transcendental functions and overflow may round at all."""
    seen = Counter[str]()
    for number, case in enumerate(cases(160, seed=len(pick), integral=1.0)):
        model = read(case.program.payload)
        try:
            changed = Saturated(number, pick).apply(model)
        except (RejectedDraft, ModelError):
            seen["rejected"] += 1
            continue
        check(changed)
        seen[compared(case, model, changed)] += 1
    assert seen["different"] == 0
    if pick != "least":
        assert seen["same"] + seen["close"] > 30


def test_the_small_rule_sets_of_these_tests_are_sound() -> None:
    found = Verified()
    for rules in (ring(), everything()):
        program, _, _ = saturated(shared(), rules, 1)
        verify(program, 1, found)
    assert found.bad == []
