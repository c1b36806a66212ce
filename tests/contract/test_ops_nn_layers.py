"""Normalisation, softmax, losses, recurrent layers, attention and signals keep what their specs claim."""

import numpy as np
import pytest

from miscompile.base.errors import RejectedDraft
from miscompile.core.tensor import Array
from miscompile.graph.attributes import attributes
from miscompile.ops.conformance import check_spec
from miscompile.ops.draws import draw_call
from miscompile.ops.facts import Facts
from miscompile.ops.families import attention, normalization, recurrent, signal, softmax
from miscompile.ops.registry import specs
from miscompile.ops.spec import Call, Operand, OpSpec

OPSETS = tuple(range(13, 24))
SPECS = (*normalization.SPECS, *softmax.SPECS, *recurrent.SPECS, *attention.SPECS, *signal.SPECS)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.op)
def test_spec_conforms(spec: OpSpec) -> None:
    report = check_spec(spec, opsets=OPSETS, samples=22)
    assert report.dtypes == spec.dtypes


def calls(op: str, dtype: str, opset: int, count: int = 120) -> list[Call]:
    found = []
    for index in range(count):
        try:
            found.append(draw_call(specs()[op], dtype, opset, seed=2, index=index).call)
        except RejectedDraft:
            continue
    return found


def test_optional_operands_and_outputs_come_and_go() -> None:
    assert {call.has(2) for call in calls("LayerNormalization", "float32", 17)} == {True, False}
    assert {call.outputs for call in calls("LayerNormalization", "float32", 17)} == {1, 2, 3}
    layers = calls("LSTM", "float32", 14)
    for index in (3, 4, 5, 6, 7):
        assert {call.has(index) for call in layers} == {True, False}
    assert {call.outputs for call in layers} == {1, 2, 3}
    assert {call.text("direction", "none") for call in layers} == {"none", "forward", "reverse", "bidirectional"}
    heads = calls("Attention", "float32", 23)
    assert {call.operand(0).rank for call in heads} == {3, 4}
    assert {call.has(3) for call in heads} == {True, False}
    assert {call.outputs for call in heads} == {1, 3}


def test_types_of_batch_normalisation_mix_where_the_opset_lets_them() -> None:
    def mixes(opset: int) -> set[tuple[bool, bool]]:
        found = set()
        for call in calls("BatchNormalization", "float32", opset):
            scale, mean = call.operand(1).dtype, call.operand(3).dtype
            found.add((scale != "float32", mean != "float32"))
        return found

    assert mixes(13) == {(False, False)}
    assert mixes(14) == {(False, False), (False, True)}
    assert mixes(15) >= {(False, False), (False, True), (True, False)}


def of(dtype: str, shape: tuple[int, ...], lo: float, hi: float, value: Array | None = None) -> Operand:
    return Operand("x", dtype, shape, Facts(lo, hi), value)


def test_guards_of_normalisation() -> None:
    x, vector = of("float32", (2, 3, 4), -1, 1), of("float32", (3,), 0, 1)
    batch = (x, vector, vector, vector)
    assert not specs()["BatchNormalization"].defined(Call("BatchNormalization", (*batch, vector)))
    assert specs()["BatchNormalization"].defined(Call("BatchNormalization", (*batch, of("float32", (3,), 0.25, 1))))
    large = of("float32", (2, 3, 4), -1e3, 1e3)
    assert not specs()["InstanceNormalization"].defined(Call("InstanceNormalization", (large, vector, vector)))
    assert not specs()["LpNormalization"].defined(Call("LpNormalization", (x,)))
    flat = of("float32", (2, 2), 1, 1, np.ones((2, 2), np.float32))
    mean = Call("MeanVarianceNormalization", (flat,), attributes({"axes": (0,)}))
    assert not specs()["MeanVarianceNormalization"].defined(mean)


def test_guard_of_losses() -> None:
    scores, loss = of("float32", (2, 3), -1, 1), specs()["NegativeLogLikelihoodLoss"].defined
    inside, outside = of("int64", (2,), 0, 2), of("int64", (2,), 0, 3)
    assert loss(Call("NegativeLogLikelihoodLoss", (scores, inside)))
    assert not loss(Call("NegativeLogLikelihoodLoss", (scores, outside)))
    assert not loss(Call("NegativeLogLikelihoodLoss", (scores, inside), attributes({"ignore_index": 1})))
    ignored = of("int64", (2,), 1, 1, np.array([1, 1]))
    assert not loss(Call("NegativeLogLikelihoodLoss", (scores, ignored), attributes({"ignore_index": 1})))


def test_guards_of_lengths_masks_and_positions() -> None:
    x, w = of("float32", (3, 2, 1), -1, 1), of("float32", (1, 1, 1), -1, 1)
    for lengths, lawful in (([1, 3], True), ([0, 3], False), ([1, 4], False)):
        known = of("int32", (2,), min(lengths), max(lengths), np.array(lengths, np.int32))
        assert specs()["RNN"].defined(Call("RNN", (x, w, w, None, known))) is lawful
    q = of("float32", (1, 1, 2, 2), -1, 1)
    mask = of("bool", (2, 2), 0, 1, np.array([[True, False], [False, False]]))
    assert not specs()["Attention"].defined(Call("Attention", (q, q, q, mask)))
    cache, far = of("float32", (2, 1), -1, 1), of("int64", (1, 2), 2, 2, np.array([[2, 2]]))
    assert not specs()["RotaryEmbedding"].defined(Call("RotaryEmbedding", (q, cache, cache, far)))


def test_guards_of_signals() -> None:
    whole = of("float32", (1, 4, 2), -1, 1)
    assert not specs()["DFT"].defined(Call("DFT", (whole,), attributes({"onesided": 1})))
    size = of("int64", (), 1, 1, np.array(1))
    assert not specs()["HannWindow"].defined(Call("HannWindow", (size,)))
    step, length = of("int64", (), 1, 1, np.array(1)), of("int64", (), 5, 5, np.array(5))
    assert not specs()["STFT"].defined(Call("STFT", (whole, step, None, length), attributes({"onesided": 0})))
