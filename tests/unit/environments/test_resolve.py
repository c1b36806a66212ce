"""From a spec to its environment: who is asked, what is made, and who must consent."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from miscompile.base.errors import UsageError
from miscompile.core.events import ProgressListener
from miscompile.environments import cache, pip, resolve
from miscompile.environments.cache import Environment
from miscompile.environments.recipe import EnvironmentRecipe
from miscompile.environments.resolve import environment_of, prepare, python_of, versions_of
from miscompile.execution.zygote_client import Origin
from miscompile.targets import registry

OWN: Mapping[str, str] = {"onnxruntime": "1.31.1", "numpy": "2.4.6", "onnx": "1.23.2"}


@pytest.fixture(autouse=True)
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """An empty cache; new environments are records without packages, and their specs are noted."""
    names: list[str] = []

    def make(recipe: EnvironmentRecipe, on_progress: ProgressListener) -> Environment:
        names.append(recipe.spec)
        path = cache.cache_folder() / recipe.name
        (path / "bin").mkdir(parents=True)
        (path / "bin" / "python").symlink_to("/bin/sh")
        packages = {"onnxruntime": recipe.version, "NumPy": "1.26.4"}
        one = Environment(recipe.name, recipe.target, recipe.version, "3.11.7", path, recipe.requirements, packages)
        cache.save(one)
        on_progress(f"made {recipe.spec}")
        return one

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(resolve, "make", make)
    monkeypatch.setattr(pip, "releases", lambda *_: ["1.30.0", "1.31.1", "1.32.0"])
    here(monkeypatch, OWN)
    return names


def here(monkeypatch: pytest.MonkeyPatch, installed: Mapping[str, str]) -> None:
    """Say what is installed beside the tool."""
    for module in (registry, resolve):
        monkeypatch.setattr(module, "installed", installed.get)


def silent(_: str) -> None:
    return


def test_what_is_installed_here_runs_here(made: list[str]) -> None:
    for text in ("onnxruntime", "onnxruntime==1.31.1", "onnxruntime==1.31.1.0", "toy", "toy{bugs=none}"):
        assert prepare(text, silent) == text
        assert environment_of(text) is None
        assert python_of(text) is None
    assert versions_of("onnxruntime==1.31.1") == {"onnxruntime": "1.31.1"}
    assert made == []


def test_a_version_is_consent_and_is_made_once(made: list[str]) -> None:
    said: list[str] = []
    with pytest.raises(UsageError, match=r"make it with `miscompile targets install onnxruntime==1\.20\.1`"):
        environment_of("onnxruntime==1.20.1")
    for _ in range(2):
        assert prepare("onnxruntime==1.20.1", said.append) == "onnxruntime==1.20.1"
    assert made == ["onnxruntime==1.20.1"]
    assert said == ["made onnxruntime==1.20.1"]
    place = environment_of("onnxruntime==1.20.1")
    assert place is not None
    assert python_of("onnxruntime==1.20.1") == place.executable
    assert versions_of("onnxruntime==1.20.1") == {"onnxruntime": "1.20.1"}


def test_a_bare_name_needs_consent(made: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    here(monkeypatch, {})
    with pytest.raises(UsageError) as caught:
        prepare("onnxruntime", silent)
    assert "`pip install" in str(caught.value)
    assert "`miscompile targets install onnxruntime`" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert made == []
    assert prepare("onnxruntime", silent, install=True) == "onnxruntime==1.32.0"
    assert prepare("onnxruntime", silent) == "onnxruntime==1.32.0", "it was consented to before"
    assert made == ["onnxruntime==1.32.0"]


def test_an_explicit_version_does_not_serve_the_bare_name(made: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    here(monkeypatch, {})
    prepare("onnxruntime==1.20.1", silent)
    with pytest.raises(UsageError, match="not installed here"):
        prepare("onnxruntime", silent)
    assert made == ["onnxruntime==1.20.1"]


def test_a_part_of_this_tool_has_no_releases() -> None:
    with pytest.raises(UsageError, match="toy is a part of this tool"):
        resolve.make_newest("toy", silent)


def test_an_environment_without_its_compiler_is_named(made: list[str]) -> None:
    prepare("onnxruntime==1.20.1", silent)
    [place] = cache.environments()
    record = place.path / cache.RECORD
    record.write_text(json.dumps({**json.loads(record.read_text()), "packages": {"numpy": "1"}}))
    with pytest.raises(UsageError, match=r"lacks onnxruntime; remove it with `miscompile targets remove"):
        versions_of("onnxruntime==1.20.1")
    assert len(made) == 1


def test_workers_get_the_python_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/own/packages")
    prepare("onnxruntime==1.20.1", silent)
    resolved = Origin("onnxruntime==1.20.1", environment={"A": "b"}).resolved()
    assert resolved.python == str(python_of("onnxruntime==1.20.1"))
    assert "PYTHONPATH" not in resolved.variables()
    assert resolved.variables()["A"] == "b"
    own = Origin("onnxruntime").resolved()
    assert own.python is None
    assert own.variables()["PYTHONPATH"] == "/own/packages"
    for given in (Origin("onnxruntime==1.20.1", python="/a/python"), Origin("anything", adapter="a.b:C")):
        assert given.resolved() is given
