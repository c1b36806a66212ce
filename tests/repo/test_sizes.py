"""Files, functions and names keep the measure of the house."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted(path for folder in ("src", "evaluation") for path in (ROOT / folder).rglob("*.py"))
FILE_STOP = 800
"""The rule is one idea a file, which no test can check; this limit only keeps a file from growing without end."""
FUNCTION_STOP = 60
DRAWERS = {"utils", "util", "helpers", "helper", "common", "misc", "shared"}


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def too_long(tree: ast.AST) -> list[str]:
    return [
        f"{node.name} has {node.end_lineno - node.lineno + 1} lines"
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > FUNCTION_STOP
    ]


def test_there_are_sources() -> None:
    assert len(SOURCES) > 50


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_a_source_file_keeps_the_measure(path: Path) -> None:
    text = path.read_text("utf-8")
    tree = ast.parse(text)
    assert len(text.splitlines()) <= FILE_STOP, f"{name_of(path)} is longer than {FILE_STOP} lines"
    assert too_long(tree) == []
    assert path.stem not in DRAWERS, "a module is named after what it does"
    assert path.parent.name not in DRAWERS, "a package is named after what it does"
    classes = [node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    assert [name for name in classes if name.startswith("Test")] == [], "pytest would collect it"


def test_the_measure_measures() -> None:
    long = "def f():\n" + "    x = 1\n" * FUNCTION_STOP
    assert too_long(ast.parse(long)) == [f"f has {FUNCTION_STOP + 1} lines"]
    assert too_long(ast.parse("def f():\n" + "    x = 1\n" * (FUNCTION_STOP - 1))) == []


def test_package_faces_do_not_export() -> None:
    for path in SOURCES:
        if path.name == "__init__.py":
            imports = [
                node for node in ast.parse(path.read_text()).body if isinstance(node, ast.Import | ast.ImportFrom)
            ]
            assert imports == [], f"{name_of(path)} re-exports; import the module that defines a name"
