"""Lifting on the node cases of onnx's backend tests: operators of all kinds, many of them alone."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from onnx.backend.test.case.node import collect_testcases

from miscompile.base.dtypes import PLAIN, is_float
from miscompile.base.rng import stream
from miscompile.core.tensor import Tensor, tensor
from miscompile.graph.model import TensorType
from miscompile.graph.read import read
from miscompile.ops.registry import specs
from miscompile.ops.seed import Seed
from miscompile.ops.spec import OperatorLimits
from miscompile.ops.support import Support
from miscompile.ops.values import Range, Style
from miscompile.patterns.extract import Operators, PieceSizes, whole_of
from miscompile.patterns.language import parse_motifs
from miscompile.patterns.lift import lift
from miscompile.patterns.print import print_motif
from miscompile.producers.motifs.plant import NONE, plant
from miscompile.producers.scope import Scope
from miscompile.producers.slices.binding import normalised

pytestmark = pytest.mark.quality

EVERY = 15


def arrays(values: Any) -> list[Tensor] | None:
    """The values of a case as tensors; None when some are no arrays of a type that numpy has."""
    if not all(isinstance(value, np.ndarray) and value.dtype.name in PLAIN for value in values):
        return None
    return [tensor(value) for value in values]


def seed_of(item: Any) -> Seed | None:
    """A node case as a seed; small integer inputs, which mostly are axes and shapes, always have the same elements."""
    feeds, expected = (arrays(values) for values in item.data_sets[0])
    if feeds is None or expected is None:
        return None
    model = normalised(read(item.model.SerializeToString()))
    known = whole_of(model, item.name)
    types, fixed, ranges = dict(known.types), {}, {}
    for info, value in zip(model.graph.inputs, feeds, strict=True):
        types[info.name] = TensorType(value.dtype, value.shape)
        if value.dtype in ("int64", "int32") and value.array.ndim < 2:
            fixed[info.name] = value
        elif value.dtype != "bool" and value.array.size and np.isfinite(value.array.astype(np.float64)).all():
            lo, hi = value.array.min().item(), value.array.max().item()
            ranges[info.name] = Range(lo, hi, integral=not is_float(value.dtype))
    for info, value in zip(model.graph.outputs, expected, strict=True):
        types[info.name] = TensorType(value.dtype, value.shape)
    if not ranges:
        fixed = {}
    operators = Operators(replace(known, types=types, fixed=fixed, ranges=ranges), PieceSizes(1, 1000))
    return operators.cut(frozenset(range(len(model.graph.nodes))), item.name) if all(operators.fit) else None


def cases() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # making the expected outputs overflows on purpose in places
        return collect_testcases(None)


@pytest.mark.slow
def test_most_node_cases_lift_and_come_off_again() -> None:
    seeds = [seed for item in cases()[::EVERY] if (seed := seed_of(item))]
    known = [seed for seed in seeds if set(seed.operators) <= set(specs())]
    lifted = [(seed, motif) for seed in known if (motif := lift(seed, seed.source))]
    planted = 0
    for seed, motif in lifted:
        assert motif.operators == seed.operators
        assert tuple(parse_motifs(print_motif(motif), "lifted")) == (motif,)
        for turn in range(3):
            scope = Scope(
                stream(0, seed.source, turn), seed.opset, OperatorLimits(), Style(integral=False), Support(open=True)
            )
            if plant(scope, motif, NONE):
                planted += 1
                break
    assert len(known) > 60
    assert len(lifted) > 0.85 * len(known)
    assert planted > 0.8 * len(lifted)
