"""Rules of operands that must fit each other: every sampler keeps them, and a changed shape breaks them."""

import numpy as np
import pytest

from miscompile.base.errors import RejectedDraft
from miscompile.base.rng import stream
from miscompile.ops.registry import dtypes_of, specs, well_formed
from miscompile.ops.spec import OperatorLimits, always
from miscompile.ops.support import Support
from miscompile.ops.values import Style
from miscompile.producers.sweep import Single, draft_single

OPSETS = (17, 21, 23, 24)


def singles(op: str, count: int = 40) -> list[Single]:
    found = []
    for number in range(count):
        opset = OPSETS[number % len(OPSETS)]
        dtypes = dtypes_of(op, opset)
        if not dtypes:
            continue
        rng = stream(1, "relations", op, number)
        try:
            found.append(
                draft_single(
                    rng, op, dtypes[number % len(dtypes)], opset, OperatorLimits(), Style(), Support(open=True)
                )
            )
        except RejectedDraft:
            continue
    return found


@pytest.mark.parametrize("op", sorted(op for op, spec in specs().items() if spec.well_formed is not always))
def test_samplers_keep_the_rule(op: str) -> None:
    drawn = singles(op)
    assert drawn
    assert all(well_formed(single.call) for single in drawn)


@pytest.mark.parametrize(
    ("op", "place", "axis"),
    [
        ("ReverseSequence", 1, 0), ("ScatterND", 2, 0), ("LSTM", 1, 2), ("LSTM", 2, 1), ("GRU", 1, 1), ("RNN", 2, 2),
        ("GridSample", 1, 0), ("RoiAlign", 2, 0), ("NegativeLogLikelihoodLoss", 1, 0), ("AffineGrid", 0, 0),
        ("Attention", 1, 0), ("RotaryEmbedding", 1, -1), ("STFT", 0, 2), ("DFT", 0, -1),
    ],
)  # fmt: skip
def test_another_size_breaks_the_rule(op: str, place: int, axis: int) -> None:
    broken = 0
    for single in singles(op):
        operand = single.call.operand(place)
        if not operand.shape:
            continue
        shape = list(operand.shape)
        shape[axis] += 7
        inputs = list(single.call.inputs)
        inputs[place] = operand._replace(shape=tuple(shape), value=None)
        assert not well_formed(single.call._replace(inputs=tuple(inputs)))
        assert not specs()[op].defined(single.call._replace(inputs=tuple(inputs)))
        broken += 1
    assert broken


def test_a_scale_that_is_not_positive_breaks_the_rule() -> None:
    scaled = [one.call for one in singles("Resize") if one.call.has(2) and one.call.operand(2).value is not None]
    assert scaled
    for call in scaled:
        x, roi, scales, *rest = call.inputs
        assert scales is not None
        assert scales.value is not None
        for wrong in (0.0, -1.0):
            changed = scales._replace(value=np.full_like(scales.value, wrong))
            assert not well_formed(call._replace(inputs=(x, roi, changed, *rest)))
