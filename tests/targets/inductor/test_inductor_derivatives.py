"""Derivatives that Inductor compiles: those of torch call by call, in every mode, with noise, and in scripts."""

import importlib.util
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest

from miscompile.base.specs import Spec
from miscompile.core.case import Case
from miscompile.core.examination import conclude
from miscompile.core.outcome import Outcome, Unsupported, Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Tensor, tensor
from miscompile.core.verdict import Evidence, Holds, Inconclusive, Violated
from miscompile.execution.limits import Limits
from miscompile.execution.pool import LocalPool
from miscompile.graph.emit import to_program
from miscompile.graph.read import read
from miscompile.oracles.montecarlo import numbered
from miscompile.oracles.optimisation import Optimisation
from miscompile.targets.derivatives import result_ports
from miscompile.targets.directions import direction
from miscompile.transforms.runner import TransformingRunner
from miscompile.triage.confirm import run_script
from miscompile.triage.script import write_script

pytestmark = [
    pytest.mark.compiler,
    pytest.mark.process,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
    pytest.mark.skipif(shutil.which("g++") is None, reason="there is no C++ compiler"),
]

MODES = ("training", "reverse", "forward", "adjoint")

SMOOTH = """<ir_version: 8, opset_import: ["" : 17]>
g (double[2,3] x, double[3] w) => (double[2,3] y, double[2] z, int64[2] k) {
    a = Mul(x, w)
    b = Tanh(a)
    y = Softmax<axis = 1>(b)
    z = ReduceMax<keepdims = 0, axes = [1]>(a)
    k = ArgMax<axis = 1, keepdims = 0>(a)
}"""

CORNER = """<ir_version: 8, opset_import: ["" : 17]>
g (float[4] x, float[4] w) => (float[4] y) { a = Mul(x, w) b = Relu(a) y = Add(b, x) }"""

SATURATED = """<ir_version: 8, opset_import: ["" : 17]>
g (float[4] x, float[4] w) => (float[4] y) { a = Mul(x, w) y = Tanh(a) }"""

HALVES = """<ir_version: 8, opset_import: ["" : 17]>
g (float[2,3] x) => (float[2,3] z) { y = Cast<to = 10>(x) z = Cast<to = 1>(y) }"""
POOLED = """<ir_version: 8, opset_import: ["" : 17]>
g (float[1,1,6] x) => (float[1,1,3] y) { y = MaxPool<kernel_shape = [2], strides = [2]>(x) }"""
MASKED = """<ir_version: 8, opset_import: ["" : 17]>
g (float[2] x, bool[2] c) => (float[2] y) { s = Sqrt(x) y = Where(c, s, x) }"""

INTEGERS = """<ir_version: 8, opset_import: ["" : 17]>
g (int32[3] x) => (int32[3] y) { y = Add(x, x) }"""


def case_of(text: str, *feed: Tensor) -> Case:
    program = to_program(read(onnx.parser.parse_model(text).SerializeToString()))
    numbers = np.random.default_rng(1)
    shapes = [tuple(size for size in port.shape or () if isinstance(size, int)) for port in program.inputs]
    uniform = (numbers.uniform(-2, 2, shape) for shape in shapes)
    drawn = feed or tuple(tensor(one, port.dtype) for one, port in zip(uniform, program.inputs, strict=True))
    return Case(program, (drawn,))


def floats(*numbers: float) -> Tensor:
    return tensor(np.asarray(numbers, np.float32))


def derivative(mode: str, **more: str) -> Spec:
    return Spec("derivative").with_options(mode=mode, seed="3", **more)


@pytest.fixture(scope="module")
def pool() -> Iterator[LocalPool]:
    with LocalPool("inductor", limits=Limits(seconds=120)) as opened:
        yield opened


def run(pool: LocalPool, item: Case, mode: str, *levels: str) -> list[Outcome]:
    return pool.run([Run(item, "inductor", Build(level, transform=derivative(mode))) for level in levels])


def rows(outcome: Outcome) -> list[np.ndarray[tuple[int, ...], np.dtype[np.float64]]]:
    assert isinstance(outcome, Values), outcome
    return [np.asarray(one.array, np.float64) for one in outcome.results[0] if one is not None]


@pytest.mark.parametrize("level", ["off", "full"])
def test_gradients_are_the_adjoint_of_tangents(pool: LocalPool, level: str) -> None:
    item = case_of(SMOOTH)
    forward, reverse, training, adjoint = (
        rows(run(pool, item, mode, level)[0])[3:] for mode in ("forward", "reverse", "training", "adjoint")
    )
    ends = [direction(one.shape, 3, place) for place, one in enumerate(forward)]
    starts = [direction(value.array.shape, 3, place) for place, value in enumerate(item.feeds[0])]
    one = sum((tangent * end).sum() for tangent, end in zip(forward, ends, strict=True))
    other = sum((gradient * start).sum() for gradient, start in zip(reverse, starts, strict=True))
    assert one == pytest.approx(other)
    assert adjoint == [pytest.approx(one)]
    assert all(np.allclose(trained, pulled) for trained, pulled in zip(training, reverse, strict=True))


def test_tangents_are_those_of_differences(pool: LocalPool) -> None:
    item, step = case_of(SMOOTH), 1e-6
    starts = [direction(value.array.shape, 3, place) for place, value in enumerate(item.feeds[0])]
    sides = []
    for sign in (1, -1):
        moved = tuple(
            Tensor(value.dtype, value.array + sign * step * start)
            for value, start in zip(item.feeds[0], starts, strict=True)
        )
        sides.append(rows(pool.run([Run(Case(item.program, (moved,)), "inductor", Build("off"))])[0]))
    found = rows(run(pool, item, "forward", "off")[0])
    for place in (0, 1):
        assert np.allclose(found[3 + place], (sides[0][place] - sides[1][place]) / (2 * step), atol=1e-7)


