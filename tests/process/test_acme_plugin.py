"""The example package adds a compiler from outside: it is installed on its own and found, and so is its planted bug."""

import ast
import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import onnx
import pytest

from miscompile.findings.folder import Stored, identifiers, load

pytestmark = [pytest.mark.process, pytest.mark.slow]  # an environment is made, with the package in it

PACKAGE = Path(__file__).parents[2] / "examples" / "acme_compiler"


BORROWED = """
from miscompile.execution.limits import Limits
from miscompile.execution.zygote_client import Origin, ZygoteClient
ZygoteClient(Origin("acme", python={python!r}, isolated=True), Limits()).close()
"""


def environment(home: Path) -> Path:
    """Make an environment that sees what is installed here; return its Python."""
    venv.create(home, with_pip=False, symlinks=True)
    seen = [path for path in sys.path if path and Path(path).is_dir()]
    (site,) = home.glob("lib/python*/site-packages")
    (site / "here.pth").write_text("\n".join(path for path in seen if "site-packages" in path or path.endswith("src")))
    return home / "bin" / "python"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of a fresh environment in which the package is installed."""
    found = environment(tmp_path_factory.mktemp("acme") / "venv")
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    result = run([sys.executable, "-m", "pip", "--python", str(found), "install", *options, str(PACKAGE)])
    assert result.returncode == 0, result.stdout + result.stderr
    return found


def run(command: list[str]) -> "subprocess.CompletedProcess[str]":
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, env=variables)


def test_acme_stands_among_the_targets(python: Path) -> None:
    result = run([str(python), "-m", "miscompile", "targets", "--json"])
    rows = {row["name"]: row for row in json.loads(result.stdout)}
    assert rows["acme"]["versions"] == {"acme-compiler": "1.0"}
    assert rows["acme"]["passes"] == 4
    assert "toy" in rows


def test_acme_keeps_the_contract_of_targets(python: Path) -> None:
    result = run([str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", str(PACKAGE / "tests")])
    assert result.returncode == 0, result.stdout + result.stderr
    assert "1 passed" in result.stdout


def test_a_worker_under_another_python_gets_the_package_that_it_lacks(python: Path, tmp_path: Path) -> None:
    other = environment(tmp_path / "other")
    assert "No module named 'acme_compiler'" in run([str(other), "-c", "import acme_compiler"]).stderr
    result = run([str(python), "-c", BORROWED.format(python=str(other))])
    assert result.returncode == 0, result.stderr


@pytest.fixture(scope="module")
def finding(python: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Stored]:
    """Return the one finding of a short campaign of valid programs, and its folder."""
    out = tmp_path_factory.mktemp("campaign") / "out"
    command = [
        "fuzz",
        "acme",
        "--tests",
        "400",
        "--seed",
        "0",
        "--workers",
        "1",
        "--check",
        "levels",
        "--out",
        str(out),
    ]
    result = run([str(python), "-m", "miscompile", *command])
    assert result.returncode == 1, result.stdout + result.stderr
    (identifier,) = identifiers(out)
    return out / "findings" / identifier, load(out, identifier)


def test_the_planted_bug_is_found_confirmed_reduced_and_attributed(finding: tuple[Path, Stored]) -> None:
    _, stored = finding
    assert stored.status == "confirmed"
    assert str(stored.finding.property.signature) == "acme:wrong:AddNegToSub"
    nodes = onnx.load_model_from_string(stored.finding.case.program.payload).graph.node
    assert [node.op_type for node in nodes] == ["Neg", "Add"]
    assert stored.versions == {"acme-compiler": "1.0"}


def test_the_script_needs_acme_numpy_and_onnx_alone(python: Path, finding: tuple[Path, Stored]) -> None:
    folder, stored = finding
    imported = set[str]()
    for node in ast.walk(ast.parse(stored.script)):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(str(node.module))
    assert imported == {"sys", "numpy", "onnx", "acme_compiler"}
    result = run([str(python), str(folder / "repro.py")])
    assert result.returncode == 1, result.stdout + result.stderr
    assert "without AddNegToSub the results are right" in result.stdout
    assert "BUG: output 0 on feed 0" in result.stdout
