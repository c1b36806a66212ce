"""`.ci/unexecuted.py` names the modules of which a coverage run executed no function."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / ".ci" / "unexecuted.py"
MODULES = {
    "__init__.py": '"""A package."""\n',
    "called.py": "def one():\n    return 1\n",
    "imported.py": "def two():\n    return 2\n",
    "constants.py": "THREE = 3\n",
    "never.py": "FOUR = 4\n",
    "protocol.py": 'def five():\n    """Say five."""\n    ...\n',
    "targets/xla/adapter.py": "def six():\n    return 6\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A package called miscompile beside a coverage file of a run that calls one of its functions."""
    for name, text in MODULES.items():
        path = tmp_path / "miscompile" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    code = "from miscompile import called, constants, imported, protocol; called.one()"
    (tmp_path / "use.py").write_text(code)
    for package in ("jax", "tvm"):
        (tmp_path / f"{package}.py").touch()
    (tmp_path / ".coveragerc").write_text("[run]\nsource_pkgs = miscompile\n")
    subprocess.run([sys.executable, "-m", "coverage", "run", "use.py"], cwd=tmp_path, check=True)
    return tmp_path


def run(project: Path, absent: str = "") -> tuple[int, list[str]]:
    """Return exit code and lines of the script where the package `absent` cannot be found."""
    code = (
        "import importlib.util as u, runpy, sys; sys.path.insert(0, '.'); find = u.find_spec; "
        f"u.find_spec = lambda name: None if name == {absent!r} else find(name); "
        f"runpy.run_path({str(SCRIPT)!r}, run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=project, capture_output=True, text=True, check=False)
    return done.returncode, (done.stdout or done.stderr).splitlines()


def test_modules_that_do_nothing_in_a_run_are_named(project: Path) -> None:
    assert run(project) == (1, ["imported.py", "never.py", "targets/xla/adapter.py"])


def test_a_compiler_that_is_absent_excuses_its_own_modules(project: Path) -> None:
    assert run(project, absent="jax") == (1, ["imported.py", "never.py"])
    assert run(project, absent="tvm")[1][-1] == "targets/xla/adapter.py"


def test_without_data_it_says_what_to_run(project: Path) -> None:
    (project / ".coverage").unlink()
    code, words = run(project)
    assert code == 2
    assert "pytest --all --cov" in words[-1]
