"""The cases of onnx's node tests that tinygrad runs, read from its test file."""

import ast
import re
from collections.abc import Callable


def included(text: str) -> Callable[[str], bool]:
    """Read the patterns that tinygrad excludes; exclusions that depend on the device count as for tinygrad's test
    machines."""
    tree = ast.parse(text)
    calls = [node.value for node in tree.body if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)]
    excluded = [
        re.compile(call.args[0].value)
        for call in calls
        if ast.unparse(call.func) == "backend_test.exclude"
        and isinstance(call.args[0], ast.Constant)
        and isinstance(call.args[0].value, str)
    ]
    return lambda name: not any(pattern.search(f"{name}_cpu") for pattern in excluded)
