"""Lifting on the node cases of onnx's backend tests: operators of all kinds, many of them alone."""

from dataclasses import replace

import numpy as np

from miscompile.base.rng import stream
from miscompile.corpus.binding import normalised
from miscompile.corpus.node_cases import NodeCase, node_cases
from miscompile.generation.motifs.plant import NONE, plant
from miscompile.generation.scope import Scope
from miscompile.graph.model import TensorType
from miscompile.graph.read import read
from miscompile.ops.registry import specs
from miscompile.ops.seed import Seed
from miscompile.ops.spec import Limits
from miscompile.ops.support import Support
from miscompile.ops.values import Range, Style
from miscompile.patterns.extract import Operators, Sizes, whole_of
from miscompile.patterns.language import parse_motifs
from miscompile.patterns.lift import lift
from miscompile.patterns.print import print_motif

EVERY = 15


def seed_of(one: NodeCase) -> Seed | None:
    """A node case as a seed; small integer inputs, which mostly are axes and shapes, always have the same elements."""
    if one.case is None:
        return None
    model = normalised(read(one.case.program.payload))
    known = whole_of(model, one.name)
    types, fixed, ranges = dict(known.types), {}, {}
    for port, value in zip(one.case.program.inputs, one.case.feeds[0], strict=True):
        types[port.name] = TensorType(value.dtype, value.shape)
        numbers = value.numbers()
        if value.dtype in ("int64", "int32") and value.array.ndim < 2:
            fixed[port.name] = value
        elif numbers.dtype.kind in "fiu" and numbers.size and np.isfinite(numbers.astype(np.float64)).all():
            ranges[port.name] = Range(numbers.min().item(), numbers.max().item(), numbers.dtype.kind != "f")
    for port, value in zip(one.case.program.outputs, one.expected[0], strict=True):
        if value is not None:
            types[port.name] = TensorType(value.dtype, value.shape)
    if not ranges:
        fixed = {}
    operators = Operators(replace(known, types=types, fixed=fixed, ranges=ranges), Sizes(1, 1000))
    return operators.cut(frozenset(range(len(model.graph.nodes))), one.name) if all(operators.fit) else None


def test_most_node_cases_lift_and_come_off_again() -> None:
    seeds = [seed for place, one in enumerate(node_cases()) if place % EVERY == 0 and (seed := seed_of(one))]
    known = [seed for seed in seeds if set(seed.operators) <= set(specs())]
    lifted = [(seed, motif) for seed in known if (motif := lift(seed, seed.source))]
    planted = 0
    for seed, motif in lifted:
        assert motif.operators == seed.operators
        assert tuple(parse_motifs(print_motif(motif), "lifted")) == (motif,)
        for turn in range(3):
            scope = Scope(stream(0, seed.source, turn), seed.opset, Limits(), Style(integral=False), Support(open=True))
            if plant(scope, motif, NONE):
                planted += 1
                break
    assert len(known) > 60
    assert len(lifted) > 0.85 * len(known)
    assert planted > 0.8 * len(lifted)
