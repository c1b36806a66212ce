"""Name the modules of the package that no test executes, from the data that `pytest --all --cov -n logical` has left.

A module counts as executed when a line inside one of its functions ran, or, where it has no function, when it was
imported: an import alone runs every `def` and shows nothing. Modules of a compiler that is not installed are left out.
Exit code 1 when there is such a module, 2 when there is no data.
"""

import ast
import importlib.util
import sys
from pathlib import Path

from coverage import Coverage

COMPILERS = {
    "inductor": "torch",
    "iree": "iree",
    "keras": "keras",
    "openvino": "openvino",
    "tinygrad": "tinygrad",
    "torch": "torch",
    "tvm": "tvm",
    "xla": "jax",
}
"""Folder of a target to the package without which its modules cannot run."""


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
    """Return whether `module`, relative to the package, belongs to a compiler that is not installed."""
    if module.parts[0] != "targets" or len(module.parts) < 3:
        return False
    needed = COMPILERS.get(module.parts[1])
    return needed is not None and importlib.util.find_spec(needed) is None


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
