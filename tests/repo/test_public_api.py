"""What `import miscompile` offers: the names, how cheap the import is, and the types that a caller's checker sees."""

import ast
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import miscompile

ROOT = Path(__file__).parents[2]
FACE = ROOT / "src" / "miscompile" / "__init__.py"

USE = """
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx

import miscompile


def nightly(out: Path) -> int:
    def tell(line: str) -> None:
        print(line)

    try:
        result = miscompile.fuzz(["onnxruntime", "openvino"], time=60.0, out=out, progress=tell)
    except miscompile.MissingCompilerError:
        return 2
    finding: miscompile.CampaignFinding
    for finding in result:
        explanation: miscompile.Explanation = miscompile.explain(finding, releases=True)
        rows: tuple[miscompile.BoundaryRow, ...] = explanation.boundary
        passes: tuple[str, ...] = explanation.culprits
        print(rows, passes, miscompile.reduce(finding, time=10).tries)
    return len(result)


def shows(model: onnx.ModelProto) -> bool:
    return len(model.graph.node) > 3


def reducer(path: str) -> onnx.ModelProto:
    reduced: miscompile.ReducedModel = miscompile.reduce(path, shows, time=60)
    feeds: Mapping[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]] = reduced.inputs
    print(feeds)
    model: onnx.ModelProto = miscompile.reduce(path, "onnxruntime", inputs={"x": np.zeros(3)}).model
    return model


def close(actual: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]], model: bytes) -> bool:
    comparison = miscompile.compare(actual, [[1.0, 2.0]], model, inputs=[1.0, np.float16(2)])
    output: miscompile.OutputComparison = comparison["y"]
    print(output.allowed_ulps.max(), comparison.verdict == "rounding")
    ok: bool = comparison.ok
    return ok and not miscompile.check(model, tests=3)
"""

MISUSE = {
    "miscompile.fuz()": "attr-defined",
    "miscompile.fuzz(7)": "arg-type",
    'miscompile.fuzz("toy", time="5m")': "arg-type",
    'miscompile.reduce("model.onnx")': "call-overload",
    'miscompile.compare([1.0], [1.0], b"").verdict == "same"': "comparison-overlap",
}


def imports_for_checkers() -> dict[str, set[str]]:
    """Return the names by module that type checkers read from the face."""
    branch = next(node for node in ast.parse(FACE.read_text("utf-8")).body if isinstance(node, ast.If))
    found = [node for node in branch.body if isinstance(node, ast.ImportFrom)]
    return {str(node.module).removeprefix("miscompile."): {name.name for name in node.names} for node in found}


def test_every_name_is_there() -> None:
    for name in miscompile.__all__:
        assert getattr(miscompile, name) is not None
        assert name in dir(miscompile)


def test_names_are_those_that_type_checkers_see() -> None:
    homes: dict[str, tuple[str, ...]] = vars(miscompile)["_HOMES"]
    assert {module: set(names) for module, names in homes.items()} == imports_for_checkers()
    assert {name for names in homes.values() for name in names} == set(miscompile.__all__) - {"__version__"}
    for module, names in homes.items():
        for name in names:
            thing: Any = getattr(import_module(f"miscompile.{module}"), name)
            assert thing.__module__ == f"miscompile.{module}", "the face names the module that defines it"
            assert thing.__doc__


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        miscompile.nonsense  # type: ignore[attr-defined]  # noqa: B018


LIGHT = """
import json, sys
sys.path.insert(0, sys.argv[1])
before = set(sys.modules)
import miscompile
print(json.dumps([*{*sys.modules} - before]))
"""


def test_the_import_is_light() -> None:
    words = [sys.executable, "-S", "-c", LIGHT, str(ROOT / "src")]
    result = subprocess.run(words, capture_output=True, text=True, check=True)
    assert json.loads(result.stdout) == ["miscompile"], "nothing but the package itself, not even typing"


def mypy(path: Path) -> "subprocess.CompletedProcess[str]":
    words = ["--strict", "--no-error-summary", "--config-file", str(ROOT / "pyproject.toml"), str(path)]
    return subprocess.run([sys.executable, "-m", "mypy", *words], cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_strict_checker_accepts_the_use_and_refuses_misuse(tmp_path: Path) -> None:
    path = tmp_path / "use.py"
    path.write_text(USE)
    done = mypy(path)
    assert done.returncode == 0, done.stdout + done.stderr
    misuse = tmp_path / "misuse.py"
    misuse.write_text("import miscompile\n" + "".join(f"{line}\n" for line in MISUSE))
    done = mypy(misuse)
    told = [line for line in done.stdout.splitlines() if "error:" in line]
    assert len(told) == len(MISUSE), done.stdout
    for number, (line, code) in enumerate(zip(told, MISUSE.values(), strict=True), start=2):
        assert f"misuse.py:{number}:" in line
        assert line.endswith(f"[{code}]")
