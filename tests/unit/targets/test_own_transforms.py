"""Forms that adapters present themselves: options, files with external data, scratch folders, and what scripts say."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto

from miscompile.base.errors import SpecError
from miscompile.base.specs import Spec, parse_spec, spec_of, stored_spec
from miscompile.core.case import Case
from miscompile.core.run import Build, Run
from miscompile.core.tensor import tensor
from miscompile.core.verdict import Evidence, FindingKind
from miscompile.graph.emit import emit, to_program
from miscompile.graph.read import load, read
from miscompile.targets.external import initializers, store
from miscompile.targets.inductor.transforms import TRANSFORMS as INDUCTOR
from miscompile.targets.inductor.transforms import Decomposed, Related
from miscompile.targets.onnxruntime.transforms import TRANSFORMS as ONNXRUNTIME
from miscompile.targets.onnxruntime.transforms import OrtExternal, OrtReload
from miscompile.targets.openvino.transforms import TRANSFORMS as OPENVINO
from miscompile.targets.presentations import own_transform
from miscompile.targets.registry import about, settled_transform, target_names
from miscompile.targets.scratch import scratch
from miscompile.targets.xla.transforms import TRANSFORMS as XLA
from miscompile.transforms.catalogue import alters
from miscompile.triage.script import write_script

OWN: Mapping[str, Mapping[str, type[Any]]] = {
    "onnxruntime": ONNXRUNTIME,
    "openvino": OPENVINO,
    "inductor": INDUCTOR,
    "xla": XLA,
}

MODEL = """<ir_version: 8, opset_import: ["" : 18]>
g (float[2,3] x, bool s) => (float[4,6] y, float[6] z)
<float[2,3] w = {1, 2, 3, 4, 5, 6}, int64[1] k = {6}, int8[3] odd = {1, 2, 3}, float[2] scales = {2, 2},
 float[1] bias = {0.5}, string[1] word = {"a"}, int32[2,2] table = {1, 2, 3, 4}> {
    a = Add(x, w)
    y = Resize(a, , scales)
    c = Add(a, bias)
    b = Reshape(c, k)
    z = If(s) <
        then_branch = t () => (float[6] p) <float[6] inner = {6, 5, 4, 3, 2, 1}> { p = Add(b, inner) },
        else_branch = e () => (float[6] q) { q = Neg(b) }
    >
}"""


def proto() -> onnx.ModelProto:
    model = onnx.parser.parse_model(MODEL)
    for value in initializers(model.graph):
        if value.data_type != TensorProto.STRING:
            value.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(value), value.name))  # raw
    return model


def outside(model: onnx.ModelProto) -> set[str]:
    return {value.name for value in initializers(model.graph) if value.data_location == TensorProto.EXTERNAL}


@pytest.mark.parametrize("shapes_too", [False, True])
@given(seed=st.integers(0, 2**31))
def test_external_data_says_the_same(seed: int, shapes_too: bool) -> None:
    model = proto()
    with scratch() as folder:
        store(model, str(folder / "model.onnx"), seed, shapes_too=shapes_too)
        assert emit(load(folder / "model.onnx")) == emit(read(proto()))
        onnx.checker.check_model(str(folder / "model.onnx"))


def test_what_shape_inference_reads_can_stay_inside() -> None:
    with scratch() as folder:
        path = str(folder / "model.onnx")
        model = proto()
        store(model, path, 0, shapes_too=True)
        assert outside(model) == {"w", "k", "odd", "scales", "bias", "table", "inner"}
        model = proto()
        store(model, path, 0, shapes_too=False)
        assert outside(model) == {"w", "odd", "bias", "table", "inner"}


def test_operands_of_functions_stay_inside() -> None:
    model = proto()
    model.graph.node.add(op_type="Twice", domain="own", input=["bias"], output=["unused"])
    with scratch() as folder:
        store(model, str(folder / "model.onnx"), 0, shapes_too=False)
    assert "bias" not in outside(model)


def test_the_seed_decides_where_weights_lie() -> None:
    places = set()
    for seed in (0, 1, 1, 2):
        model = proto()
        with scratch() as folder:
            store(model, str(folder / "model.onnx"), seed, shapes_too=True)
        places.add(tuple(entry.value for value in initializers(model.graph) for entry in value.external_data))
    assert len(places) == 3


def test_scratch_folders_are_empty_and_go_away(tmp_path: Path) -> None:
    for _ in range(2):
        with scratch(str(tmp_path)) as folder:
            assert not list(folder.iterdir())
            (folder / "file").write_text("text", "utf-8")
        assert not folder.exists()
    with pytest.raises(ValueError, match="a fault"), scratch(str(tmp_path)) as folder:
        raise ValueError("a fault")
    assert not folder.exists()


def test_scratch_folders_of_the_dead_are_removed_and_those_of_the_living_are_not(tmp_path: Path) -> None:
    with scratch(str(tmp_path)) as folder:
        base = folder.parent
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    dead, living, other = base / str(child.pid), base / str(os.getppid()), base / "notes"
    for place in (dead, living, other):
        place.mkdir()
        (place / "file").write_text("text", "utf-8")
    with scratch(str(tmp_path)):
        assert not dead.exists()
        assert (living / "file").exists()
        assert (other / "file").exists()


@given(st.integers(0, 9), st.sampled_from(["onnx", "ort"]))
def test_transforms_print_and_parse(seed: int, kind: Any) -> None:
    table = {**ONNXRUNTIME, **INDUCTOR}
    names = {made: name for name, made in table.items()}
    for transform in (OrtReload(seed, kind), OrtExternal(seed), Decomposed(seed, 0.25), Related(seed, 0.75)):
        assert own_transform(spec_of(names[type(transform)], transform), table) == transform


def test_transforms_of_others_are_not_applied_here() -> None:
    for kinds in OWN.values():
        for transform in (None, parse_spec("functions{seed=3}"), Spec("reloaded")):
            assert own_transform(transform, kinds) is None


@pytest.mark.parametrize(
    ("target", "form"),
    [
        ("onnxruntime", "reload{format=xml}"),
        ("onnxruntime", "external{depth=2}"),
        ("openvino", "reload{stage=later}"),
        ("inductor", "decomposed{share=2}"),
        ("inductor", "decomposed{share=much}"),
        ("inductor", "related{share=-0.1}"),
        ("inductor", "related{only=abs}"),
        ("xla", "reload{format=onnx}"),
    ],
)
def test_wrong_options_are_refused(target: str, form: str) -> None:
    with pytest.raises(SpecError):
        own_transform(parse_spec(form), OWN[target])


@pytest.mark.parametrize("target", target_names())
def test_transforms_of_every_target_are_settled_before_anything_is_built(target: str) -> None:
    for name in about(target).transforms:
        with pytest.raises(SpecError, match="has no option 'nonsense'"):
            settled_transform(target, Spec(name).with_options(nonsense="1"))
    other = parse_spec("functions{seed=3}")
    assert settled_transform(target, other) == other, "not the adapter's"


@pytest.mark.parametrize("target", OWN)
def test_a_target_names_its_transforms_and_their_variants(target: str) -> None:
    face = about(target)
    assert face.transforms == tuple(OWN[target])
    for name, specs in face.variants.items():
        assert all(isinstance(own_transform(spec, OWN[target]), OWN[target][name]) for spec in specs)


def test_a_target_says_what_its_transforms_are() -> None:
    assert {target: about(target).altering for target in target_names() if about(target).altering} == {
        "inductor": ("derivative",),
        "tvm": ("splice",),
        "xla": ("derivative",),
    }
    for target in target_names():
        assert {*about(target).altering, *about(target).function_transforms} <= set(about(target).transforms)
    assert alters(parse_spec("splice{library=lib}"))
    assert not any(map(alters, (None, parse_spec("relax"), parse_spec("functions{seed=3}"))))


SMALL = """<ir_version: 8, opset_import: ["" : 18]>
g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }"""


def script(target: str, faulty: Build, reference: Build | None) -> str:
    program = to_program(read(onnx.parser.parse_model(SMALL).SerializeToString()))
    case = Case(program, ((tensor(np.ones(2, np.float32)),),))
    held = None if reference is None else Run(case, target, reference)
    kind: FindingKind = "wrong" if held else "exception"
    rule = "exact" if held else "status"
    return write_script(case, Evidence(kind, rule, "in a line", Run(case, target, faulty), held, "y"))


SAID = {
    ("onnxruntime", "reload{seed=3}"): (
        'start_reloaded(payload, options, off or (), folder, "onnx")',
        "save_model_format",
    ),
    ("onnxruntime", "reload{format=ort, seed=3}"): ('off or (), folder, "ort")', "save_model_format"),
    ("onnxruntime", "external{seed=7}"): ("def store(", "path, 7, shapes_too=False)"),
    ("openvino", "reload{seed=3}"): (
        "core.import_model(compiled.export_model(), ",
        "(compile_reloaded if off is not None else compile_read)(",
    ),
    ("openvino", "reload{stage=read, seed=3}"): (
        "read_saved(core, payload, folder)",
        "ov.save_model(",
        "compress_to_fp16=False",
    ),
    ("openvino", "external{seed=7}"): ("def store(", "path, 7, shapes_too=True)"),
    ("inductor", "decomposed{seed=7}"): ("decomposing(level, 7, 0.5)", "decompositions=table"),
    ("inductor", "decomposed{share=0.9, seed=7}"): ("decomposing(level, 7, 0.9)",),
    ("inductor", "related{seed=7}"): ("relating(level, 7, 0.5)", "torch.abs torch.absolute", "def replace_call("),
    ("xla", "reload{seed=3}"): ("reloaded", "export.deserialize(made.serialize())"),
    ("inductor", "strided{seed=7}"): ("with_strides(one, 7)", "def in_layout("),
    ("inductor", "related{share=1.0}"): ("relating(level, 0, 1.0)", "def with_related("),
}


@pytest.mark.parametrize("level", ["off", "full"])
@pytest.mark.parametrize(("target", "form"), SAID)
def test_a_script_presents_what_the_build_presents(target: str, form: str, level: str) -> None:
    for reference in (Build("off"), Build("full"), None):
        text = script(target, Build(level, transform=stored_spec(form)), reference)
        compile(text, "script", "exec")
        for words in SAID[target, form]:
            assert words in text
        assert "off is not None" in text
        assert "def run(level, off=None):" in text
        assert "from miscompile" not in text


@pytest.mark.parametrize(("target", "form"), [(target, form) for target, forms in OWN.items() for form in forms])
def test_where_both_builds_see_the_form_the_script_presents_it_twice(target: str, form: str) -> None:
    text = script(target, Build("full", transform=stored_spec(form)), Build("off", transform=stored_spec(form)))
    compile(text, "script", "exec")
    assert "off is not None" not in text


@pytest.mark.parametrize("target", OWN)
@pytest.mark.parametrize("form", ["", "static"])
def test_a_script_of_another_form_has_nothing_of_that(target: str, form: str) -> None:
    text = script(target, Build("full", transform=stored_spec(form)), Build("off"))
    compile(text, "script", "exec")
    assert "off is not None" not in text
    words = ("def store(", "chosen_decompositions", "with_related", "import_model", "optimized_model", "deserialize")
    assert not any(word in text for word in words)
