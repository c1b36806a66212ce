"""Targets of other packages: found through entry points, told apart, and harmless when they are broken."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from miscompile.base import plugins
from miscompile.base.errors import SpecError, UsageError
from miscompile.cli.main import program
from miscompile.targets import front_ends, registry
from miscompile.targets.known import Known, known, known_in
from miscompile.targets.pins import pins

ABOUT = """
from miscompile.targets.about import About
ABOUT = About(
    name="{name}", title="a plugin", kinds=("onnx",), levels=("off", "full"), adapter="{package}.adapter:A", script="",
    distributions=("numpy",), max_opset=20, max_ir_version=9, passes=("Fuse",), second_implementation=0,
)
"""
KNOWN = '[[rejection]]\nstatus = "unsupported"\npattern = "no kernel"\nreason = "no kernel"\n'
PINS = '[[environment]]\nrequires = ["numpy<2"]\n'

Install = Callable[..., None]


def forget() -> None:
    """Forget what was found: entry points are read once in a process."""
    for remembered in (plugins.added, registry.about, registry.target_names, registry.faces, registry.other_builds):
        remembered.cache_clear()
    registry.installed.cache_clear()
    known_in.cache_clear()


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install packages as pip would: a folder with modules, and metadata with entry points beside it."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def make(distribution: str, package: str, about: str | None = None, *, name: str = "acme") -> None:
        home, metadata = tmp_path / package, tmp_path / f"{distribution.replace('-', '_')}-1.0.dist-info"
        home.mkdir()
        metadata.mkdir()
        (home / "__init__.py").touch()
        (home / "about.py").write_text(ABOUT.format(name=name, package=package) if about is None else about)
        (home / "known.toml").write_text(KNOWN)
        (home / "environment.toml").write_text(PINS)
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(f"[miscompile.targets]\n{name} = {package}.about:ABOUT\n")
        forget()

    yield make
    monkeypatch.undo()
    forget()


def test_a_plugin_is_a_target_like_the_others(install: Install) -> None:
    before = registry.target_names()
    install("acme-compiler", "acme_one")
    assert registry.target_names() == tuple(sorted((*before, "acme")))
    assert registry.parse_target("acme").about.package == "acme_one"
    assert known("acme").rejection("Error", "no kernel for Foo") is not None
    assert pins(registry.about("acme").package, "1").requires == ("numpy<2",)
    assert "onnx-acme" in {front.name for front in front_ends.all_front_ends()}
    assert next(registry.second_implementations()) == "acme"
    assert not registry.broken_targets()


def test_two_packages_with_one_name_are_both_named(install: Install) -> None:
    install("acme-compiler", "acme_two")
    install("acme-rival", "acme_rival")
    with pytest.raises(UsageError, match=r"acme-compiler \(acme_two.*\) and acme-rival \(acme_rival.*uninstall one"):
        registry.parse_target("acme")
    assert set(registry.broken_targets()) == {"acme"}
    assert "acme" not in registry.target_names()


def test_a_name_of_ours_is_not_taken_over_in_silence(install: Install) -> None:
    install("acme-compiler", "acme_three", name="toy")
    with pytest.raises(UsageError, match=r"miscompile \(miscompile.targets.toy.*\) and acme-compiler"):
        registry.parse_target("toy")
    assert registry.parse_target("reference").about.name == "reference"


@pytest.mark.parametrize(
    ("package", "about", "why"),
    [
        ("acme_raises", "raise OSError('no licence\\nfound')", "OSError: no licence found"),
        ("acme_number", "ABOUT = 3", "acme_number.about:ABOUT is no About"),
        ("acme_empty", "", "AttributeError"),
        ("acme_misnamed", ABOUT.format(name="other", package="x"), "its About is called 'other'"),
    ],
    ids=["raises", "wrong type", "missing", "misnamed"],
)
def test_a_broken_plugin_is_an_error_only_when_it_is_asked_for(
    install: Install, package: str, about: str, why: str
) -> None:
    install("acme-compiler", package, about)
    assert registry.parse_target("toy").about.name == "toy"
    assert "acme" not in registry.target_names()
    with pytest.raises(UsageError, match=rf"'acme' of the package acme-compiler is broken: .*{why}") as caught:
        registry.parse_target("acme")
    assert "\n" not in str(caught.value)
    assert registry.broken_targets() == {"acme": str(caught.value)}
    listed, asked = (CliRunner().invoke(program, words) for words in (["targets"], ["fuzz", "acme"]))
    assert (listed.exit_code, asked.exit_code) == (0, 2)
    assert str(caught.value) in listed.stdout
    assert asked.stderr == f"miscompile: error: {caught.value}\n"
    with pytest.raises(SpecError, match=r"there is no target 'nothing'; there are: .*inductor"):
        registry.parse_target("nothing")


def test_a_missing_file_of_expectations_is_said(install: Install, tmp_path: Path) -> None:
    install("acme", "acme_pkg")
    (tmp_path / "acme_pkg" / "known.toml").unlink()
    with pytest.raises(SpecError, match=r"acme_pkg has no known\.toml; an empty file"):
        known("acme")
    (tmp_path / "acme_pkg" / "known.toml").touch()
    assert known("acme") == Known((), ())
