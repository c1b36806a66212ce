"""Matrix products, convolutions and quantised operators keep what their specs claim."""

import numpy as np
import pytest

from miscompile.base.dtypes import DTYPES, SMALL_FLOATS
from miscompile.base.errors import RejectedDraft
from miscompile.core.tensor import Array, Tensor
from miscompile.graph.attributes import attributes
from miscompile.ops.conformance import check_spec, evaluate
from miscompile.ops.draws import Draw, draw_call
from miscompile.ops.facts import Facts
from miscompile.ops.families import convolution, linear, quantization
from miscompile.ops.registry import admitted, specs
from miscompile.ops.spec import Call, Operand, OpSpec

OPSETS = tuple(range(13, 24))
SPECS = (*linear.SPECS, *convolution.SPECS, *quantization.SPECS)


def draws(op: str, dtype: str, opset: int, count: int) -> list[Draw]:
    found = []
    for index in range(count):
        try:
            found.append(draw_call(specs()[op], dtype, opset, seed=1, index=index))
        except RejectedDraft:
            continue
    return found


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.op)
def test_spec_conforms(spec: OpSpec) -> None:
    report = check_spec(spec, opsets=OPSETS, samples=22)
    assert report.dtypes == tuple(dtype for dtype in spec.dtypes if any(dtype in admitted(spec, o) for o in OPSETS))


def test_matrices_multiply_as_vectors_and_in_batches() -> None:
    ranks = {(d.call.operand(0).rank, d.call.operand(1).rank) for d in draws("MatMul", "float32", 13, 300)}
    assert {(1, 1), (1, 2), (2, 1), (2, 2), (3, 3), (3, 2), (4, 4)} <= ranks


def test_gemm_has_every_form_of_c() -> None:
    forms = set()
    for draw in draws("Gemm", "float32", 13, 400):
        call, (rows, columns) = draw.call, draw.types[0].shape or ()
        if not call.has(2):
            forms.add("none")
        elif rows not in (0, 1) and columns not in (0, 1) and rows != columns:
            names = {rows: "M", columns: "N", 1: "1"}
            forms.add("".join(names[size] for size in call.operand(2).shape))
    assert forms == {"none", "", "1", "N", "1N", "M1", "MN", "11"}


@pytest.mark.parametrize(
    ("equation", "hidden", "expected"),
    [
        ("ij,jk", 0, (["ij", "jk"], "ik")),
        ("ii", 0, (["ii"], "")),
        ("...ij,...jk->...ik", 2, (["01ij", "01jk"], "01ik")),
        ("b...c->c...", 1, (["b0c"], "c0")),
        ("bA, aA", 0, (["bA", "aA"], "ab")),
        ("...bA", 1, (["0bA"], "0Ab")),
    ],
)
def test_subscripts_of_einsum(equation: str, hidden: int, expected: tuple[list[str], str]) -> None:
    assert linear.einsum_terms(equation, hidden) == expected


def test_einsum_agrees_with_numpy_on_shapes() -> None:
    seen = set()
    for draw in draws("Einsum", "float32", 13, 400):
        equation = draw.call.text("equation")
        values = [draw.values[operand.name].array for operand in draw.call.inputs if operand is not None]
        assert np.einsum(equation, *values).shape == draw.types[0].shape
        seen.add(equation)
    assert len(seen) >= 100
    assert {len(equation.split(",")) for equation in seen} == {1, 2, 3}
    assert any(equation.lower() != equation for equation in seen)
    assert any("->" not in equation and "..." in equation for equation in seen)


