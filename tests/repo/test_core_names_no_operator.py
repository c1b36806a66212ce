"""What is said of an operator stands in its spec: other sources have no tables of operators, but for a reason."""

import ast
from collections.abc import Iterator
from pathlib import Path

from miscompile.ops.registry import written

SOURCES = Path(__file__).parents[2] / "src" / "miscompile"
OPERATORS = frozenset(written())

REASONS = {
    "graph/infer.py": "gaps of onnx's inference, which the graph fills below the specs",
    "graph/specialise.py": "onnx's data propagation over models of others, below the specs",
    "harvest/neighbours/body.py": "operators with several operands that round once, among those that no spec has",
    "oracles/unspecified/conditions.py": "reductions that sum squares",
    "producers/instances/onnx_versions.py": "operators whose meaning changed between the first operator sets",
    "producers/motifs/plant.py": "the operators whose operands a mutation of a motif swaps or makes the same",
    "producers/motifs/quantised/planting.py": "the two operators that every quantised chain is made of",
    "transforms/exact/dead.py": "the operators that this transform adds, and those to which it adds results",
    "transforms/exact/expand.py": "function bodies that compute integers exactly",
    "transforms/rules/": "the terms of the language of rewrite rules",
}
"""Files, and a folder, that have such a table, and why they may."""


def keys(node: ast.AST) -> list[ast.expr | None]:
    """Return the members of a literal that tells what it contains from all else: a set, a dict, `in (...)`."""
    if isinstance(node, ast.Set):
        return list(node.elts)
    if isinstance(node, ast.Dict):
        return node.keys
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
        (inside,) = node.comparators
        return list(inside.elts) if isinstance(inside, ast.Tuple | ast.List) else []
    return []


def tables(path: Path) -> Iterator[int]:
    """Yield the lines of a file's code that tell two operators or more from all others."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        names = [one.value for one in keys(node) if isinstance(one, ast.Constant)]
        if len(names) > 1 and len(names) == len(keys(node)) and OPERATORS.issuperset(names):
            yield node.lineno  # type: ignore[attr-defined]


def test_no_source_outside_of_ops_has_a_table_of_operators() -> None:
    found: dict[str, list[int]] = {}
    for path in SOURCES.rglob("*.py"):
        name = path.relative_to(SOURCES).as_posix()
        if not name.startswith(("ops/", "targets/")) and (lines := list(tables(path))):
            found[next((reason for reason in REASONS if name.startswith(reason)), name)] = lines
    assert {name: lines for name, lines in found.items() if name not in REASONS} == {}
    assert set(REASONS) <= set(found), "a file with a reason no longer needs it"


def test_a_table_is_recognised(tmp_path: Path) -> None:
    source = tmp_path / "core.py"
    source.write_text(
        'A = {"Conv", "Gemm"}\nB = {"Conv": 1, "Gemm": 2}\nC = op in ("Conv", "Gemm")\nD = ("Conv", "Gemm")\n'
    )
    assert list(tables(source)) == [1, 2, 3]
