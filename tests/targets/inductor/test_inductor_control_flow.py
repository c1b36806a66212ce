"""Control flow on Inductor: generated programs, every axis and direction of Scan, shared memory, and a reproducer."""

import importlib.util
import itertools
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from inductor_calls import difference

from miscompile.base.rng import stream
from miscompile.core.case import Case
from miscompile.core.outcome import Outcome, Unsupported, Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Tensor, tensor
from miscompile.core.verdict import Evidence
from miscompile.execution.limits import Limits
from miscompile.execution.pool import LocalPool
from miscompile.graph.emit import to_program
from miscompile.graph.read import read
from miscompile.ops.support import Support
from miscompile.producers.control.forms import FEATURES, questions
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.strict import Strict
from miscompile.triage.script import write_script

pytestmark = [
    pytest.mark.compiler,
    pytest.mark.process,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
    pytest.mark.skipif(shutil.which("g++") is None, reason="there is no C++ compiler"),
]

SIMPLE = ("Add", "Mul", "Max", "Neg", "Identity", "Clip", "Cast", "Reshape", "Expand", "ReduceMax", "Less", "Greater",
          "Min", "Relu", "Gather", "Squeeze", "Floor", "Round", "Ceil", "Mod", "Sub", "Tanh", "Softmax")  # fmt: skip
OPTIONS = GeneratorOptions(
    control=0.6, nodes=4, spread=0.0, ops=(*SIMPLE, *FEATURES), dtypes=("float32", "int64", "int32", "bool"),
    opsets=(17, 21), quantised=0.0, containers=0.0, max_dim=4, integral=1.0, motifs=0.0,
)  # fmt: skip
PROGRAMS = 45
COMPILED = 9
"""Every so many programs are compiled as well, which takes a second or more each."""
REFUSALS = ("as a constant only", "constant number of turns only")
"""What variants of one graph meet, in which a constant became an input."""

HEAD = '<ir_version: 8, opset_import: ["" : 18]> '
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

SHARED = """g (bool c, float[2,3] x, float[2] s) => (float[6] y, float[2] last, float[3,2] rows)
    <int64[1] flat = {6}> {
    a = Neg(x)
    b = Reshape(a, flat)
    t = Transpose<perm = [1, 0]>(a)
    y = If (c) <
        then_branch = one () => (float[6] p) { m = Reshape(a, flat) p = Add(m, b) },
        else_branch = two () => (float[6] q) { q = Identity(b) }>
    last, rows = Scan <num_scan_inputs = 1,
        body = body (float[2] u, float[2] part) => (float[2] v, float[2] row) {
            w = ReduceMax<keepdims = 0>(t) n = ReduceMin<keepdims = 0>(b)
            o = Add(w, n) v = Add(u, o) row = Identity(part) }> (s, t) }"""
"""Bodies capture values and views of them, and give back what they were given: torch lets neither share memory."""


@pytest.fixture(scope="module")
def pools() -> Iterator[tuple[LocalPool, LocalPool]]:
    with LocalPool("inductor", limits=Limits(seconds=90)) as inductor, LocalPool("onnxruntime") as runtime:
        yield inductor, runtime


def case_of(text: str, *feed: Tensor) -> Case:
    return Case(to_program(read(onnx.parser.parse_model(HEAD + text).SerializeToString())), (feed,))


def generated() -> Iterator[Case]:
    producer = Strict(OPTIONS, Support(open=True))
    for index in range(PROGRAMS):
        case = producer.propose(stream(5, "inductor", index))
        if any(True for node in read(case.program.payload).graph.nodes for _ in node.subgraphs()):
            yield case


def faults(one: Outcome, other: Outcome) -> list[str]:
    """Say where two builds differ by more than rounding."""
    assert isinstance(one, Values), one
    assert isinstance(other, Values), other
    pairs = zip(itertools.chain(*one.results), itertools.chain(*other.results), strict=True)
    found = [difference(left, right.numbers()) for left, right in pairs if right is not None]
    return [text for text in found if text]


def test_generated_programs_agree_with_another_compiler_and_when_compiled(pools: tuple[LocalPool, LocalPool]) -> None:
    inductor, runtime = pools
    cases = list(generated())
    plain = inductor.run([Run(case, "inductor", Build("off")) for case in cases])
    others = runtime.run([Run(case, "onnxruntime", Build("off")) for case in cases])
    taken, compared = [], 0
    for case, eager, other in zip(cases, plain, others, strict=True):
        if isinstance(eager, Unsupported):
            assert any(reason in eager.message for reason in REFUSALS), eager
            continue
        taken.append((case, eager))
        if isinstance(other, Values):
            assert not faults(eager, other)
            compared += 1
    assert compared > PROGRAMS / 3
    chosen = taken[::COMPILED]
    for level in ("aot", "full"):
        for (_, eager), outcome in zip(
            chosen, inductor.run([Run(case, "inductor", Build(level)) for case, _ in chosen]), strict=True
        ):
            assert not faults(outcome, eager)


