"""The cases of onnx's node tests that ONNX Runtime runs, read from its filters."""

import json
import re
from collections.abc import Callable


def included(text: str) -> Callable[[str], bool]:
    """Read the lists of filters that ONNX Runtime applies on every device."""
    data = json.loads("\n".join(line.partition("//")[0] for line in text.splitlines()))
    lists = ("current_failing_tests", "unsupported_usages", "failing_permanently",
             "tests_with_pre_opset7_dependencies", "test_with_types_disabled_due_to_binary_size_concerns")  # fmt: skip
    filters = [item for name in lists for item in data.get(name, ()) if isinstance(item, str)]
    excluded = re.compile("|".join(f"(?:{one})" for one in [*filters, "FLOAT16"]))
    return lambda name: not excluded.search(f"{name}_cpu")
