"""Harvests of PyTorch in real processes: the database, test files that pass and die, and the pytest plugin."""

import subprocess
import sys
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

import pytest

from miscompile.harvest.libraries.torch import harvest_database, harvest_tests
from miscompile.instances.archive import Archive, read_archive
from miscompile.instances.values import Held

pytestmark = [
    pytest.mark.process,
    pytest.mark.compiler,
    pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed here"),
]

PLUGIN = "miscompile.harvest.libraries.plugin"

GOOD = """
import pytest, torch
LAYER = torch.nn.Linear(2, 3)
def test_layer(): assert LAYER(torch.ones(1, 2)).shape == (1, 3)
@pytest.mark.parametrize("dim", [0, 1, 1])
def test_softmax(dim): torch.nn.functional.softmax(torch.ones(2, 2), dim)
def test_fails(): assert torch.flip(torch.ones(2), [0]).sum() == 3
"""

DIES = """
import os, torch
def test_first(): torch.sin(torch.ones(2))
def test_dies(): os.abort()
"""


def operators(archive: Archive) -> set[str]:
    return {one.api for one in archive.instances}


def test_files_that_pass_and_die(tmp_path: Path) -> None:
    for name, text in (("good", GOOD), ("dies", DIES)):
        (tmp_path / f"test_{name}.py").write_text(text)
    told: list[str] = []
    archive = harvest_tests(tmp_path, told.append, seconds=300.0)
    figures = archive.figures
    assert figures["files"] == {"ran": 1, "died": 1}
    assert figures["tests"] == {"passed": 5, "failed": 1}
    assert {"torch.nn.Linear", "torch.nn.functional.softmax", "torch.flip", "torch.sin"} <= operators(archive)
    assert sum(one.api == "torch.nn.functional.softmax" for one in archive.instances) == 2
    assert {one.source for one in archive.instances} == {"tests"}
    assert "test_good.py::test_layer" in {one.origin for one in archive.instances}
    assert sorted(note.split()[0] for note in figures["notes"]) == ["test_dies.py"]
    assert told[0] == "[1/2] test_dies.py"
    assert not figures["stopped"]


def test_the_database_gives_functions_methods_and_modules() -> None:
    pytest.importorskip("expecttest", reason="expecttest is not installed here")
    names = ("add", "nn_functional_dropout", "__getitem__", "nn_Linear", "cat", "fft_fft", "special_erfcx")
    told: list[str] = []
    archive, again = (harvest_database(told.append, 6, 3, only=names) for _ in range(2))
    assert archive.instances == again.instances
    assert archive.figures["files"] == {"ran": 1}
    assert operators(archive) == {
        "torch.add",
        "torch.nn.functional.dropout",
        "torch.Tensor.__getitem__",
        "torch.nn.Linear",
        "torch.cat",
        "torch.fft.fft",
        "torch.special.erfcx",
    }
    added = [one.args[0] for one in archive.instances if one.api == "torch.add"]
    dtypes = {value.tensor.dtype for value in added if isinstance(value, Held)}
    assert dtypes == {"float32", "int64", "bool", "float16", "bfloat16", "complex64"}
    assert archive.versions["torch"]
    assert f"[{len(names)}/{len(names)}] nn_Linear" in told


@pytest.mark.parametrize("options", [(), ("--miscompile-library", "torch")])
def test_the_plugin_records_a_projects_own_tests(tmp_path: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "test_own.py").write_text(GOOD)
    path = tmp_path / "own.jsonl.gz"
    done = pytest_in(tmp_path, "--miscompile-record", str(path), *options)
    archive = read_archive(path)
    assert f"instances of {len(operators(archive))} torch operators in {path}" in done.stdout
    assert "1 failed, 4 passed" in done.stdout
    assert {"torch.nn.functional.softmax", "torch.flip", "torch.Tensor.sum"} <= operators(archive)
    assert ("torch.nn.Linear" in operators(archive)) == bool(options), "it was made while the file was imported"
    assert archive.versions["torch"]


def test_without_its_option_the_plugin_does_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_own.py").write_text(
        "import sys\ndef test_it(): assert not [name for name in sys.modules if name.startswith('miscompile.ins')]\n"
    )
    done = pytest_in(tmp_path)
    assert "1 passed" in done.stdout
    assert list(tmp_path.glob("*.gz")) == []


def pytest_in(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    installed = any(one.value == PLUGIN for one in entry_points(group="pytest11"))  # pytest takes a plugin once only
    named = () if installed else ("-p", PLUGIN)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *named, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
