"""The part of a target's own modules that a standalone script contains.

A script imports nothing of this package, and must build programs as the worker does. So it contains the source of the
functions that the worker calls, without type annotations. The modules are read and never imported, because they import
the compiler.
"""

import ast
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from miscompile.base.errors import UsageError

_REMARK = re.compile(r"  # (noqa|type: ignore).*")
_OWN = __name__.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Inlined:
    """The part of other modules in a script: import lines, each of a single name, and definitions as text."""

    imports: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class _Definition:
    """A name that a module binds: the statement that does it, and the names that this statement reads.

    `place` is where the module stands among all, and the line. An import from this package has no text but an `origin`,
    the module that it is from.
    """

    name: str
    text: str
    needs: frozenset[str]
    place: tuple[int, int]
    imported: bool
    origin: str = ""


_Tables = dict[str, dict[str, list[_Definition]]]
"""The definitions of every module by name; the script's own import lines are those of the module without a name."""


def inlined(script: str, modules: Sequence[str], imports: Sequence[str]) -> Inlined:
    """Return what `script` needs: those definitions of `modules` that it names, and whatever these name in their turn.

    `imports` are import lines for names that the script itself uses. Modules that others import from come first.
    Raises UsageError when a needed name is defined by two modules, or by the script as well, and when it comes from a
    module of this package that is not among `modules`.
    """
    own, offered = ast.parse(script), ast.parse("\n".join(imports)).body
    tables: _Tables = {"": _by_name(definition for line in offered for definition in _imported(line, 0))}
    tables |= {module: _table(module, number) for number, module in enumerate(modules, 1)}
    chosen, left = dict[tuple[str, str], list[_Definition]](), [("", name) for name in _names(own)]
    while left:
        module, name = left.pop()
        for owner in _owners(name, module, tables):
            if (owner, name) not in chosen:
                chosen[owner, name] = tables[owner][name]
                left += [(owner, needed) for part in tables[owner][name] for needed in part.needs]
    parts = sorted((part for group in chosen.values() for part in group), key=lambda part: part.place)
    bound = {name for statement in own.body for name in _bound(statement)}
    _refuse_clashes(parts, bound)
    needed = tuple(dict.fromkeys(part.text for part in parts if part.imported and part.name not in bound))
    return Inlined(needed, _joined(list(dict.fromkeys(part.text for part in parts if not part.imported))))


def defined(modules: Sequence[str]) -> frozenset[str]:
    """Return all names that `modules` define at their top level, which a script should not use for anything else."""
    return frozenset(name for number, module in enumerate(modules, 1) for name in _table(module, number))


@cache
def _table(module: str, number: int) -> dict[str, list[_Definition]]:
    return _by_name(_definitions(module, number))


def _by_name(definitions: Iterable[_Definition]) -> dict[str, list[_Definition]]:
    table: dict[str, list[_Definition]] = {}
    for definition in definitions:
        table.setdefault(definition.name, []).append(definition)
    return table


def _owners(name: str, module: str, tables: _Tables) -> list[str]:
    """Return the modules that define `name` as `module` means it; the script means whatever any module defines."""
    if not module:
        return [owner for owner, table in tables.items() if any(part.text for part in table.get(name, ()))]
    found = tables[module].get(name, [])
    if all(part.text for part in found):
        return [module] if found else []
    origin = found[0].origin
    if origin not in tables:
        raise UsageError(f"'{name}' comes from {origin}, whose text the script does not get")
    return _owners(name, origin, tables)


def _refuse_clashes(parts: Sequence[_Definition], bound: Collection[str]) -> None:
    """Raise UsageError for a name that would mean two things in the script, which binds the names `bound` itself."""
    texts: dict[str, str] = {}
    for part in parts:
        if not part.imported and part.name in bound:
            raise UsageError(f"the script defines '{part.name}', and so does a module that it gets functions of")
        if texts.setdefault(part.name, part.text) != part.text and not part.text.startswith("import "):
            raise UsageError(f"'{part.name}' is defined in more than one module that the script gets functions of")


def import_blocks(lines: Iterable[str]) -> tuple[list[str], list[str], list[str]]:
    """Return import lines as formatters group them: of the standard library, of other packages, and of this one.

    Lines that import from the same module become one; whole modules come first.
    """
    whole, parts = set[str](), dict[str, set[str]]()
    for statement in ast.parse("\n".join(lines)).body:
        if isinstance(statement, ast.ImportFrom):
            parts.setdefault(str(statement.module), set()).update(map(ast.unparse, statement.names))
        elif isinstance(statement, ast.Import):
            whole.update(f"import {ast.unparse(alias)}" for alias in statement.names)
    merged = [f"from {module} import {', '.join(sorted(names, key=_rank))}" for module, names in sorted(parts.items())]
    blocks: tuple[list[str], list[str], list[str]] = ([], [], [])
    for line in [*sorted(whole), *merged]:
        package = line.split()[1].partition(".")[0]
        blocks[2 if package == _OWN else 0 if package in sys.stdlib_module_names else 1].append(line)
    return blocks


