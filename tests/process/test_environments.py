"""Real environments, made by venv and pip from wheels that are written here: no index is asked, nothing is compiled.

The wheel that stands for ONNX Runtime holds a path file, which lends the environment the packages of the test's own
Python; so its version is the wheel's, and its compiler works.
"""

import base64
import hashlib
import multiprocessing
import os
import site
import zipfile
from pathlib import Path

import numpy as np
import pytest

from miscompile.base.errors import UsageError
from miscompile.core.outcome import Values
from miscompile.core.run import Build, Run
from miscompile.environments import cache
from miscompile.environments.make import make
from miscompile.environments.recipe import EnvironmentRecipe
from miscompile.environments.resolve import environment_of, prepare, versions_of
from miscompile.execution.conformance_models import identity
from miscompile.execution.pool import LocalPool
from miscompile.triage.confirm import run_script

pytestmark = pytest.mark.process

VERSION = "0.0.1"
SPEC = f"onnxruntime=={VERSION}"


def write_wheel(folder: Path, name: str, version: str, files: dict[str, str]) -> None:
    """Write a wheel of pure Python (https://packaging.python.org/specifications/binary-distribution-format)."""
    info = f"{name}-{version}.dist-info"
    files = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = []
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
            rows.append(f"{path},sha256={digest},{len(text.encode())}")
        wheel.writestr(f"{info}/RECORD", "\n".join([*rows, f"{info}/RECORD,,"]) + "\n")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, and wheels as pip's only source."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    lent = "\n".join(site.getsitepackages())
    write_wheel(wheels, "onnxruntime", VERSION, {"lent.pth": lent + "\n"})
    for name in ("numpy", "ml_dtypes", "onnx"):
        write_wheel(wheels, name, "1.0", {})
    for name in list(os.environ):
        if name.startswith("PIP_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def silent(_: str) -> None:
    return


@pytest.mark.slow  # makes a virtual environment
def test_a_version_runs_in_its_environment(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    assert prepare(SPEC, said.append) == SPEC
    assert len(said) == 2, said
    made = environment_of(SPEC)
    assert made is not None
    assert made.path == place / "cache" / "miscompile" / "environments" / f"onnxruntime-{VERSION}"
    assert versions_of(SPEC) == {"onnxruntime": VERSION}
    assert made.requirements == (SPEC, "numpy<2", "ml_dtypes", "onnx")
    assert made.packages["numpy"] == "1.0"
    assert (made.path / "pip.log").exists()
    shown = identity("float32")
    with LocalPool(SPEC) as pool:
        [outcome] = pool.run([Run(shown.case, SPEC, Build())])
        words = Path(f"/proc/{pool.zygote}/cmdline").read_bytes().split(b"\0")
    assert isinstance(outcome, Values)
    for given, wanted in zip(outcome.results[0], shown.expected[0], strict=True):
        assert given is not None
        assert np.array_equal(given.array, wanted.array)
    assert words[0].decode() == str(made.executable)
    script = place / "where.py"
    script.write_text("import sys\nprint('BUG:', sys.prefix)\nsys.exit(1)\n")
    monkeypatch.setenv("PYTHONPATH", "/own/packages")
    done = run_script(script, made.executable)
    assert (done.status, done.stdout.split()[1]) == ("shows", str(made.path))


@pytest.mark.slow  # makes a virtual environment
def test_nothing_of_our_own_leaks_in(place: Path) -> None:
    """Without the lent packages, the environment knows those that pip installed, and no others."""
    write_wheel(place / "wheels", "tiny", "1.0", {"tiny.py": "VALUE = 7\n"})
    made = make(EnvironmentRecipe("tiny", "1.0", ("tiny==1.0",)), silent)
    assert set(made.packages) <= {"tiny", "pip", "setuptools"}
    script = place / "own.py"
    script.write_text(
        "import importlib.util as u, tiny\n"
        "assert tiny.VALUE == 7\n"
        "assert [n for n in ('numpy', 'onnx', 'miscompile', 'pytest') if u.find_spec(n)] == []\n"
    )
    assert run_script(script, made.executable).status == "absent"
    assert cache.remove(made.name, silent)
    assert not made.path.exists()


@pytest.mark.slow  # makes a virtual environment
def test_a_failed_installation_leaves_its_words_and_no_environment(place: Path) -> None:
    with pytest.raises(UsageError) as caught:
        prepare("onnxruntime==0.0.2", silent)
    said = str(caught.value)
    assert said.startswith("onnxruntime==0.0.2 cannot be installed: ")
    assert "(from versions: 0.0.1)" in said
    assert "\n" not in said
    log = cache.log_of("onnxruntime-0.0.2")
    assert str(log) in said
    assert "No matching distribution found" in log.read_text()
    assert cache.environments() == []
    assert [place.name for place in cache.cache_folder().iterdir() if place.is_dir()] == []
    assert cache.leftovers() == ["onnxruntime-0.0.2"]
    cache.remove("onnxruntime-0.0.2", silent)
    assert not log.exists()


def _make_tiny(answers: "multiprocessing.Queue[tuple[float, int]]") -> None:
    said: list[str] = []
    made = make(EnvironmentRecipe("tiny", "1.0", ("tiny==1.0",)), said.append)
    answers.put((made.seconds, sum("making" in line for line in said if "another process" not in line)))


@pytest.mark.slow  # makes a virtual environment
def test_two_processes_make_one_environment_over_the_rest_of_an_unfinished_one(place: Path) -> None:
    write_wheel(place / "wheels", "tiny", "1.0", {"tiny.py": "VALUE = 7\n"})
    rest = cache.cache_folder() / "tiny-1.0"
    rest.mkdir(parents=True)
    (rest / "half").write_text("made by a process that was killed")
    context = multiprocessing.get_context("spawn")
    answers: multiprocessing.Queue[tuple[float, int]] = context.Queue()
    both = [context.Process(target=_make_tiny, args=(answers,)) for _ in range(2)]
    for one in both:
        one.start()
    seen = [answers.get(timeout=120) for _ in both]
    for one in both:
        one.join()
    assert len({seconds for seconds, _ in seen}) == 1, "both have the one record"
    assert sorted(made for _, made in seen) == [0, 1]
    [made] = cache.environments()
    assert made.name == "tiny-1.0"
    assert not (made.path / "half").exists()
