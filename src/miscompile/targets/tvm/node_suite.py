"""The cases of onnx's node tests that TVM runs, read from its test file."""

import ast
import re
from collections.abc import Callable

from miscompile.base.errors import UsageError


def included(text: str) -> Callable[[str], bool]:
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
