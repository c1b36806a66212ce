"""The language and the rules against ONNX Runtime, which runs without optimisation what they are written as."""

import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from rule_models import first_opset, operands, run_unoptimised, side_model, term_model
from term_calls import COMPUTED, ROUNDED, call, same

from miscompile.base.dtypes import DTYPES
from miscompile.base.errors import RejectedDraft
from miscompile.base.rng import array_stream, stream
from miscompile.core.tensor import Array
from miscompile.graph.check import check
from miscompile.transforms.rules.library import groups, library
from miscompile.transforms.rules.numbers import drawn
from miscompile.transforms.rules.rule import Bindings, Rule, type_of, values_of
from miscompile.transforms.rules.specimens import dtypes_of, specimen
from miscompile.transforms.rules.terms import evaluate, infer

pytestmark = pytest.mark.compiler
OPSET = 23


@pytest.mark.parametrize("op", sorted(COMPUTED))
def test_entries_agree_with_a_runtime(op: str) -> None:
    """ONNX Runtime without optimisation, in the element types for which it has kernels."""
    seen = Counter[str]()
    for number in range(60):
        rng = stream(3, op, number)
        made = call(op, rng)
        if made is None or any(each.dtype in ("bfloat16", "float16") for each in made[1]):
            continue
        symbol, types = made
        kind = infer(symbol, types)
        assert kind is not None
        if 0 in kind.shape or kind.dtype in ("bfloat16", "float16") or (op == "Cast" and kind.dtype.startswith("uint")):
            continue
        arrays = [drawn(each, "small", array_stream(4, op, number)) for each in types]
        if op in ("Sqrt", "Log", "Reciprocal", "BatchNormalization"):
            arrays = [np.abs(array) + 1 for array in arrays]
        if op == "Div":
            arrays[1] = np.abs(arrays[1]) + 1
        actual = run_unoptimised(term_model(symbol, types, OPSET), {f"x{place}": a for place, a in enumerate(arrays)})
        if actual is None:
            continue
        assert same(evaluate(symbol, tuple(arrays)), actual, 2e-6 if op in ROUNDED else 0.0), (symbol, types)
        seen[types[0].dtype] += 1
    assert sum(seen.values()) >= 4 or op in ("BitwiseNot", "BitwiseAnd", "BitwiseOr", "BitwiseXor"), seen


def instance(rule: Rule, dtype: str, rng: random.Random) -> Bindings | None:
    """An example of both sides whose values are not empty and not of a type that cannot be fed or returned."""
    everywhere = replace(rule, chance=1.0)
    found = specimen(everywhere, dtype, rng, 100)
    extended = None if found is None else everywhere.extend(found, rng)
    if extended is None:
        return None
    kinds = (*operands(rule.left, extended).values(), type_of(rule.left, extended))
    return extended if all(kind and 0 not in kind.shape and kind.dtype != "bfloat16" for kind in kinds) else None


def agree(left: Array, right: Array, rule: Rule, scale: float) -> bool:
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    if left.dtype.kind != "f" or rule.exactness != "rounding":
        return bool(np.array_equal(left, right, equal_nan=left.dtype.kind == "f"))
    bound = 32 * DTYPES[left.dtype.name].eps * max(scale, 1)
    return bool(np.allclose(left, right, rtol=0, atol=bound, equal_nan=True))


@pytest.mark.slow
@pytest.mark.parametrize("group", groups())
def test_both_sides_agree_as_models_in_a_runtime(group: str) -> None:
    """Written as models, both sides are valid and ONNX Runtime without optimisation gives the same for them."""
    ran = Counter[str]()
    for rule in (rule for rule in library() if rule.group == group):
        usual = ("float32", "int64", "int32", "bool")
        dtypes: list[str] = [dtype for dtype in usual if dtype in dtypes_of(rule)] or ["int8"]
        for number in range(4):
            environment = instance(rule, dtypes[number % len(dtypes)], stream(number, rule.name))
            if environment is None:
                continue
            opset = max(18, first_opset(rule.left, environment), first_opset(rule.right, environment))
            inputs = operands(rule.left, environment)
            try:
                models = [side_model(side, inputs, environment, opset) for side in (rule.left, rule.right)]
            except RejectedDraft:
                continue
            for model in models:
                check(model)
            numbers = array_stream(number, rule.name)
            feeds = {name: drawn(kind, "small", numbers) for name, kind in inputs.items()}
            results = [run_unoptimised(model, feeds) for model in models]
            if results[0] is None or results[1] is None:
                continue
            parts = [*values_of(rule.left, environment, feeds), *values_of(rule.right, environment, feeds)]
            if rule.exactness == "rounding" and not all(np.isfinite(part).all() for part in parts):
                continue
            with np.errstate(invalid="ignore"):
                scale = max(float(np.max(np.abs(part.astype(np.float64)), initial=0)) for part in parts)
            assert agree(results[0], results[1], rule, scale), (rule.name, environment, feeds, results)
            ran[rule.name] += 1
    assert ran or group == "bits"
