"""The pytest plugin says before the tests run what would keep it from writing, or from watching a library."""

import subprocess
import sys
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

import pytest

from miscompile.instances.archive import read_archive

pytestmark = pytest.mark.process

PLUGIN = "miscompile.harvest.libraries.plugin"
TEST = "def test_it():\n    open('ran', 'w').close()\n"


def pytest_in(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    installed = any(one.value == PLUGIN for one in entry_points(group="pytest11"))  # pytest takes a plugin once only
    named = () if installed else ("-p", PLUGIN)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *named, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)


def refused(folder: Path, *words: str) -> str:
    """Return what pytest says when it refuses to begin, in place of running the test."""
    (folder / "test_own.py").write_text(TEST)
    done = pytest_in(folder, *words)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR, done.stdout + done.stderr
    assert not (folder / "ran").exists()
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("taken", "Is a directory"),
        ("file/below.jsonl.gz", "File exists|Not a directory"),
        ("own.jsonl.gz", "own-keras.jsonl.gz: Is a directory"),
        ("/proc/none/own.jsonl.gz", "No such file"),
    ],
)
@pytest.mark.parametrize("workers", [(), ("-n", "1")])
def test_a_file_that_cannot_be_written_is_refused(
    tmp_path: Path, file: str, said: str, workers: tuple[str, ...]
) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "own-keras.jsonl.gz").mkdir()
    (tmp_path / "file").touch()
    message = refused(tmp_path, "--miscompile-record", file, *workers)
    assert "--miscompile-record: cannot write" in message
    assert any(one in message for one in said.split("|"))


def test_a_library_that_cannot_be_imported_is_refused(tmp_path: Path) -> None:
    (tmp_path / "keras.py").write_text("raise ImportError('no back end')\n")
    message = refused(tmp_path, "--miscompile-record", "own.jsonl.gz", "--miscompile-library", "keras")
    assert "--miscompile-library: keras cannot be watched here (ImportError: no back end)" in message
    assert not (tmp_path / "own.jsonl.gz").exists()


@pytest.mark.slow  # a pytest run of its own
def test_looking_for_a_place_leaves_nothing_there(tmp_path: Path) -> None:
    (tmp_path / "test_own.py").write_text(TEST)
    done = pytest_in(tmp_path, "--miscompile-record", "far/away/own.jsonl.gz")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing was written" in done.stdout
    assert not (tmp_path / "far").exists()


@pytest.mark.compiler
@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed here")
def test_what_was_recorded_is_kept_when_its_place_has_gone_meanwhile(tmp_path: Path) -> None:
    (tmp_path / "test_own.py").write_text(
        "import torch\ndef test_it():\n    torch.flip(torch.ones(2), [0])\n    open('gone', 'w').close()\n"
    )
    done = pytest_in(tmp_path, "--miscompile-record", "gone/own.jsonl.gz")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"cannot write {tmp_path / 'gone' / 'own.jsonl.gz'}" in done.stdout
    (told,) = (line for line in done.stdout.splitlines() if "torch operators in" in line)
    path = Path(told.partition("torch operators in ")[2])
    assert "torch.flip" in {one.api for one in read_archive(path).instances}
    path.unlink()
    path.parent.rmdir()
