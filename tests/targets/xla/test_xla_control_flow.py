"""Control flow on XLA: generated programs, every axis and direction of Scan, what is refused, and a reproducer."""

import itertools
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from test_xla_passes import case_of

from miscompile.base.dtypes import is_float
from miscompile.base.rng import stream
from miscompile.core.case import Case
from miscompile.core.outcome import Outcome, Unsupported, Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Tensor
from miscompile.core.verdict import Evidence
from miscompile.execution.limits import Limits
from miscompile.execution.pool import LocalPool
from miscompile.graph.read import read
from miscompile.ops.support import Support
from miscompile.producers.control.forms import FEATURES, questions
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.strict import Strict
from miscompile.triage.script import write_script

pytestmark = [
    pytest.mark.compiler,
    pytest.mark.process,
    pytest.mark.skipif(find_spec("jax") is None, reason="JAX is not installed here"),
]

SIMPLE = ("Add", "Mul", "Max", "Neg", "Identity", "Clip", "Cast", "Reshape", "Expand", "ReduceMax", "Less", "Greater",
          "Min", "Relu", "Gather", "Squeeze", "Floor", "Round", "Ceil", "Mod", "Sub", "Tanh", "Softmax")  # fmt: skip
OPTIONS = GeneratorOptions(
    control=0.6, nodes=4, spread=0.0, ops=(*SIMPLE, *FEATURES), dtypes=("float32", "int64", "int32", "bool"),
    opsets=(17, 21), quantised=0.0, containers=0.0, max_dim=4, integral=0.8,
)  # fmt: skip
PROGRAMS = 24
REFUSALS = ("as a constant only", "constant number of turns only")
"""What variants of one graph meet, in which a constant became an input."""

LOOP = """g (float[3] x, int64 m) => (float[3] y, float[3] z)
    <float[3] k = {1, 2, 3}, float big = {9.0}, bool on = {1}> {
    y = Loop (m, on, x) <body = b (int64 i, bool o, float[3] s) => (bool go, float[3] t) {
        t = Add(s, k)
        top = ReduceMax<keepdims = 0>(t)
        go = Less(top, big) }>
    sum = ReduceSum<keepdims = 0>(y)
    large = Greater(sum, big)
    z = If (large) <
        then_branch = one () => (float[3] a) { a = Sub(y, x) },
        else_branch = two () => (float[3] c) { c = Identity(x) }> }"""


@pytest.fixture(scope="module")
def pools() -> Iterator[tuple[LocalPool, LocalPool]]:
    with LocalPool("xla", limits=Limits(seconds=90.0)) as xla, LocalPool("onnxruntime") as runtime:
        yield xla, runtime


def generated() -> Iterator[Case]:
    producer = Strict(OPTIONS, Support(open=True))
    for index in range(PROGRAMS):
        case = producer.propose(stream(5, "xla", index))
        if any(True for node in read(case.program.payload).graph.nodes for _ in node.subgraphs()):
            yield case


def agrees(found: Tensor | None, wanted: Tensor | None, *, exact: bool) -> bool:
    """Tell whether two builds agree: in every bit where that is due, else to within rounding."""
    assert found is not None
    assert wanted is not None
    if (found.dtype, found.shape) != (wanted.dtype, wanted.shape):
        return False
    left, right = found.numbers(), wanted.numbers()
    if exact or not is_float(found.dtype):
        return np.array_equal(left, right, equal_nan=is_float(found.dtype))
    return np.allclose(left, right, 1e-4, 1e-4 * np.abs(right).max(initial=0), equal_nan=True)


def all_agree(case: Case, one: Outcome, other: Outcome) -> bool:
    assert isinstance(one, Values), one
    assert isinstance(other, Values), other
    exact = [port.exact for port in case.program.outputs]
    return all(
        agrees(found, wanted, exact=due)
        for left, right in zip(one.results, other.results, strict=True)
        for found, wanted, due in zip(left, right, exact, strict=True)
    )


