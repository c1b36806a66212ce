"""No two public classes or type aliases of the package share a name, so that a name tells which value is meant."""

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2] / "src" / "miscompile"


def public_names(text: str) -> list[str]:
    """Return the public classes, protocols and type aliases that a module defines at its top level."""
    names: list[str] = []
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            if ast.unparse(node.annotation).endswith("TypeAlias"):
                names.append(node.target.id)
        elif isinstance(node, ast.Assign) and is_alias(node.value):
            names += [target.id for target in node.targets if isinstance(target, ast.Name)]
    return [name for name in names if name[0].isupper() and not name.isupper()]


def is_alias(value: ast.expr) -> bool:
    """Tell whether an assigned value looks like a type: `X[...]`, `X | Y`, or a name such as `Any`."""
    if isinstance(value, ast.BinOp):
        return isinstance(value.op, ast.BitOr) and is_alias(value.left)
    if isinstance(value, ast.Subscript):
        return is_alias(value.value)
    return isinstance(value, ast.Name | ast.Attribute) or (isinstance(value, ast.Constant) and value.value is None)


def clashes(modules: dict[str, str]) -> dict[str, list[str]]:
    """Return the names that more than one of `modules` (text by name) defines, with those modules."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for module, text in modules.items():
        for name in public_names(text):
            found[name].append(module)
    return {name: owners for name, owners in found.items() if len(owners) > 1}


def test_no_two_public_classes_share_a_name() -> None:
    modules = {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in sorted(ROOT.rglob("*.py"))}
    assert len(modules) > 50
    assert clashes(modules) == {}


def test_a_clash_of_any_kind_is_seen() -> None:
    rest = "class _Own:\n    pass\nLIMIT = 3\nItem = TypeVar('Item')\n"
    modules = {
        "a": f"class Plan:\n    pass\nKey = tuple[str, int]\nEnd: TypeAlias = int | None\n{rest}",
        "b": f"class Plan(Protocol):\n    pass\nKey = str\nEnd = str | None\n{rest}",
    }
    assert clashes(modules) == {"Plan": ["a", "b"], "Key": ["a", "b"], "End": ["a", "b"]}
