"""Forms that ONNX Runtime's adapter presents: models saved and loaded again, and models with external data."""

import contextlib
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest

from miscompile.base.errors import ModelError, RejectedDraft
from miscompile.base.rng import stream
from miscompile.base.specs import parse_spec, stored_spec
from miscompile.core.case import Case
from miscompile.core.outcome import Outcome, Rejected, Unsupported, Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import tensor
from miscompile.core.verdict import Evidence
from miscompile.execution.pool import LocalPool
from miscompile.graph.emit import to_program
from miscompile.graph.read import read
from miscompile.ops.support import Support
from miscompile.producers.dynamic.producer import DynamicProducer
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.strict import Strict
from miscompile.targets.known import known
from miscompile.targets.onnxruntime import adapter
from miscompile.targets.onnxruntime.adapter import OnnxRuntime
from miscompile.triage.confirm import run_script
from miscompile.triage.script import write_script

pytestmark = [pytest.mark.compiler, pytest.mark.process]

FORMS = ("reload", "reload{format=ort}", "external{seed=1}")

FAULTS = re.compile(
    "External data path for model loaded from bytes escapes"  # a pass reads initialisers without the model's folder
    "|must be in single static assignment"  # two bodies get casts of the same name; a saved model may not have that
    "|Graph output .* does not exist in the graph"  # an output that became a constant is saved without it
)
"""What it says of valid programs that it spoils itself."""

OPTIONS = GeneratorOptions(
    nodes=6,
    spread=0.3,
    control=0.08,
    motifs=0.3,
    quantised=0.25,
    containers=0.1,
    variants=1,
    opsets=tuple(range(13, 23)),
    max_elements=400,
)

FUSING = """<ir_version: 8, opset_import: ["" : 18]>
g (float[2,3] x) => (float[2,4] y) <float[3,4] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, float[4] b = {1, 2, 3, 4}> {
    m = MatMul(x, w)
    y = Add(m, b)
}"""


def fusing() -> Case:
    program = to_program(read(onnx.parser.parse_model(FUSING).SerializeToString()))
    return Case(program, ((tensor(np.arange(6, dtype=np.float32).reshape(2, 3)),),))


def drawn(count: int) -> Iterator[Case]:
    strict = Strict(OPTIONS, Support(open=True))
    dynamic = DynamicProducer(GeneratorOptions(nodes=5, quantised=0.2, variants=1), Support(open=True))
    for number in range(count):
        with contextlib.suppress(RejectedDraft, ModelError):
            yield (dynamic if number % 5 == 0 else strict).propose(stream(11, "forms", number))


@pytest.fixture(scope="module")
def pool() -> Iterator[LocalPool]:
    with LocalPool("onnxruntime") as opened:
        yield opened


def run(pool: LocalPool, item: Case, *builds: Build) -> list[Outcome]:
    return pool.run([Run(item, "onnxruntime", build) for build in builds])


def same(one: Outcome, other: Outcome) -> bool:
    return isinstance(one, Values) and isinstance(other, Values) and all(
        (value is None and twin is None) or (value is not None and twin is not None and value.same(twin))
        for values, twins in zip(one.results, other.results, strict=True)
        for value, twin in zip(values, twins, strict=True)
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("level", ["off", "full"])
def test_every_form_keeps_every_bit(level: str, pool: LocalPool) -> None:
    seen = Counter[str]()
    for item in drawn(120):
        plain, again, *formed = run(
            pool, item, Build(level), Build(level), *(Build(level, transform=stored_spec(form)) for form in FORMS)
        )
        if not same(plain, again):
            continue
        for form, outcome in zip(FORMS, formed, strict=True):
            if isinstance(outcome, Values):
                assert same(plain, outcome), (item.recipe, form)
                seen[form] += 1
            else:
                lawful = known("onnxruntime").rejection(type(outcome).__name__, getattr(outcome, "message", ""))
                assert lawful or FAULTS.search(getattr(outcome, "message", "")), (item.recipe, form, outcome)
    assert all(seen[form] > 40 for form in FORMS), seen


@pytest.mark.parametrize(
    ("level", "found"), [("off", ["MatMul", "Add"]), ("full", ["Gemm"])], ids=["as it is", "optimised"]
)
@pytest.mark.parametrize("kind", ["onnx", "ort"])
def test_what_is_loaded_is_what_the_level_has_optimised(
    kind: str, level: str, found: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapter, "scratch", lambda: contextlib.nullcontext(tmp_path))
    item = fusing()
    built = OnnxRuntime().build(item.program, Build(level, transform=parse_spec(f"reload{{format={kind}}}")))
    (value,) = built.run(item.feeds[0])
    assert value is not None
    assert value.array.shape == (2, 4)
    data = (tmp_path / f"model.{kind}").read_bytes()
    if kind == "onnx":
        assert [node.op_type for node in onnx.load_model_from_string(data).graph.node] == found
    else:
        assert data[4:8] == b"ORTM"  # the identifier of the format's schema
        assert all(name.encode() in data for name in found)


def test_passes_that_are_off_stay_off_before_saving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter, "scratch", lambda: contextlib.nullcontext(tmp_path))
    build = Build("full", frozenset({"MatMulAddFusion"}), transform=parse_spec("reload"))
    OnnxRuntime().build(fusing().program, build)
    model = onnx.load(tmp_path / "model.onnx")
    assert "MatMul" in {node.op_type for node in model.graph.node}


def test_weights_lie_beside_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter, "scratch", lambda: contextlib.nullcontext(tmp_path))
    OnnxRuntime().build(fusing().program, Build("full", transform=parse_spec("external{seed=3}")))
    model = onnx.load(tmp_path / "model.onnx", load_external_data=False)
    assert all(value.data_location == onnx.TensorProto.EXTERNAL for value in model.graph.initializer)
    assert (tmp_path / "model.onnx.data").stat().st_size >= 4 * (12 + 4)


def test_what_the_ort_format_lacks_is_known(pool: LocalPool) -> None:
    text = """<ir_version: 10, opset_import: ["" : 21]> g (float[2] x) => (float[2] y, bool z) {
        o = Optional(x)  z = OptionalHasElement(o)  y = OptionalGetElement(o) }"""
    program = to_program(read(onnx.parser.parse_model(text).SerializeToString()))
    item = Case(program, ((tensor(np.ones(2, np.float32)),),))
    plain, kept, formed = run(
        pool, item, *(Build("off", transform=stored_spec(form)) for form in ("", "reload", "reload{format=ort}"))
    )
    assert same(plain, kept)
    assert isinstance(formed, Rejected | Unsupported), formed
    entry = known("onnxruntime").rejection("InvalidArgument", formed.message)
    assert entry is not None
    assert "ORT format" in entry.reason


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("level", ["off", "full"])
def test_a_script_does_the_same_in_a_process_of_its_own(form: str, level: str, tmp_path: Path) -> None:
    item = fusing()
    faulty, held = (
        Run(item, "onnxruntime", Build(level, transform=stored_spec(form))),
        Run(item, "onnxruntime", Build("off")),
    )
    path = tmp_path / "repro.py"
    path.write_text(write_script(item, Evidence("wrong", "exact", "in a line", faulty, held, "y")), "utf-8")
    done = run_script(path)
    assert done.code == 0, done
    assert "the bug does not show" in done.stdout
