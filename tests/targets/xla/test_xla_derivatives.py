"""Derivatives that XLA compiles: right by differences, alike at both levels, and computed by scripts as well."""

import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from test_xla_passes import RECURRENT, case_of

from miscompile.base.specs import Spec
from miscompile.core.case import Case
from miscompile.core.examination import conclude
from miscompile.core.outcome import Outcome, Rejected, Unsupported, Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Tensor
from miscompile.core.verdict import Evidence, Holds, Inconclusive, Violated
from miscompile.execution.pool import LocalPool
from miscompile.oracles.optimisation import Optimisation
from miscompile.targets.derivatives import REWRITINGS, result_ports
from miscompile.targets.directions import direction
from miscompile.transforms.runner import TransformingRunner
from miscompile.triage.confirm import run_script
from miscompile.triage.script import write_script

pytestmark = [
    pytest.mark.compiler,
    pytest.mark.process,
    pytest.mark.skipif(find_spec("jax") is None, reason="JAX is not installed here"),
]

MODES = ("reverse", "forward", "adjoint")

SMOOTH = """g (double[2,3] x, double[3] w) => (double[2,3] y, double[2] z, int64[2] k) {
    a = Mul(x, w)
    b = Sigmoid(a)
    y = Softmax<axis = 1>(b)
    z = ReduceMax<keepdims = 0, axes = [1]>(a)
    k = ArgMax<axis = 1, keepdims = 0>(a)
}"""

CORNERS = """g (float[4] x, float[4] w) => (float[4] y, float[4] z, float[4] r) <float[4] zero = {0, 0, 0, 0}> {
    a = Mul(x, zero)
    y = Relu(a)
    z = Max(a, y)
    q = Abs(a)
    r = Mul(q, w)
}"""

CORNER = "g (float[4] x, float[4] w) => (float[4] y) { a = Mul(x, w) b = Relu(a) y = Add(b, x) }"

HALVES = "g (float[2,3] x) => (float[2,3] z) { y = Cast<to = 10>(x) z = Cast<to = 1>(y) }"
SPREAD = "g (float[1,3] x) => (float[64,3] y) <int64[2] sizes = {64, 3}> { y = Expand(x, sizes) }"
TURNED = """g (float[2,3] x) => (float[3,2] y, float[6] z) <int64[1] sizes = {6}> {
    y = Transpose<perm = [1, 0]>(x)
    z = Reshape(x, sizes)
}"""
POOLED = "g (float[1,1,6] x) => (float[1,1,3] y) { y = MaxPool<kernel_shape = [2], strides = [2]>(x) }"
MASKED = "g (float[2] x, bool[2] c) => (float[2] y) { s = Sqrt(x) y = Where(c, s, x) }"

INTEGERS = "g (int32[3] x) => (int32[3] y) { y = Add(x, x) }"


def derivative(mode: str) -> Spec:
    return Spec("derivative").with_options(mode=mode, seed="3")


@pytest.fixture(scope="module")
def pool() -> Iterator[LocalPool]:
    with LocalPool("xla") as opened:
        yield opened


def run(pool: LocalPool, item: Case, mode: str, *levels: str) -> list[Outcome]:
    return pool.run([Run(item, "xla", Build(level, transform=derivative(mode))) for level in levels])


def rows(outcome: Outcome) -> list[np.ndarray[tuple[int, ...], np.dtype[np.float64]]]:
    assert isinstance(outcome, Values), outcome
    return [np.asarray(one.array, np.float64) for one in outcome.results[0] if one is not None]


