"""Where, Identity, Dropout and the conversions keep what their specs claim."""

from contextlib import suppress

import pytest

from miscompile.base.dtypes import DTYPES, PLAIN
from miscompile.base.errors import RejectedDraft
from miscompile.graph.attributes import attributes
from miscompile.ops.conformance import OPSETS, check_spec
from miscompile.ops.draws import draw_call
from miscompile.ops.facts import Facts
from miscompile.ops.families.select import SPECS, convertible
from miscompile.ops.registry import admitted, specs
from miscompile.ops.spec import Call, Operand, OpSpec


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.op)
def test_spec_conforms(spec: OpSpec) -> None:
    report = check_spec(spec, samples=16)
    assert not report.unchecked
    assert report.dtypes == tuple(dtype for dtype in spec.dtypes if any(dtype in admitted(spec, o) for o in OPSETS))


@pytest.mark.slow  # all pairs; the contract is tested on a sample by default
def test_every_pair_of_types_is_converted() -> None:
    pairs = set()
    for dtype in PLAIN:
        for index in range(900):
            with suppress(RejectedDraft):  # a fraction does not become an integer of fewer than eight bits
                call = draw_call(specs()["Cast"], dtype, 25, seed=0, index=index).call
                pairs.add((dtype, call.integer("to")))
    assert pairs == {(source, DTYPES[target].code) for source in PLAIN for target in PLAIN}


@pytest.mark.parametrize(
    ("target", "lo", "hi"), [("int8", -129, 0), ("uint8", -0.5, 3), ("uint64", -3, 3), ("int32", 0, 2.0**31)]
)
def test_guard_refuses_floats_that_the_integer_cannot_hold(target: str, lo: float, hi: float) -> None:
    source = Operand("x", "float32", (2,), Facts(lo, hi))
    assert not specs()["Cast"].defined(Call("Cast", (source,), attributes({"to": DTYPES[target].code})))
    like = Operand("t", target, (), Facts(0, 1))
    assert not specs()["CastLike"].defined(Call("CastLike", (source, like)))


def test_any_float_converts_to_bool() -> None:
    source = Operand("x", "float32", (2,), Facts(-0.5, 1e6))
    assert specs()["Cast"].defined(Call("Cast", (source,), attributes({"to": DTYPES["bool"].code})))


def test_ranges_of_conversions() -> None:
    assert convertible("float32", "bool") is None
    assert convertible("int8", "int64") is None
    assert convertible("int64", "int8") == (-127, 127)
    assert convertible("int64", "int8", wrap=True) is None
    assert convertible("int64", "int32", wrap=True) == (-(2**30), 2**30)
    assert convertible("int64", "uint8") == (0, 255)
    assert convertible("float64", "float16") == (-1000, 1000)


def test_dropout_is_drawn_in_all_inference_forms() -> None:
    calls = [draw_call(specs()["Dropout"], "float32", 22, seed=0, index=index).call for index in range(60)]
    assert {(call.has(1), call.outputs) for call in calls} == {(a, b) for a in (True, False) for b in (1, 2)}
    assert not any(call.has(2) for call in calls)
