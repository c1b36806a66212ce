"""The conformance kit catches each way in which a spec can be wrong, and passes a right one."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from miscompile.base.dtypes import FLOATS, NUMBERS, SIGNED
from miscompile.base.errors import RejectedDraft
from miscompile.graph.attributes import attributes
from miscompile.graph.model import TensorType
from miscompile.ops import conformance
from miscompile.ops.conformance import check_spec, evaluate
from miscompile.ops.draws import Draw, draw_call
from miscompile.ops.elementwise import of_facts, pair
from miscompile.ops.facts import Bounds, Exactness, Facts
from miscompile.ops.registry import admitted
from miscompile.ops.spec import Call, OpSpec, Site


def _sample_add(site: Site) -> Call:
    return Call("Add", pair(site))


def _sum(a: Facts, b: Facts) -> Bounds:
    return Bounds(a.lo + b.lo, a.hi + b.hi, a.integral and b.integral)


ADD = OpSpec("Add", NUMBERS, _sample_add, of_facts(_sum), Exactness.INTEGER, "planted")


def _unary(op: str, bounds: Bounds, exactness: Exactness, dtypes: tuple[str, ...] = FLOATS, since: int = 13) -> OpSpec:
    return OpSpec(
        op, dtypes, lambda site: Call(op, (site.operand(),)), lambda *_: (bounds,), exactness, "planted", since=since
    )


def test_a_sound_spec_passes() -> None:
    report = check_spec(ADD, samples=10)
    assert report.op == "Add"
    assert report.calls + report.rejected == 10 * len(NUMBERS)
    assert report.dtypes == NUMBERS
    assert not report.unchecked
    assert 0 < report.exact <= report.calls
    assert report == check_spec(ADD, samples=10)
    assert report != check_spec(ADD, samples=10, seed=1)


def test_attributes_are_reported_with_their_values() -> None:
    def sample(site: Site) -> Call:
        return Call("Elu", (site.operand(),), attributes({"alpha": site.rng.choice((None, 0.5, 2.0))}))

    spec = OpSpec("Elu", FLOATS, sample, lambda *_: (Bounds(-2, 800),), Exactness.TRANSCENDENTAL, "planted")
    assert check_spec(spec, samples=10).attributes == {"alpha": ("0.5", "2.0")}


WRONG = {
    "bounds": (dataclasses.replace(ADD, bounds=of_facts(lambda a, b: Bounds(a.lo, a.hi))), "claimed was"),
    "number of bounds": (dataclasses.replace(ADD, bounds=lambda *_: (Bounds(0, 1),) * 2), "2 bounds for 1 outputs"),
    "integral claim": (_unary("Sigmoid", Bounds(0, 1, integral=True), Exactness.TRANSCENDENTAL), "not integral"),
    "missing guard of a root": (_unary("Sqrt", Bounds(0, 100), Exactness.ROUNDS), "is not finite"),
    "exactness, rounding": (
        dataclasses.replace(
            _unary("Sqrt", Bounds(0, 100), Exactness.MOVES), sample=lambda s: Call("Sqrt", (s.operand(within=(0, 9)),))
        ),
        "claimed exact",
    ),
    "exactness, transcendental": (_unary("Tanh", Bounds(-1, 1), Exactness.MOVES), "claimed exact"),
    "missing guard of a logarithm": (_unary("Log", Bounds(-99, 99), Exactness.TRANSCENDENTAL), "is not finite"),
    "guard that its own sampler breaks": (dataclasses.replace(ADD, defined=lambda _: False), "the guard refuses"),
    "another operator": (dataclasses.replace(ADD, op="Sub"), "made a call of Add"),
    "another type": (
        dataclasses.replace(ADD, sample=lambda site: Call("Add", pair(site, dtypes=("float32", "float32")))),
        "has type float32",
    ),
    "mixed types": (
        dataclasses.replace(ADD, sample=lambda site: Call("Add", (site.operand(), site.operand("bool", shape=())))),
        "operator's rules|onnx refuses",
    ),
    "shapes that do not broadcast": (
        dataclasses.replace(
            ADD, sample=lambda site: Call("Add", (site.operand(shape=(2, 3)), site.operand(shape=(4, 3))))
        ),
        "breaks its operator's rules",
    ),
    "too many operands": (
        dataclasses.replace(ADD, sample=lambda site: Call("Add", tuple(site.operand(shape=(2,)) for _ in range(3)))),
        "onnx refuses|operator's rules",
    ),
    "too few operands": (
        dataclasses.replace(ADD, sample=lambda site: Call("Add", (site.operand(),))),
        "onnx refuses|operator's rules",
    ),
    "too many outputs": (
        dataclasses.replace(ADD, sample=lambda site: Call("Add", pair(site), outputs=2)),
        "operator's rules|for 2 outputs",
    ),
    "unknown attribute": (
        dataclasses.replace(ADD, sample=lambda site: Call("Add", pair(site), attributes({"axis": 1}))),
        "onnx refuses|operator's rules",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_spec_is_caught(name: str) -> None:
    spec, message = WRONG[name]
    with pytest.raises(AssertionError, match=message):
        check_spec(spec, samples=20)


def test_missing_guard_of_integer_division_is_caught() -> None:
    spec = OpSpec(
        "Div",
        SIGNED,
        lambda site: Call("Div", pair(site)),
        lambda *_: (Bounds(-128, 127, integral=True),),
        Exactness.INTEGER,
        "planted",
    )
    with pytest.raises(AssertionError, match=r"undefined behaviour \(divide by zero"):
        check_spec(spec)


def test_rounding_claimed_exact_on_integers_is_caught() -> None:
    spec = OpSpec(
        "Pow",
        ("float16",),
        lambda site: Call("Pow", (site.operand(), site.known(np.asarray(5.0), "float16"))),
        lambda *_: (Bounds(-1000, 1000, integral=True),),
        Exactness.INTEGER,
        "planted",
    )
    with pytest.raises(AssertionError, match="claimed"):
        check_spec(spec, samples=60)


def test_a_sampler_that_always_rejects_is_caught() -> None:
    def sample(_: Site) -> Call:
        raise RejectedDraft("never")

    with pytest.raises(AssertionError, match="float32: every one of 5 draws was rejected"):
        check_spec(dataclasses.replace(ADD, sample=sample), samples=5)


def test_a_sampler_that_rejects_too_much_is_caught() -> None:
    def sample(site: Site) -> Call:
        if site.rng.random() < 0.8:
            raise RejectedDraft("often")
        return _sample_add(site)

    with pytest.raises(AssertionError, match=r"the sampler rejected \d+ of \d+ draws"):
        check_spec(dataclasses.replace(ADD, sample=sample))


def test_a_spec_that_no_opset_admits_is_caught() -> None:
    with pytest.raises(AssertionError, match="none of the opsets"):
        check_spec(dataclasses.replace(ADD, since=20), opsets=(13,))
    with pytest.raises(AssertionError, match="none of the opsets"):
        check_spec(_unary("NoSuchOperator", Bounds(0, 1), Exactness.MOVES))


def test_admitted_types_follow_the_schema() -> None:
    assert "int8" not in admitted(ADD, 13)
    assert "int8" in admitted(ADD, 14)
    assert admitted(dataclasses.replace(ADD, since=14), 13) == ()
    generator = _unary("RandomUniform", Bounds(0, 1), Exactness.TRANSCENDENTAL, NUMBERS)
    assert admitted(dataclasses.replace(generator, main=~0), 13) == ("float32", "float16", "float64")


def test_a_failure_names_the_draw_that_replays_it() -> None:
    wrong, _ = WRONG["bounds"]
    with pytest.raises(AssertionError) as caught:
        check_spec(wrong, samples=20, seed=3)
    account = str(caught.value)
    assert account.startswith("Add (planted), float32, draw_call(spec, 'float32', ")
    recipe = account[account.index("draw_call(") : account.index("): ") + 1]
    replayed: Draw = eval(recipe, {"draw_call": draw_call, "spec": wrong})
    (result,) = evaluate(replayed)
    assert not (replayed.facts[0].lo <= result.min() and result.max() <= replayed.facts[0].hi)


def _reference(results: list[Any] | Exception) -> type:
    class Reference:
        def __init__(self, _: object) -> None:
            pass

        def run(self, *_: object) -> list[Any]:
            if isinstance(results, Exception):
                raise results
            return results

    return Reference


def test_calls_that_the_reference_cannot_run_are_counted_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conformance, "evaluator", _reference(NotImplementedError("no Add of (2, 3)")))
    report = check_spec(ADD, samples=4)
    assert report.unchecked == {"NotImplementedError: no Add of N": report.calls}
    assert report.exact == 0


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ([], "0 results for 1 outputs"),
        ([np.zeros((1,) * 7, np.float32)], "has shape"),
        ([np.zeros((2,), np.int8)], "is int8, inferred was float32"),
    ],
)
def test_results_unlike_inference_are_caught(results: list[Any], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conformance, "evaluator", _reference(results))
    with pytest.raises(AssertionError, match=message):
        check_spec(ADD, samples=1)


def test_a_draw_is_a_checked_model_with_its_values() -> None:
    draw = draw_call(ADD, "bfloat16", 18, seed=0, index=0)
    assert all(isinstance(kind, TensorType) for kind in draw.types)
    graph = draw.model().graph
    assert {x.name for x in graph.inputs} | set(graph.initializers) == {x.name for x in draw.call.inputs if x}
    (result,) = evaluate(draw)
    assert result.dtype.name == "bfloat16"
    assert result.shape == draw.types[0].shape