@pytest.mark.parametrize("level", ["off", "full"])
def test_tangents_are_those_of_differences(pool: LocalPool, level: str) -> None:
    item = case_of(SMOOTH)
    (feed,) = item.feeds[:1]
    step = 1e-6
    starts = [direction(value.array.shape, 3, place) for place, value in enumerate(feed)]
    sides = []
    for sign in (1, -1):
        moved = tuple(
            Tensor(value.dtype, value.array + sign * step * start) for value, start in zip(feed, starts, strict=True)
        )
        sides.append(rows(pool.run([Run(Case(item.program, (moved,)), "xla", Build("off"))])[0]))
    found = rows(run(pool, Case(item.program, (feed,)), "forward", level)[0])
    for place in (0, 1):
        difference = (sides[0][place] - sides[1][place]) / (2 * step)
        assert np.allclose(found[3 + place], difference, atol=1e-7)


@pytest.mark.parametrize("level", ["off", "full"])
def test_gradients_are_the_adjoint_of_tangents(pool: LocalPool, level: str) -> None:
    item = case_of(SMOOTH)
    forward, reverse = (rows(run(pool, item, mode, level)[0]) for mode in ("forward", "reverse"))
    ends = [direction(one.shape, 3, place) for place, one in enumerate(forward[3:])]
    starts = [direction(value.array.shape, 3, place) for place, value in enumerate(item.feeds[0])]
    one = sum((tangent * end).sum() for tangent, end in zip(forward[3:], ends, strict=True))
    other = sum((gradient * start).sum() for gradient, start in zip(reverse[3:], starts, strict=True))
    assert one == pytest.approx(other)
    (product,) = rows(run(pool, item, "adjoint", level)[0])[3:]
    assert product == pytest.approx(one)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("text", [RECURRENT])
def test_outputs_are_those_that_are_declared(pool: LocalPool, mode: str, text: str) -> None:
    item = case_of(text)
    (outcome,) = run(pool, item, mode, "full")
    assert isinstance(outcome, Values)
    ports = result_ports(item.program, derivative(mode))
    for found in outcome.results:
        assert [(one.dtype, one.array.shape) for one in found if one] == [(port.dtype, port.shape) for port in ports]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("text", [CORNERS, RECURRENT, HALVES, SPREAD, TURNED, POOLED])
def test_sound_derivatives_are_no_finding(pool: LocalPool, mode: str, text: str) -> None:
    item = case_of(text)
    runs = tuple(Run(item, "xla", Build(level, transform=derivative(mode))) for level in ("off", "full"))
    assert isinstance(conclude(runs, pool.run(runs), Optimisation("xla"), pool).verdict, Holds)


def test_an_infinite_derivative_of_what_is_not_selected_is_not_judged(pool: LocalPool) -> None:
    feed = (Tensor("float32", np.asarray([0, 4], np.float32)), Tensor("bool", np.asarray([False, True])))
    item = Case(case_of(MASKED).program, (feed,))
    runs = tuple(Run(item, "xla", Build(level, transform=derivative("adjoint"))) for level in ("off", "full"))
    outcomes = pool.run(runs)
    assert np.isfinite(rows(outcomes[0])[-1])
    assert np.isnan(rows(outcomes[1])[-1])
    assert isinstance(conclude(runs, outcomes, Optimisation("xla"), pool).verdict, Inconclusive)


@pytest.mark.parametrize("text", [SMOOTH, POOLED, SPREAD])
@pytest.mark.parametrize("mode", MODES)
def test_another_derivative_is_a_violation(pool: LocalPool, mode: str, text: str) -> None:
    item = case_of(text)
    runs = tuple(Run(item, "xla", Build(level, transform=derivative(mode))) for level in ("off", "full"))
    plain, other = pool.run(runs)
    assert isinstance(other, Values)
    row = list(other.results[0])
    value = row[-1]
    assert value is not None
    row[-1] = Tensor(value.dtype, np.asarray(value.array * 1.001, value.array.dtype))
    moved = Values((tuple(row), *other.results[1:]), other.observations)
    verdict = conclude(runs, [plain, moved], Optimisation("xla"), pool).verdict
    assert isinstance(verdict, Violated), verdict
    assert verdict.evidence.output == result_ports(item.program, derivative(mode))[-1].name


