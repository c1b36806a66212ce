"""The forms that Inductor's adapter presents: programs of other decompositions, and of related operators."""

import contextlib
import importlib.util
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from miscompile.base.errors import ModelError, RejectedDraft
from miscompile.base.rng import stream
from miscompile.base.specs import parse_spec, stored_spec
from miscompile.core.case import Case
from miscompile.core.outcome import Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import tensor
from miscompile.core.verdict import Evidence, Needs, Verdict, Violated
from miscompile.execution.limits import Limits
from miscompile.execution.pool import LocalPool
from miscompile.graph.emit import to_program
from miscompile.graph.read import read
from miscompile.ops.support import Support
from miscompile.oracles.judge import judge_pair
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.strict import Strict
from miscompile.targets.inductor.about import ABOUT
from miscompile.triage.confirm import run_script
from miscompile.triage.script import write_script

pytestmark = [
    pytest.mark.compiler,
    pytest.mark.process,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
    pytest.mark.skipif(shutil.which("g++") is None, reason="there is no C++ compiler"),
]

OPS = (
    "Add", "Mul", "Sub", "Div", "Erf", "Gelu", "Softmax", "LogSoftmax", "LayerNormalization", "Clip", "HardSwish",
    "LeakyRelu", "Elu", "MatMul", "Gemm", "ReduceSum", "ReduceMean", "Softplus", "Where", "Equal", "Transpose",
    "Concat", "Slice", "Sigmoid", "Tanh", "Mod", "Floor", "Round", "Trilu", "CumSum", "BatchNormalization", "Sqrt",
    "Abs", "Neg", "Max", "Reshape",
)  # fmt: skip
OPTIONS = GeneratorOptions(
    nodes=5, spread=0.3, motifs=0.3, variants=1, opsets=tuple(range(13, 22)), max_elements=200, ops=OPS,
    dtypes=("float32", "int32", "int64", "bool"),
)  # fmt: skip

TEXT = """<ir_version: 10, opset_import: ["" : 20]>
g (float[3,4] x, float[4,5] w, float[5] b) => (float[3,5] y, float[3,5] z) {
    m = Gemm(x, w, b)
    g = Gelu(m)
    y = Softmax(g)
    z = LogSoftmax(m)
}"""


def small() -> Case:
    program = to_program(read(onnx.parser.parse_model(TEXT).SerializeToString()))
    numbers = np.random.default_rng(0)
    feed = (np.asarray(numbers.standard_normal(port.shape), np.float32) for port in program.inputs)  # type: ignore[arg-type]
    return Case(program, (tuple(map(tensor, feed)),))


def drawn(count: int) -> Iterator[Case]:
    producer = Strict(OPTIONS, Support(open=True))
    for number in range(count):
        with contextlib.suppress(RejectedDraft, ModelError):
            yield producer.propose(stream(11, "forms", number))


@pytest.fixture(scope="module")
def pool() -> Iterator[LocalPool]:
    with LocalPool("inductor", limits=Limits(seconds=60)) as opened:
        yield opened


def judged(pool: LocalPool, item: Case, build: Build) -> Verdict | None:
    """Hold a build against the plain eager one, as a campaign does; None where there is nothing to hold it against."""
    runs = [Run(item, "inductor", Build("off")), Run(item, "inductor", build)]
    outcomes = pool.run(runs)
    if not isinstance(outcomes[0], Values):
        return None
    verdict = judge_pair(runs, outcomes, "strict", ABOUT.narrowed)
    if isinstance(verdict, Needs):
        verdict = judge_pair([*runs, *verdict.runs], [*outcomes, *pool.run(verdict.runs)], "strict", ABOUT.narrowed)
    return verdict


@pytest.mark.parametrize("form", ["decomposed", "related", "strided"])
@pytest.mark.parametrize("level", ["off", "full"])
def test_any_form_gives_the_same_program(level: str, form: str, pool: LocalPool) -> None:
    seen = Counter[str]()
    for number, item in enumerate(drawn(24)):
        verdict = judged(pool, item, Build(level, transform=parse_spec(f"{form}{{seed={number}}}")))
        seen["none" if verdict is None else type(verdict).__name__] += 1
        assert not isinstance(verdict, Violated), (item.recipe, verdict.evidence.message)
    assert seen["Holds"] > 12, seen


def test_the_table_depends_on_seed_and_share_alone() -> None:
    pytest.importorskip("torch")
    from torch._inductor.decomposition import select_decomp_table

    from miscompile.targets.inductor.decompositions import chosen_decompositions

    whole: dict[Any, Any] = dict(select_decomp_table())
    assert chosen_decompositions(3, 0.0) == whole
    assert chosen_decompositions(3, 0.5) == chosen_decompositions(3, 0.5)
    half, other, least = (chosen_decompositions(seed, share) for seed, share in ((3, 0.5), (4, 0.5), (3, 1.0)))
    assert half != other
    assert len(least) < len(half) < len(whole)
    assert half.items() <= whole.items()
    assert least.items() <= half.items()
    kept = {str(name) for name in least}
    assert {"aten.arange.start_step", "aten.t.default", "aten._native_batch_norm_legit.default"} <= kept
    assert not {"aten.gelu.default", "aten._softmax.default", "aten.addmm.default"} & kept


def script(form: str, level: str) -> str:
    item, details = small(), {"allowed": 1e-6, "difference": 1e-3}
    faulty, held = Run(item, "inductor", Build(level, transform=stored_spec(form))), Run(item, "inductor", Build("off"))
    return write_script(item, Evidence("wrong", "monte-carlo", "in a line", faulty, held, "y", details))


@pytest.mark.parametrize("form", ["decomposed{seed=5}", "related{share=1.0}"])
@pytest.mark.parametrize("level", ["off", "aot", "full"])
def test_a_script_does_the_same_in_a_process_of_its_own(level: str, form: str, tmp_path: Path) -> None:
    path = tmp_path / "repro.py"
    path.write_text(script(form, level), "utf-8")
    done = run_script(path, seconds=120)
    assert done.code == 0, done
    assert "the bug does not show" in done.stdout


@pytest.mark.parametrize("level", ["off", "full"])
def test_a_script_calls_related_operators(level: str, tmp_path: Path) -> None:
    text = script("related{share=1.0}", level)
    true, untrue = "torch.softmax torch.special.softmax Tensor.softmax", "torch.softmax torch.log_softmax"
    assert true in text
    path = tmp_path / "repro.py"
    path.write_text(text.replace(true, untrue), "utf-8")
    done = run_script(path, seconds=120)
    assert done.code == 1, done
    assert "BUG" in done.stdout