def _rank(name: str) -> tuple[int, str]:
    """Sort imported names as formatters do: constants, then classes, then the rest."""
    return (0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2), name


def _joined(texts: Sequence[str]) -> str:
    """Return definitions one after another, with the blank lines that formatters want around functions and classes."""
    lines = list[str]()
    for text in texts:
        if lines:
            apart = "\n\n" if lines[-1].endswith('"""') else "\n"
            lines.append("\n\n\n" if _is_block(text) or _is_block(lines[-1]) else apart)
        lines.append(text)
    return "".join(lines)


def _is_block(text: str) -> bool:
    return text.startswith(("def ", "class ", "@"))


@cache
def _parsed(module: str) -> tuple[str, tuple[ast.stmt, ...]]:
    """Return the text of a module, without remarks to linters and without type annotations, and its statements."""
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise UsageError(f"there is no module {module}")
    text = bare(_REMARK.sub("", Path(spec.origin).read_text("utf-8")))
    return text, tuple(ast.parse(text).body)


def bare(text: str) -> str:
    """Return Python source without type annotations, since scripts have none; all else stands as it did."""
    lines, nodes = text.split("\n"), list(ast.walk(ast.parse(text)))
    fields = {id(field) for node in nodes if isinstance(node, ast.ClassDef) for field in node.body}
    found = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AnnAssign)]
    for node in sorted(found, key=lambda node: -node.lineno):
        if isinstance(node, ast.FunctionDef):
            lines[node.lineno - 1 : node.body[0].lineno - 1] = [_header(node)]
        elif id(node) in fields:
            continue
        elif node.value is None:
            del lines[node.lineno - 1 : node.end_lineno]
        else:
            end = str(lines[node.value.lineno - 1].encode()[node.value.col_offset :], "utf-8")
            start = lines[node.lineno - 1].encode()[: node.target.end_col_offset].decode()
            lines[node.lineno - 1 : node.value.lineno] = [f"{start} = {end}"]
    return "\n".join(lines)


def _header(node: ast.FunctionDef) -> str:
    """Return the line with which a function begins, without annotations."""
    for argument in ast.walk(node.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    return " " * node.col_offset + f"def {node.name}({ast.unparse(node.args)}):".replace("'", '"')


def _definitions(module: str, number: int) -> Iterator[_Definition]:
    """Yield what `module`, the one of this `number`, defines at its top level, by name."""
    text, body = _parsed(module)
    lines = text.split("\n")
    for index, statement in enumerate(body):
        if isinstance(statement, ast.Import | ast.ImportFrom):
            yield from _imported(statement, number)
            continue
        decorators = getattr(statement, "decorator_list", [])
        first = min([statement.lineno, *(decorator.lineno for decorator in decorators)])
        last = statement.end_lineno
        if isinstance(statement, ast.Assign) and index + 1 < len(body) and _is_docstring(body[index + 1]):
            last = body[index + 1].end_lineno
        part, needs = "\n".join(lines[first - 1 : last]), frozenset(_names(statement))
        for name in _bound(statement):
            yield _Definition(name, part, needs, (number, first), imported=False)


def _imported(statement: ast.stmt, number: int) -> Iterator[_Definition]:
    """Yield the names that an import binds, each with a line that binds it alone; no text for one from this package."""
    place = (number, statement.lineno)
    match statement:
        case ast.Import(names=names):
            for alias in names:
                name = alias.asname or alias.name.partition(".")[0]
                yield _Definition(name, f"import {ast.unparse(alias)}", frozenset(), place, imported=True)
        case ast.ImportFrom(module=module, names=names):
            origin = str(module) if number > 0 and str(module).partition(".")[0] == _OWN else ""
            for alias in names:
                text = "" if origin else f"from {module} import {ast.unparse(alias)}"
                yield _Definition(alias.asname or alias.name, text, frozenset(), place, imported=True, origin=origin)


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _names(tree: ast.AST) -> set[str]:
    """Return every name that a piece of code mentions."""
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _bound(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement at the top level binds."""
    match statement:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import() | ast.ImportFrom():
            yield from (definition.name for definition in _imported(statement, 0))
        case ast.Assign(targets=targets):
            yield from (name for target in targets for name in _names(target))