@pytest.mark.parametrize(("output", "held"), [(2, True), (0, False)])
def test_another_gradient_at_a_corner_is_no_finding(pool: LocalPool, output: int, held: bool) -> None:
    item = case_of(CORNER)
    ones = Tensor("float32", np.ones(4, np.float32))
    item = Case(item.program, ((ones, Tensor("float32", np.zeros(4, np.float32))),))
    runs = tuple(Run(item, "xla", Build(level, transform=derivative("reverse"))) for level in ("off", "full"))
    plain, other = pool.run(runs)
    assert isinstance(other, Values)
    row = list(other.results[0])
    value = row[output]
    assert value is not None
    row[output] = Tensor(value.dtype, value.array + np.float32(0.1))
    moved = Values((tuple(row), *other.results[1:]), other.observations)
    verdict = conclude(runs, [plain, moved], Optimisation("xla"), pool).verdict
    assert isinstance(verdict, Holds if held else Violated), verdict


@pytest.mark.parametrize("of", REWRITINGS)
def test_equivalent_programs_have_the_same_derivatives(of: str) -> None:
    item = case_of(CORNERS)
    plain = derivative("reverse")
    builds = (Build("off", transform=plain), Build("full", transform=plain.with_options(rewriting=of)))
    runs = tuple(Run(item, "xla", build) for build in builds)
    with TransformingRunner(LocalPool("xla")) as opened:
        outcomes = opened.run(runs)
        verdict = conclude(runs, outcomes, Optimisation("xla"), opened).verdict
    if isinstance(outcomes[1], Rejected | Unsupported):  # JAX has no reverse mode for a Loop
        assert of == "wrap"
        assert isinstance(verdict, Inconclusive)
        return
    assert isinstance(verdict, Holds), verdict
    assert [len(one.results[0]) for one in outcomes if isinstance(one, Values)] == [5, 5]


@pytest.mark.parametrize("of", ["constness", "duplicate"])
def test_a_script_rewrites_the_program_first(of: str, tmp_path: Path) -> None:
    item = case_of(CORNERS)
    plain = derivative("reverse")
    faulty = Run(item, "xla", Build("full", transform=plain.with_options(rewriting=of)))
    held = Run(item, "xla", Build("off", transform=plain))
    details = {"allowed": 1e-3, "difference": 1.0, "output": 0, "feed": 0}
    path = tmp_path / "repro.py"
    path.write_text(write_script(item, Evidence("wrong", "fixed", "a line", faulty, held, "y", details)), "utf-8")
    text = path.read_text("utf-8")
    assert "The same computation in another form" in text
    done = run_script(path)
    assert done.code == 0, (done, text)
    assert "the bug does not show" in done.stdout


def test_a_program_of_integers_has_nothing_to_differentiate(pool: LocalPool) -> None:
    assert all(isinstance(one, Unsupported) for one in run(pool, case_of(INTEGERS), "reverse", "off", "full"))


@pytest.mark.parametrize("mode", MODES)
def test_a_script_computes_the_same(pool: LocalPool, mode: str, tmp_path: Path) -> None:
    item = case_of(SMOOTH)
    faulty, held = (Run(item, "xla", Build(level, transform=derivative(mode))) for level in ("full", "off"))
    evidence = Evidence(
        "wrong", "fixed", "a line", faulty, held, "gradient of x",
        {"allowed": 1e-9, "difference": 1.0, "output": 3, "feed": 0},
    )  # fmt: skip
    path = tmp_path / "repro.py"
    printed = "print([np.asarray(one).tolist() for one in run('full')[0]])"
    path.write_text(f"{write_script(item, evidence)}\n{printed}\n", "utf-8")
    done = run_script(path)
    assert done.code == 0, (done, path.read_text("utf-8"))
    *_, said, last = done.stdout.strip().splitlines()
    assert said == "the bug does not show"
    expected = rows(run(pool, item, mode, "full")[0])
    assert len(expected) > 3
    for got, want in zip(json.loads(last), expected, strict=True):
        assert np.allclose(got, want, atol=1e-12)
