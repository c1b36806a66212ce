"""The cases of onnx's node tests that a compiler runs, read from the file in which it lists them."""

import ast
import json
import re
from collections.abc import Callable

from miscompile.base.errors import UsageError

Included = Callable[[str], bool]
"""Tells whether a case of onnx's own suite of node tests is run, by its name."""


def onnxruntime(text: str) -> Included:
    """Read the lists of filters that ONNX Runtime applies on every device."""
    data = json.loads("\n".join(line.partition("//")[0] for line in text.splitlines()))
    lists = ("current_failing_tests", "unsupported_usages", "failing_permanently",
             "tests_with_pre_opset7_dependencies", "test_with_types_disabled_due_to_binary_size_concerns")  # fmt: skip
    filters = [item for name in lists for item in data.get(name, ()) if isinstance(item, str)]
    excluded = re.compile("|".join(f"(?:{one})" for one in [*filters, "FLOAT16"]))
    return lambda name: not excluded.search(f"{name}_cpu")


def tinygrad(text: str) -> Included:
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


def tvm(text: str) -> Included:
    """Read the list of operators whose cases TVM runs; a case belongs to one when its name begins with it."""
    lists = {
        target.id: node.value
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    if "_INCLUDE_OPS" not in lists:
        raise UsageError("TVM's run of onnx's suite is not written as it was in 2026; the recipe must follow it")
    names = ast.literal_eval(lists["_INCLUDE_OPS"])
    pattern = re.compile(rf"test_(?:{'|'.join(map(re.escape, names))})(?:_.*)?")
    return lambda name: pattern.fullmatch(name) is not None
