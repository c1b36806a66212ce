"""Name the modules of the package that no test executes, from the data that `pytest --all --cov -n logical` has left.

A module counts as executed when a line inside one of its functions ran, or, where it has no function, when it was
imported: an import alone runs every `def` and shows nothing. Modules of a compiler or library that is not installed are
left out. Exit code 1 when there is such a module, 2 when there is no data.
"""

import ast
import importlib.util
import re
import sys
from pathlib import Path

from coverage import Coverage

NEEDED = {
    "executorch": "executorch",
    "inductor": "torch",
    "iree": "iree",
    "keras": "keras",
    "litert": "ai_edge_litert",
    "mnn": "MNN",
    "ncnn": "ncnn",
    "onnxruntime_openvino": "openvino",
    "onnxscript": "onnxscript",
    "openvino": "openvino",
    "ray": "ray",
    "tinygrad": "tinygrad",
    "torch": "torch",
    "tract": "tract",
    "tvm": "tvm",
    "xla": "jax",
}
"""A word in the path of a module to the package without which the module cannot run."""

RUN_ELSEWHERE = {
    "harvest/libraries/hooks/record_tests.py": "runs inside the tests of PyTorch and Keras",
    "migration/suite_options.py": "is copied into every exported suite, and runs there",
    "migration/suite_script.py": "is copied into every exported suite, and runs there",
}
"""Modules that no figures of this package can show, with the reason."""


def body_lines(tree: ast.Module) -> set[int]:
    """Return the lines of the statements inside functions; docstrings and a bare `...` do nothing and do not count."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {
        statement.lineno
        for function in functions
        for statement in function.body
        if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
    }


def unexecuted(text: str, lines: set[int]) -> bool:
    """Return whether the module `text` has code of which the executed `lines` show nothing."""
    tree = ast.parse(text)
    inside = body_lines(tree)
    silent = all(isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant) for part in tree.body)
    return not inside & lines if inside else not silent and not lines


def is_out_of_reach(module: Path) -> bool:
    """Return whether `module`, relative to the package, needs a package that is not installed, or runs elsewhere."""
    words = set(re.split(r"[/_.]", module.as_posix()))
    absent = [name for word, name in NEEDED.items() if word in words and importlib.util.find_spec(name) is None]
    return bool(absent) or module.as_posix() in RUN_ELSEWHERE


def findings(package: Path, coverage: Coverage) -> list[str]:
    """Return the modules of `package` that nothing in `coverage` executed, as paths relative to it."""
    data = coverage.get_data()
    lines = {Path(name).resolve(): set(data.lines(name) or ()) for name in data.measured_files()}
    return [
        path.relative_to(package).as_posix()
        for path in sorted(package.rglob("*.py"))
        if not is_out_of_reach(path.relative_to(package))
        and unexecuted(path.read_text("utf-8"), lines.get(path.resolve(), set()))
    ]


def main() -> int:
    """Print one module a line; return the exit code."""
    spec = importlib.util.find_spec("miscompile")
    if spec is None or spec.origin is None:
        print("miscompile is not installed", file=sys.stderr)
        return 2
    coverage = Coverage()
    coverage.load()
    if not coverage.get_data().measured_files():
        print("there are no figures; run pytest --all --cov -n logical first", file=sys.stderr)
        return 2
    found = findings(Path(spec.origin).resolve().parent, coverage)
    print("\n".join(found) or "every module is executed by some test")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
