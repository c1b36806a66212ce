"""Records in the cache of environments, recipes, interpreters, and messages of pip."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from miscompile.base.errors import UsageError
from miscompile.environments import cache, interpreters, pip
from miscompile.environments.cache import Environment
from miscompile.environments.interpreters import Interpreter, choose, meets
from miscompile.environments.recipe import EnvironmentRecipe, distribution_of, recipe_of


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "miscompile" / "environments"


def silent(_: str) -> None:
    return


def placed(target: str, version: str, bare: bool = False) -> Environment:
    """Put an environment into the cache that has an interpreter and a record, and nothing else."""
    name = cache.name_of(target, version)
    path = cache.cache_folder() / name
    (path / "bin").mkdir(parents=True)
    (path / "bin" / "python").symlink_to("/bin/sh")
    made = Environment(
        name, target, version, "3.11.7", path, (f"{target}=={version}",), {target: version}, 7, 1.5, bare
    )
    cache.save(made)
    return made


def test_a_record_comes_back(folder: Path) -> None:
    made = placed("onnxruntime", "1.20.1")
    assert made.path == folder / "onnxruntime-1.20.1"
    assert cache.environments() == [made]
    assert cache.find("onnxruntime", "1.20.1") == made
    assert made.executable == made.path / "bin" / "python"


def test_equal_versions_are_found_and_others_not() -> None:
    made = placed("onnxruntime", "1.20.0")
    assert cache.find("onnxruntime", "1.20") == made
    assert cache.find("onnxruntime", "1.20.1") is None
    assert cache.find("openvino", "1.20.0") is None


def test_environments_are_sorted_by_version() -> None:
    for version in ("1.20.0", "1.9.0", "1.100.0"):
        placed("tvm", version)
    assert [one.version for one in cache.environments()] == ["1.9.0", "1.20.0", "1.100.0"]


def test_one_environment_serves_the_bare_name() -> None:
    old, new = placed("tvm", "0.25.0", bare=True), placed("tvm", "0.27.0")
    assert cache.find_bare("tvm") == old
    assert cache.serve_bare(new) == replace(new, bare=True)
    assert cache.find_bare("tvm") == replace(new, bare=True)
    assert [one.bare for one in cache.environments()] == [False, True]
    assert cache.find_bare("onnxruntime") is None


@pytest.mark.parametrize("damage", ["no record", "no json", "other format", "no python", "strange version", "no field"])
def test_a_damaged_environment_does_not_count(damage: str) -> None:
    made = placed("tvm", "0.25.0")
    record = made.path / cache.RECORD
    data = json.loads(record.read_text())
    match damage:
        case "no record":
            record.unlink()
        case "no json":
            record.write_text("{")
        case "other format":
            record.write_text(json.dumps({**data, "format": 99}))
        case "no python":
            made.executable.unlink()
        case "strange version":
            record.write_text(json.dumps({**data, "version": "x"}))
        case _:
            del data["python"]
            record.write_text(json.dumps(data))
    assert cache.find("tvm", "0.25.0") is None
    assert cache.leftovers() == ["tvm-0.25.0"]
    assert cache.remove("tvm-0.25.0", silent)
    assert cache.leftovers() == []


def test_removal() -> None:
    made = placed("tvm", "0.25.0")
    cache.log_of(made.name).write_text("words")
    assert cache.remove(made.name, silent)
    assert not made.path.exists()
    assert not cache.log_of(made.name).exists()
    assert not cache.remove(made.name, silent)


def test_a_cache_that_cannot_be_written_is_named(folder: Path) -> None:
    folder.parent.parent.mkdir(exist_ok=True)
    folder.parent.write_text("a file where a folder should be")
    with (
        pytest.raises(UsageError, match=r"environments cannot be kept in .*; set XDG_CACHE_HOME"),
        cache.locked("tvm-1.0", silent),
    ):
        raise AssertionError("never held")
    assert cache.environments() == []


def test_a_recipe_holds_what_everybody_needs_and_the_pins() -> None:
    recipe = recipe_of("onnxruntime", "1.17.3")
    assert recipe == EnvironmentRecipe(
        "onnxruntime", "1.17.3", ("onnxruntime==1.17.3", "numpy<2", "ml_dtypes", "onnx"), "<3.13"
    )
    assert (recipe.name, recipe.spec) == ("onnxruntime-1.17.3", "onnxruntime==1.17.3")
    assert recipe_of("onnxruntime", "1.31.1").requirements == ("onnxruntime==1.31.1", "numpy", "ml_dtypes", "onnx")
    with pytest.raises(UsageError, match="a part of this tool"):
        recipe_of("toy", "1.0")


def test_a_recipe_holds_the_packages_of_its_front_end() -> None:
    """OpenVINO's decoder of exported programs imports packaging, which neither OpenVINO nor torch requires."""
    names = {
        via: {distribution_of(text) for text in recipe_of(f"openvino{via}", "2026.4.1").requirements}
        for via in ("", "+torch", "+exported")
    }
    assert names["+torch"] - names[""] == {"torch"}
    assert names["+exported"] - names[""] == {"torch", "packaging"}