def transposed(draw: Draw) -> Array:
    """Compute a ConvTranspose by adding each filter element's share to the output, then cutting the pads off."""
    call = draw.call
    x, w = (draw.values[call.operand(index).name].numbers().astype(np.float64) for index in (0, 1))
    rank, group, wanted = x.ndim - 2, call.integer("group", 1), (draw.types[0].shape or ())[2:]
    strides, dilations = (call.integers(name, (1,) * rank) for name in ("strides", "dilations"))
    extra = call.integers("output_padding", (0,) * rank)
    sizes = [
        strides[a] * (x.shape[2 + a] - 1) + (w.shape[2 + a] - 1) * dilations[a] + 1 + extra[a] for a in range(rank)
    ]
    ins, outs = x.shape[1] // group, w.shape[1]
    y = np.zeros((x.shape[0], outs * group, *sizes))
    for g in range(group):
        for place in np.ndindex(*w.shape[2:]):
            share = np.einsum(
                "nc...,cm->nm...", x[:, g * ins : (g + 1) * ins], w[g * ins : (g + 1) * ins][(..., *place)]
            )
            steps = tuple(
                slice(
                    place[a] * dilations[a], place[a] * dilations[a] + strides[a] * (x.shape[2 + a] - 1) + 1, strides[a]
                )
                for a in range(rank)
            )
            y[(slice(None), slice(g * outs, (g + 1) * outs), *steps)] += share
    begins = call.integers("pads", (0,) * rank)[:rank]
    if "output_shape" in call.attributes or call.text("auto_pad").startswith("SAME"):
        totals = [size - int(want or 0) for size, want in zip(sizes, wanted, strict=True)]
        begins = tuple(t // 2 if call.text("auto_pad") == "SAME_UPPER" else t - t // 2 for t in totals)
    cut = tuple(slice(begin, begin + int(want or 0)) for begin, want in zip(begins, wanted, strict=True))
    y = y[(slice(None), slice(None), *cut)]
    return y + draw.values[call.operand(2).name].numbers().reshape(-1, *(1,) * rank) if call.has(2) else y


def test_transposed_convolutions_stay_in_their_bounds() -> None:
    found = draws("ConvTranspose", "float32", 18, 80)
    for draw in found:
        y, facts = transposed(draw), draw.facts[0]
        assert y.shape == draw.types[0].shape
        assert not y.size or (facts.lo <= y.min() and y.max() <= facts.hi)
    keys = {name for draw in found for name in draw.call.attributes}
    assert {"output_padding", "output_shape", "auto_pad", "pads", "strides", "dilations", "group"} <= keys


def test_quantising_by_powers_of_two_rounds_half_to_even() -> None:
    checked = 0
    for draw in [d for dtype in ("float32", "float16") for d in draws("QuantizeLinear", dtype, 22, 80)]:
        call = draw.call
        assert not draw.facts[0].exact, "what is quantised is never exact"
        if draw.types[0].dtype in SMALL_FLOATS:
            continue
        if not _powers_of_two(call, 1) or (call.operand(1).rank and call.operand(1).rank == call.operand(0).rank):
            continue
        x, scale = (draw.values[call.operand(index).name].numbers().astype(np.float64) for index in (0, 1))
        zero = draw.values[call.operand(2).name].numbers().astype(np.float64) if call.has(2) else np.zeros(scale.shape)
        if scale.ndim:
            wide = [1] * x.ndim
            wide[call.integer("axis", 1)] = -1
            scale, zero = scale.reshape(wide), zero.reshape(wide)
        info = DTYPES[draw.types[0].dtype]
        expected = np.clip(np.rint(x / scale) + zero, info.low, info.high)
        assert np.array_equal(evaluate(draw)[0], expected)
        checked += 1
    assert checked > 20


def test_dequantising_is_exact_for_scales_that_are_powers_of_two_only() -> None:
    claims = {(_powers_of_two(d.call, 1), d.facts[0].exact) for d in draws("DequantizeLinear", "uint8", 13, 60)}
    assert claims == {(True, True), (False, False)}


def test_quantised_products_are_never_exact() -> None:
    assert not any(draw.facts[0].exact for draw in draws("QLinearMatMul", "uint8", 13, 30))


def _powers_of_two(call: Call, index: int) -> bool:
    scale = call.operand(index)
    assert scale.value is not None
    return bool((np.log2(Tensor(scale.dtype, scale.value).numbers().astype(np.float64)) % 1 == 0).all())


def operand(dtype: str, shape: tuple[int, ...], lo: float, hi: float, value: Array | None = None) -> Operand:
    return Operand("x", dtype, shape, Facts(lo, hi), value)


def test_guards_refuse_undefined_calls() -> None:
    x, scale = operand("float32", (2, 3), -1, 1), operand("float32", (), 0, 1, np.array(0, np.float32))
    assert not specs()["QuantizeLinear"].defined(Call("QuantizeLinear", (x, scale)))
    assert not specs()["DynamicQuantizeLinear"].defined(Call("DynamicQuantizeLinear", (x,), outputs=3))
    image, filters = operand("float32", (1, 1, 2, 2), -1, 1), operand("float32", (1, 1, 3, 1), -1, 1)
    assert not specs()["Conv"].defined(Call("Conv", (image, filters)))
    assert specs()["Conv"].defined(Call("Conv", (image, filters), attributes({"pads": (1, 0, 0, 0)})))
    assert not specs()["ConvTranspose"].defined(
        Call("ConvTranspose", (image, filters), attributes({"strides": (4, 2), "auto_pad": "SAME_UPPER"}))
    )
