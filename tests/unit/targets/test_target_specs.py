"""Target specs with versions, and what `environment.toml` says of them."""

import pytest

from miscompile.base.errors import SpecError, UsageError
from miscompile.targets import registry
from miscompile.targets.pins import Pins, parse_pins, pins
from miscompile.targets.registry import about, parse_target, target_names, versions, with_front_end, with_version


@pytest.mark.parametrize(
    ("text", "release", "version", "options"),
    [
        ("onnxruntime", "onnxruntime", None, {}),
        ("onnxruntime==1.20.1", "onnxruntime==1.20.1", "1.20.1", {}),
        (" onnxruntime == 1.20.1 ", "onnxruntime==1.20.1", "1.20.1", {}),
        ("onnxruntime==1.20.1.post1{via=torch}", "onnxruntime==1.20.1.post1", "1.20.1.post1", {}),
        ("torch==2.13.0+cpu", "torch==2.13.0+cpu", "2.13.0+cpu", {}),
        (" toy {bugs=a==b} ", "toy", None, {"bugs": "a==b"}),
    ],
)
def test_a_spec_is_taken_apart(text: str, release: str, version: str | None, options: dict[str, str]) -> None:
    spec = parse_target(text)
    assert (spec.text, spec.release, spec.version, spec.options) == (text, release, version, options)


def test_a_spec_with_a_version() -> None:
    spec = parse_target("onnxruntime==1.20.1")
    assert (spec.text, spec.about.name, spec.version) == ("onnxruntime==1.20.1", "onnxruntime", "1.20.1")
    assert parse_target("onnxruntime").version is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("onnxruntime==", "'' in 'onnxruntime==' is no version; write onnxruntime==1.2.3 or just onnxruntime"),
        ("onnxruntime==newest", "'newest' in 'onnxruntime==newest' is no version"),
        ("onnxruntime==../1.0", "is no version"),
        ("onnxruntime=1.20.1", "is not a spec"),
        ("onnxruntime>=1.20", "is not a spec"),
        ("onnxruntime==1.2==1.3", "is no version"),
        ("gcc==12", "there is no target 'gcc'"),
        ("onnxruntime==1.20.1{speed=9}", "has no option 'speed'"),
        ("toy==1.0", "a part of this tool and has no versions; write toy"),
    ],
)
def test_specs_that_cannot_be_meant(text: str, says: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_target(text)
    assert says in str(caught.value)


def test_the_version_of_a_spec_can_be_set() -> None:
    assert with_version("tvm{a=b}", "0.27.0.post1") == "tvm==0.27.0.post1{a=b}"
    assert with_version("tvm==0.25.0{a=b}", "0.27.0") == "tvm==0.27.0{a=b}"
    assert with_version("tvm==0.25.0", "0.27.0") == "tvm==0.27.0"
    assert with_version("tvm{a=b,c=d==e}", "0.27.0") == "tvm==0.27.0{a=b,c=d==e}", "options stay as they are written"


def test_the_front_end_of_a_spec_can_be_set() -> None:
    assert with_front_end("tvm", "torch") == "tvm{via=torch}"
    assert with_front_end(" tvm == 0.25.0 {a=b}", "torch") == "tvm==0.25.0{via=torch, a=b}"
    assert with_front_end("tvm{}", "torch") == "tvm{via=torch}"


def test_an_old_version_reads_old_models_only(monkeypatch: pytest.MonkeyPatch) -> None:
    newest, face = parse_target("onnxruntime==999").about, about("onnxruntime")
    assert (newest.max_opset, newest.max_ir_version) == (face.max_opset, face.max_ir_version)
    old = parse_target("onnxruntime==1.17.3").about
    assert (old.max_opset, old.max_ir_version) == (20, 9)
    monkeypatch.setattr(registry, "installed", lambda _: "1.17.3")
    assert parse_target("onnxruntime").about == old
    monkeypatch.setattr(registry, "installed", lambda _: "built by hand")
    assert parse_target("onnxruntime").about == face


def test_a_missing_compiler_is_named_with_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "installed", lambda name: None if name == "onnxruntime" else "1")
    with pytest.raises(UsageError) as caught:
        versions(about("onnxruntime"))
    assert "pip install" in str(caught.value)
    assert "`miscompile targets install onnxruntime`" in str(caught.value)


@pytest.mark.parametrize("target", target_names())
def test_every_environment_file_can_be_read(target: str) -> None:
    assert isinstance(pins(about(target).package, "1.0"), Pins)


def test_entries_that_match_apply_together() -> None:
    text = """
    [[environment]]
    versions = "<2"
    requires = ["numpy<2", "runtime=={version}"]
    python = "<3.13"
    max_opset = 20
    [[environment]]
    python = ">=3.11"
    max_opset = 21
    max_ir_version = 10
    """
    old, always = parse_pins(text, "toy")
    assert old.pins.requires == ("numpy<2", "runtime=={version}")
    assert (always.versions, always.pins) == ("", Pins((), ">=3.11", 21, 10))
    found = pins("miscompile.targets.onnxruntime", "1.16.3")
    assert found.requires == ("numpy<2",)
    assert (found.max_opset, found.max_ir_version) == (19, 9)
    assert set(found.python.split(",")) == {"<3.12", "<3.13"}
    assert pins("miscompile.targets.onnxruntime", "1.31.0") == Pins()


@pytest.mark.parametrize(
    "text",
    [
        "[[environment]",
        "[[environment]]\nrequired = []",
        "[[environment]]\nversions = 1",
        '[[environment]]\nversions = "~=1"',
        '[[environment]]\npython = "three"',
        '[[environment]]\nrequires = "numpy"',
        '[[environment]]\nmax_opset = "20"',
    ],
)
def test_a_malformed_file_is_named(text: str) -> None:
    with pytest.raises(SpecError, match=r"environment.toml of toy is malformed"):
        parse_pins(text, "toy")


def test_the_quick_targets_are_those_that_are_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    present = {"onnxruntime": "1.32.0", "tract": "0.23.9", "tinygrad": "0.14"}
    monkeypatch.setattr(registry, "installed", present.get)
    assert registry.quick_targets() == ("onnxruntime", "tract")
    del present["tract"]
    with pytest.raises(UsageError, match=r"miscompile\[litert,ncnn,tract\]"):
        registry.quick_targets()