def test_every_form_that_is_asked_about_is_taken_and_right(pools: tuple[LocalPool, LocalPool]) -> None:
    asked = list(questions((21,)))
    found, wanted = (
        pool.run([Run(question.case, name, Build("off")) for question in asked])
        for pool, name in zip(pools, ("inductor", "onnxruntime"), strict=True)
    )
    for question, one, other in zip(asked, found, wanted, strict=True):
        if "int4" in question.key or "float8" in question.key:
            assert isinstance(one, Unsupported)
        else:
            assert not faults(one, other), question.key


@pytest.mark.parametrize("level", ["aot", "full"])
def test_every_form_of_float32_compiles(level: str, pools: tuple[LocalPool, LocalPool]) -> None:
    asked = [question for question in questions((21,)) if "moved" not in question.key]
    found = pools[0].run([Run(question.case, "inductor", Build(level)) for question in asked])
    wanted = pools[0].run([Run(question.case, "inductor", Build("off")) for question in asked])
    for question, one, other in zip(asked, found, wanted, strict=True):
        assert not faults(one, other), question.key


@pytest.mark.parametrize(("axis", "back"), list(itertools.product((0, 1, -1), (0, 1))))
def test_axes_and_directions_of_scan(axis: int, back: int, pools: tuple[LocalPool, LocalPool]) -> None:
    start, x = np.array([1, 2], np.float32), np.arange(6, dtype=np.float32).reshape((3, 2) if axis == 0 else (2, 3))
    parts = np.moveaxis(x, axis, 0)[:: -1 if back else 1]
    rows = start + np.cumsum(parts, 0)
    for out, turned in itertools.product((0, 1, -1), (0, 1)):
        text = f"""g (float[2] s, float[{"3,2" if axis == 0 else "2,3"}] x) => (float[2] y, float[{
            "3,2" if out == 0 else "2,3"
        }] rows) {{
            y, rows = Scan <num_scan_inputs = 1, scan_input_axes = [{axis}], scan_input_directions = [{back}],
                scan_output_axes = [{out}], scan_output_directions = [{turned}],
                body = b (float[2] t, float[2] part) => (float[2] u, float[2] row) {{
                    u = Add(t, part) row = Identity(u) }}> (s, x) }}"""
        case = case_of(text, tensor(start, "float32"), tensor(x, "float32"))
        (outcome,) = pools[0].run([Run(case, "inductor", Build("off"))])
        assert isinstance(outcome, Values), outcome
        last, found = outcome.results[0]
        assert last is not None
        assert found is not None
        assert last.array.tolist() == rows[-1].tolist()
        assert found.array.tolist() == np.moveaxis(rows[:: -1 if turned else 1], 0, out).tolist()


@pytest.mark.parametrize("level", ["off", "aot", "full"])
def test_bodies_may_capture_views_and_return_what_they_are_given(
    level: str, pools: tuple[LocalPool, LocalPool]
) -> None:
    x, start = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([1, 2], np.float32)
    for truth in (True, False):
        feed = Tensor("bool", np.array(truth)), tensor(x, "float32"), tensor(start, "float32")
        (outcome,) = pools[0].run([Run(case_of(SHARED, *feed), "inductor", Build(level))])
        assert isinstance(outcome, Values), outcome
        y, last, rows = (value.array.tolist() for value in outcome.results[0] if value is not None)
        assert y == (-x.ravel() * (2 if truth else 1)).tolist()
        assert last == (start + 3 * (0 - 5)).tolist()
        assert rows == (-x.T).tolist()


def with_turns(turns: int) -> Case:
    return case_of(LOOP, tensor(np.array([1, 0, -1]), "float32"), Tensor("int64", np.array(turns)))


@pytest.mark.parametrize(("turns", "taken"), [(0, 0), (1, 1), (2, 2), (9, 4)])
def test_a_loop_ends_when_its_count_or_its_body_says_so(
    turns: int, taken: int, pools: tuple[LocalPool, LocalPool]
) -> None:
    x = np.array([1, 0, -1], np.float32)
    y = x + taken * np.array([1, 2, 3], np.float32)
    for outcome in pools[0].run([Run(with_turns(turns), "inductor", Build(level)) for level in ("off", "aot", "full")]):
        assert isinstance(outcome, Values), outcome
        first, second = (value.array for value in outcome.results[0] if value is not None)
        assert first.tolist() == y.tolist()
        assert second.tolist() == (y - x if y.sum() > 9 else x).tolist()


def test_a_script_with_control_flow_runs_on_its_own(tmp_path: Path) -> None:
    case = with_turns(2)
    faulty, right = Run(case, "inductor", Build("full")), Run(case, "inductor", Build("off"))
    details = {"allowed": 1e-3, "difference": 1.0, "output": 1, "feed": 0}
    evidence = Evidence("wrong", "fixed", "a line", faulty, right, "z", details)
    path = tmp_path / "bug.py"
    path.write_text(write_script(case, evidence, versions={"torch": "1.99.0"}))
    text = path.read_text()
    assert "torch._higher_order_ops.while_loop(" in text
    assert "torch.cond(" in text
    assert "miscompile" not in text
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, text + done.stdout + done.stderr
    assert "the bug does not show" in done.stdout
