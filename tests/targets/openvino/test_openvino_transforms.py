"""Forms that OpenVINO's adapter presents: models and compiled models saved and loaded again, and external data."""

import contextlib
import importlib.util
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest

from miscompile.base.errors import ModelError, RejectedDraft
from miscompile.base.rng import stream
from miscompile.base.specs import stored_spec
from miscompile.core.case import Case
from miscompile.core.outcome import Outcome, Values
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
from miscompile.triage.confirm import run_script
from miscompile.triage.script import write_script

pytestmark = [
    pytest.mark.compiler,
    pytest.mark.process,
    pytest.mark.skipif(importlib.util.find_spec("openvino") is None, reason="openvino is not installed"),
]

FORMS = ("reload", "reload{stage=read}", "external{seed=1}")

FAULTS = re.compile(
    "Cannot create NullNode layer"  # what stands for an operand that is left out is saved, and cannot be loaded
    "|Non-existent connection in (then|else)-branch"  # in a model from a file, which is read from memory without fault
)
"""What it says of valid programs that it spoils itself."""

RECURRENT = (b"LSTM", b"GRU", b"RNN")
"""OpenVINO 2026.4.1 computes other values of these for a batch of two or more after it imported a compiled model."""

OPTIONS = GeneratorOptions(
    nodes=5, spread=0.2, control=0.05, motifs=0.3, quantised=0.2, variants=1, opsets=tuple(range(13, 22)),
    max_elements=400,
)  # fmt: skip

TEXT = """<ir_version: 8, opset_import: ["" : 18]>
g (float[2,3] x) => (float[2,4] y) <float[3,4] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, int64[2] s = {4, 2}> {
    m = MatMul(x, w)
    r = Reshape(m, s)
    y = Transpose<perm = [1, 0]>(r)
}"""


def small() -> Case:
    program = to_program(read(onnx.parser.parse_model(TEXT).SerializeToString()))
    return Case(program, ((tensor(np.arange(6, dtype=np.float32).reshape(2, 3)),),))


def drawn(count: int) -> Iterator[Case]:
    strict = Strict(OPTIONS, Support(open=True))
    dynamic = DynamicProducer(GeneratorOptions(nodes=5, quantised=0.2, variants=1), Support(open=True))
    for number in range(count):
        with contextlib.suppress(RejectedDraft, ModelError):
            yield (dynamic if number % 5 == 0 else strict).propose(stream(11, "forms", number))


@pytest.fixture(scope="module")
def pool() -> Iterator[LocalPool]:
    with LocalPool("openvino") as opened:
        yield opened


def run(pool: LocalPool, item: Case, *builds: Build) -> list[Outcome]:
    return pool.run([Run(item, "openvino", build) for build in builds])


def same(one: Outcome, other: Outcome) -> bool:
    return isinstance(one, Values) and isinstance(other, Values) and all(
        value is not None and twin is not None and value.same(twin)
        for values, twins in zip(one.results, other.results, strict=True)
        for value, twin in zip(values, twins, strict=True)
    )  # fmt: skip


@pytest.mark.parametrize("level", ["off", "full"])
def test_every_form_keeps_every_bit(level: str, pool: LocalPool) -> None:
    seen = Counter[str]()
    for item in drawn(40):
        plain, again, *formed = run(
            pool, item, Build(level), Build(level), *(Build(level, transform=stored_spec(form)) for form in FORMS)
        )
        if not same(plain, again):
            continue
        for form, outcome in zip(FORMS, formed, strict=True):
            if isinstance(outcome, Values):
                spoiled = form == "reload" and any(name in item.program.payload for name in RECURRENT)
                assert spoiled or same(plain, outcome), (item.recipe, form)
                seen[form] += 1
            else:
                assert FAULTS.search(getattr(outcome, "message", "")), (item.recipe, form, outcome)
    assert all(seen[form] > 10 for form in FORMS), seen


def test_files_are_what_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from miscompile.targets.openvino import adapter

    monkeypatch.setattr(adapter, "scratch", lambda: contextlib.nullcontext(tmp_path))
    target, item = adapter.OpenVino(), small()
    (want,) = target.build(item.program, Build()).run(item.feeds[0])
    assert want is not None
    for form in ("reload{stage=read}", "external{seed=4}"):
        (got,) = target.build(item.program, Build(transform=stored_spec(form))).run(item.feeds[0])
        assert got is not None
        assert got.same(want)
    model = onnx.load(tmp_path / "model.onnx", load_external_data=False)
    assert all(value.data_location == onnx.TensorProto.EXTERNAL for value in model.graph.initializer)
    assert "<net " in (tmp_path / "model.xml").read_text("utf-8")
    assert np.float32(12).tobytes() in (tmp_path / "model.bin").read_bytes()  # float32 stays float32


def test_a_compiled_model_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    from miscompile.targets.openvino import adapter

    target, item, imported = adapter.OpenVino(), small(), []
    original = target._core

    class Watched:
        def __getattr__(self, name: str) -> object:
            return getattr(original, name)

        def import_model(self, blob: object, *words: object) -> object:
            imported.append(words[0])
            return original.import_model(blob, *words)

    monkeypatch.setattr(target, "_core", Watched())
    (want,), (got,) = (
        target.build(item.program, Build(transform=stored_spec(form))).run(item.feeds[0]) for form in ("", "reload")
    )
    assert want is not None
    assert got is not None
    assert got.same(want)
    assert imported == ["CPU"]


@pytest.mark.parametrize("form", FORMS)
def test_a_script_does_the_same_in_a_process_of_its_own(form: str, tmp_path: Path) -> None:
    item = small()
    faulty, held = (
        Run(item, "openvino", Build("full", transform=stored_spec(form))),
        Run(item, "openvino", Build("full")),
    )
    path = tmp_path / "repro.py"
    path.write_text(write_script(item, Evidence("wrong", "exact", "in a line", faulty, held, "y")), "utf-8")
    done = run_script(path)
    assert done.code == 0, done
    assert "the bug does not show" in done.stdout