def test_generated_programs_agree_with_another_compiler_and_when_compiled(pools: tuple[LocalPool, LocalPool]) -> None:
    xla, runtime = pools
    cases = list(generated())
    plain, full = (xla.run([Run(case, "xla", Build(level)) for case in cases]) for level in ("off", "full"))
    others, compared = runtime.run([Run(case, "onnxruntime", Build("off")) for case in cases]), 0
    for case, eager, compiled, other in zip(cases, plain, full, others, strict=True):
        if isinstance(eager, Unsupported):
            assert any(reason in eager.message for reason in REFUSALS), eager
            assert isinstance(compiled, Unsupported)
            continue
        assert all_agree(case, compiled, eager)
        if isinstance(other, Values):
            assert all_agree(case, eager, other)
            compared += 1
    assert compared > PROGRAMS / 3


def test_every_form_that_is_asked_about_is_taken_and_right(pools: tuple[LocalPool, LocalPool]) -> None:
    xla, runtime = pools
    asked = list(questions((21,)))
    found = xla.run([Run(question.case, "xla", Build("off")) for question in asked])
    wanted = runtime.run([Run(question.case, "onnxruntime", Build("off")) for question in asked])
    for question, one, other in zip(asked, found, wanted, strict=True):
        if "int4" in question.key:
            assert isinstance(one, Unsupported)
        elif isinstance(other, Values):
            assert all_agree(question.case, one, other), question.key
        else:
            assert isinstance(one, Values), question.key


@pytest.mark.parametrize(("axis", "back"), list(itertools.product((0, 1, -1), (0, 1))))
def test_axes_and_directions_of_scan(axis: int, back: int, pools: tuple[LocalPool, LocalPool]) -> None:
    for out, turned in itertools.product((0, 1, -1), (0, 1)):
        text = f"""g (float[2] s, float[{"3,2" if axis == 0 else "2,3"}] x) => (float[2] y, float[{
            "3,2" if out == 0 else "2,3"
        }] rows) {{
            y, rows = Scan <num_scan_inputs = 1, scan_input_axes = [{axis}], scan_input_directions = [{back}],
                scan_output_axes = [{out}], scan_output_directions = [{turned}],
                body = b (float[2] t, float[2] part) => (float[2] u, float[2] row) {{
                    u = Add(t, part) row = Identity(u) }}> (s, x) }}"""
        case = case_of(text)
        (outcome,) = pools[0].run([Run(case, "xla", Build("off"))])
        assert isinstance(outcome, Values), outcome
        start, x = (value.array for value in case.feeds[0])
        parts = np.moveaxis(x, axis, 0)[:: -1 if back else 1]
        rows = start + np.cumsum(parts, 0)
        last, found = outcome.results[0]
        assert last is not None
        assert found is not None
        np.testing.assert_allclose(last.array, rows[-1], 1e-5)
        np.testing.assert_allclose(found.array, np.moveaxis(rows[:: -1 if turned else 1], 0, out), 1e-5)


def with_turns(turns: int) -> Case:
    case = case_of(LOOP)
    feed = Tensor("float32", np.array([1, 0, -1], np.float32)), Tensor("int64", np.array(turns))
    return Case(case.program, (feed,))


@pytest.mark.parametrize(("turns", "taken"), [(0, 0), (1, 1), (2, 2), (9, 4)])
def test_a_loop_ends_when_its_count_or_its_body_says_so(
    turns: int, taken: int, pools: tuple[LocalPool, LocalPool]
) -> None:
    x = np.array([1, 0, -1], np.float32)
    y = x + taken * np.array([1, 2, 3], np.float32)
    for outcome in pools[0].run([Run(with_turns(turns), "xla", Build(level)) for level in ("off", "full")]):
        assert isinstance(outcome, Values), outcome
        first, second = outcome.results[0]
        assert first is not None
        assert second is not None
        assert first.array.tolist() == y.tolist()
        assert second.array.tolist() == (y - x if y.sum() > 9 else x).tolist()


def test_a_script_with_control_flow_runs_on_its_own(tmp_path: Path) -> None:
    case = with_turns(2)
    faulty, right = Run(case, "xla", Build("full")), Run(case, "xla", Build("off"))
    details = {"allowed": 1e-3, "difference": 1.0, "output": 1, "feed": 0}
    evidence = Evidence("wrong", "fixed", "a line", faulty, right, "z", details)
    path = tmp_path / "bug.py"
    path.write_text(write_script(case, evidence, versions={"jax": "0.99.0"}))
    text = path.read_text()
    assert "lax.while_loop(" in text
    assert "lax.cond(" in text
    assert "miscompile" not in text
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, text + done.stdout + done.stderr
    assert "the bug does not show" in done.stdout
