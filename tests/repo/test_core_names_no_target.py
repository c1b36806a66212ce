"""What is said of a target stands in its folder: no other source names one."""

import ast
from collections.abc import Iterator
from pathlib import Path

from miscompile.targets.registry import CATALOGUE, about

SOURCES = Path(__file__).parents[2] / "src" / "miscompile"
COMPILERS = frozenset(name for name in CATALOGUE.built_in if about(name).role == "compiler")

REASONS = {
    "targets/registry.py": "the default target, which is installed with this package",
    "targets/optimisers/adapter.py": "the option `executor` has the name of what runs the optimised models",
    "targets/optimisers/description.py": "the executors, and the distribution that every optimiser needs",
    "cli/verbs/harvest.py": "the sources of harvesting are test suites, and some are called as their compiler is",
    "harvest/patterns/suites.py": "the test suites that a hook can watch, and the packages that they need",
    "harvest/patterns/tvm_tests.py": "the harvester of TVM's own tests, and the packages that they need",
    "testing/torch_module.py": "`torch.compile` is this compiler, and a person's test calls it in its own process",
    "testing/jax_function.py": "`jax.jit` is this compiler, and a person's test calls it in its own process",
    "harvest/models/architectures.py": "a package that exporters need is called as the target of its optimiser is",
}
"""Files that do, and why they may."""


def named(path: Path) -> Iterator[str]:
    """Yield the names of compilers that stand as strings in a file's code; docstrings do not count."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in COMPILERS:
            yield node.value


def test_compilers_are_named_in_their_own_folders_only() -> None:
    assert len(COMPILERS) > 5
    found: dict[str, set[str]] = {}
    for path in SOURCES.rglob("*.py"):
        parts = path.relative_to(SOURCES).parts
        own = parts[0] == "targets" and len(parts) > 2 and parts[1] in CATALOGUE.built_in
        if not own and (names := set(named(path))):
            found["/".join(parts)] = names
    assert {name: sorted(names) for name, names in found.items() if name not in REASONS} == {}
    assert set(REASONS) <= set(found), "a file with a reason no longer needs it"