@pytest.mark.parametrize("text", [SMOOTH, HALVES])
@pytest.mark.parametrize("mode", MODES)
def test_outputs_are_those_that_are_declared_and_builds_agree(pool: LocalPool, mode: str, text: str) -> None:
    item = case_of(text)
    runs = tuple(Run(item, "inductor", Build(level, transform=derivative(mode))) for level in ("off", "full"))
    outcomes = pool.run(runs)
    ports = result_ports(item.program, derivative(mode))
    for outcome in outcomes:
        assert isinstance(outcome, Values)
        found = outcome.results[0]
        assert [(one.dtype, one.array.shape) for one in found if one] == [(port.dtype, port.shape) for port in ports]
    assert isinstance(conclude(runs, outcomes, Optimisation("inductor"), pool).verdict, Holds)


@pytest.mark.parametrize("text", [SMOOTH, POOLED])
@pytest.mark.parametrize("mode", MODES)
def test_another_derivative_is_a_violation(pool: LocalPool, mode: str, text: str) -> None:
    item = case_of(text)
    runs = tuple(Run(item, "inductor", Build(level, transform=derivative(mode))) for level in ("off", "off"))
    plain, other = pool.run(runs)
    assert isinstance(other, Values)
    row = list(other.results[0])
    value = row[-1]
    assert value is not None
    row[-1] = Tensor(value.dtype, np.asarray(value.array * 1.001, value.array.dtype))
    moved = Values((tuple(row), *other.results[1:]), other.observations)
    verdict = conclude(runs, [plain, moved], Optimisation("inductor"), pool).verdict
    assert isinstance(verdict, Violated), verdict
    assert verdict.evidence.output == result_ports(item.program, derivative(mode))[-1].name


def test_an_infinite_derivative_of_what_is_not_selected_is_not_judged(pool: LocalPool) -> None:
    item = case_of(MASKED, floats(0, 4), Tensor("bool", np.asarray([False, True])))
    runs = tuple(Run(item, "inductor", Build(level, transform=derivative("adjoint"))) for level in ("off", "full"))
    outcomes = pool.run(runs)
    assert np.isfinite(rows(outcomes[0])[-1])
    assert isinstance(conclude(runs, outcomes, Optimisation("inductor"), pool).verdict, Inconclusive)


@pytest.mark.parametrize("rewriting", ["constness", "wrap"])
def test_equivalent_programs_have_the_same_derivatives(pool: LocalPool, rewriting: str) -> None:
    item = case_of(SMOOTH)
    plain = derivative("training")
    other = plain.with_options(rewriting=rewriting)
    builds = Build("off", transform=plain), Build("full", transform=other)
    runs = tuple(Run(item, "inductor", build) for build in builds)
    opened = TransformingRunner(pool)
    verdict = conclude(runs, opened.run(runs), Optimisation("inductor"), opened).verdict
    assert isinstance(verdict, Holds | Inconclusive), verdict
    assert rewriting == "wrap" or isinstance(verdict, Holds)


@pytest.mark.parametrize(("output", "held"), [(2, True), (0, False)])
def test_another_gradient_at_a_corner_is_no_finding(pool: LocalPool, output: int, held: bool) -> None:
    item = case_of(CORNER, floats(1, 1, 1, 1), floats(0, 0, 0, 0))
    runs = tuple(Run(item, "inductor", Build(level, transform=derivative("training"))) for level in ("off", "full"))
    plain, other = pool.run(runs)
    assert isinstance(other, Values)
    row = list(other.results[0])
    value = row[output]
    assert value is not None
    row[output] = Tensor(value.dtype, value.array + np.float32(0.1))
    moved = Values((tuple(row), *other.results[1:]), other.observations)
    verdict = conclude(runs, [plain, moved], Optimisation("inductor"), pool).verdict
    assert isinstance(verdict, Holds if held else Violated), verdict


@pytest.mark.parametrize("mode", ["training", "reverse", "forward"])
def test_noise_shows_what_a_rounded_result_does_to_a_derivative(pool: LocalPool, mode: str) -> None:
    """1 - tanh(8)**2 is 4.5e-7, of which rounding of tanh(8) in float32 leaves no digit."""
    item = numbered(case_of(SATURATED, floats(2, 2, 2, 2), floats(4, 4, 4, 4)), 1)
    (outcome,) = pool.run([Run(item, "inductor", Build("off", transform=derivative(mode, noise="yes")))])
    assert isinstance(outcome, Values)
    found = np.asarray([[float(one.array.max()) for one in row[1:] if one] for row in outcome.results])
    assert np.abs(found - found[0]).max() > 5e-7
    assert len({len(row) for row in outcome.results}) == 1


def test_a_program_of_integers_has_nothing_to_differentiate(pool: LocalPool) -> None:
    assert all(isinstance(one, Unsupported) for one in run(pool, case_of(INTEGERS), "reverse", "off", "full"))


@pytest.mark.parametrize("mode", MODES)
def test_a_script_computes_the_same(pool: LocalPool, mode: str, tmp_path: Path) -> None:
    item = case_of(SMOOTH)
    faulty, held = (Run(item, "inductor", Build(level, transform=derivative(mode))) for level in ("full", "off"))
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