@pytest.mark.parametrize(("text", "name"), [("ML_dtypes>=0.5", "ml-dtypes"), ("a.b==1", "a-b"), ("jax[cpu]<2", "jax")])
def test_names_in_requirements(text: str, name: str) -> None:
    assert distribution_of(text) == name


def test_our_own_python_is_the_first_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose("", "x") == interpreters.own()
    monkeypatch.setattr(interpreters, "own", lambda: Interpreter("/own", "3.13.0"))
    monkeypatch.setattr(interpreters, "candidates", lambda minor: [f"/shim/python3.{minor}", f"/real/python3.{minor}"])
    answers = {"/real/python3.12": "3.12.1", "/real/python3.11": "3.11.7", "/shim/python3.11": "3.10.1"}
    monkeypatch.setattr(interpreters, "ask", answers.get)
    assert choose(">=3.12", "x") == Interpreter("/own", "3.13.0")
    assert choose("<3.13", "x") == Interpreter("/real/python3.12", "3.12.1")
    assert choose("<3.12", "x") == Interpreter("/real/python3.11", "3.11.7")
    with pytest.raises(UsageError, match=r"x==1 needs a Python <3\.11 \(and at least 3\.11\), this one is 3\.13\.0"):
        choose("<3.11", "x==1")


def test_conditions_are_about_minor_releases() -> None:
    assert meets("3.12.1", "<=3.12")
    assert not meets("3.12.1", "<3.12")
    assert not meets("3.10.4", "")


def test_executables_are_looked_for_on_the_path_and_under_pyenv(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("bin/python3.12", "pyenv/versions/3.12.1/bin/python3.12", "pyenv/versions/3.11.7/bin/python3.11"):
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\necho 3.12.9\n")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    found = list(interpreters.candidates(12))
    assert found == [str(tmp_path / "bin/python3.12"), str(tmp_path / "pyenv/versions/3.12.1/bin/python3.12")]


def test_an_executable_that_does_not_run_has_no_version(tmp_path: Path) -> None:
    broken = tmp_path / "python3.12"
    broken.write_text("#!/bin/sh\necho the command exists in other versions >&2\nexit 127\n")
    broken.chmod(0o755)
    assert interpreters.ask(str(broken)) is None
    assert interpreters.ask(str(tmp_path / "none")) is None
    assert interpreters.ask(interpreters.own().path) == interpreters.own().version


def test_the_releases_that_pip_lists() -> None:
    text = (
        "x (1.10.0)\nAvailable versions: 1.10.0, 1.9.1, 1.9.0rc1, 1.9.0+cpu, 1.9.0.post1, garbage, 1.9.0\nINSTALLED: 1"
    )
    assert pip.final_releases(text) == ["1.9.0", "1.9.0.post1", "1.9.1", "1.10.0"]
    assert pip.final_releases("ERROR: No matching distribution found for x") == []


def test_the_last_words_of_pip(tmp_path: Path) -> None:
    log = tmp_path / "pip.log"
    versions = ", ".join(f"1.{n}" for n in range(20))
    log.write_text(
        "Looking in links\n"
        f"ERROR: Could not find a version that satisfies the requirement x==9 (from versions: {versions})\n"
        "ERROR: No matching distribution found for x==9\n\n"
    )
    assert pip.printed_last(log) == (
        "Could not find a version that satisfies the requirement x==9 "
        "(there are 20 versions, the newest: 1.15, 1.16, 1.17, 1.18, 1.19); No matching distribution found for x==9"
    )
    log.write_text("Traceback\n  disk full\n")
    assert pip.printed_last(log) == "Traceback disk full"
    assert pip.printed_last(tmp_path / "none") == ""


def test_what_disturbs_another_python_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/own/packages")
    monkeypatch.setenv("PIP_TARGET", "/elsewhere")
    kept = pip.clean(os.environ)
    assert "PYTHONPATH" not in kept
    assert "PIP_TARGET" not in kept
    assert kept["PATH"] == os.environ["PATH"]
