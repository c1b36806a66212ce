"""Tables of lowerings: for each ONNX operator a short function on a framework's tensors, read as source text.

A lowering module is ordinary Python, but this module only reads its text. A process that must not import the
framework can therefore write a script with the same functions that the worker executes. All modules of a package
share one name space, to which the definitions of `WINDOWS` belong if one of them imports it.
"""

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar

from miscompile.base.errors import SpecError

Function = TypeVar("Function", bound=Callable[..., Any])

WINDOWS = "miscompile.targets.lowering.windows"
"""The module of definitions that do not depend on a framework."""

_Definition = ast.FunctionDef | ast.Assign | ast.AnnAssign


def lowers(
    *ops: str, static: tuple[int, ...] = (), plain: tuple[int | str, ...] = ()
) -> Callable[[Function], Function]:
    """Mark a function as the lowering of ONNX operators `ops`, all of them with the same meaning of the operands.

    Operands are passed by position, None for an omitted one. Operands whose positions are in `static` must be
    constants and are passed as Python numbers, or nested tuples of them. Operands whose positions are in `plain` are
    passed as Python numbers too when they are constants of rank 0 and another operand is not a constant.

    Attributes are passed by keyword, with the function's defaults. Attributes that name an element type are passed
    as its name, such as "float16", and a tensor of one element whose name is in `plain` as a pair of its number and
    its element type's name. Bodies are passed by keyword as functions of their parameters that return tuples. They
    can use outer values; if the package has a function `captured`, it receives the captured values and returns
    replacements for them.

    A function with these keywords also receives: `opset`, the version of the operator set; `outputs`, the number of
    requested results; `op`, the operator's name; `types`, the name of each operand's element type if it is a
    constant, else None; `turns`, the number of iterations of a Loop, None if it depends on the inputs or is zero. It
    returns one result, or a tuple of several. It raises NotImplementedError for calls without a lowering.

    A function of one short expression may be written as `name = lowers("Op")(lambda x: ...)`.
    """
    del ops, static, plain  # read from the source text

    def mark(function: Function) -> Function:
        return function

    return mark


@dataclass(frozen=True, slots=True)
class Lowering:
    """A function of a lowering package. `keywords` are its parameters by keyword, `uses` the other definitions that
    it needs."""

    name: str
    source: str
    static: tuple[int, ...]
    keywords: frozenset[str]
    uses: tuple[str, ...]
    plain: tuple[int | str, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """The lowerings of one framework: by operator, and all definitions by name."""

    operators: Mapping[str, Lowering]
    definitions: Mapping[str, Lowering]

    def needed(self, names: set[str]) -> list[Lowering]:
        """Return the definitions called `names` and all definitions that they use, in the order of the package's
        text."""
        wanted, pending = set[str](), sorted(names)
        while pending:
            name = pending.pop()
            if name not in wanted:
                wanted.add(name)
                pending.extend(self.definitions[name].uses)
        return [definition for name, definition in self.definitions.items() if name in wanted]


@cache
def load(package: str) -> Table:
    """Read the lowering modules of `package`. Raises SpecError when two definitions have the same name."""
    nodes: dict[str, _Definition] = {}
    for module in _modules(package):
        for name, node in _definitions(module):
            if name in nodes:
                raise SpecError(f"{package} defines {name} twice")
            nodes[name] = node
    marks = {name: _mark(node) for name, node in nodes.items()}
    definitions = {name: _lowering(name, node, frozenset(nodes), marks[name][1]) for name, node in nodes.items()}
    operators: dict[str, Lowering] = {}
    for name, (ops, _) in marks.items():
        for op in ops:
            if op in operators:
                raise SpecError(f"{package} lowers {op} twice")
            operators[op] = definitions[name]
    return Table(operators, definitions)


def defined(package: str, space: Mapping[str, Any]) -> dict[str, Any]:
    """Return `space`, the names of a framework, with the definitions of `package`, for programs to be executed in.

    A zygote calls it, so that no worker reads the package, or compiles the same lowerings for every program.
    """
    text = "\n\n\n".join([definition.source for definition in load(package).definitions.values()])
    found = dict(space)
    exec(compile(text, f"{package}.py", "exec"), found)
    return found


def _modules(package: str) -> list[ast.Module]:
    """Return the modules of a package as syntax trees, after the shared one if they import it."""
    paths = sorted(files(package).iterdir(), key=lambda entry: entry.name)
    own = [ast.parse(path.read_text("utf-8")) for path in paths if path.name.endswith(".py")]
    imported = {node.module for module in own for node in module.body if isinstance(node, ast.ImportFrom)}
    if WINDOWS not in imported:
        return own
    place, _, name = WINDOWS.rpartition(".")
    return [ast.parse(files(place).joinpath(f"{name}.py").read_text("utf-8")), *own]


def _definitions(module: ast.Module) -> Iterator[tuple[str, _Definition]]:
    for node in module.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, _as_function(node.targets[0].id, node)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            yield node.target.id, node


def _as_function(name: str, node: ast.Assign) -> _Definition:
    """Return a marked lambda as the function that it abbreviates; other assignments unchanged."""
    match node.value:
        case ast.Call(
            func=ast.Call(func=ast.Name(id="lowers")) as mark, args=[ast.Lambda(args=parameters, body=result)]
        ):
            function = ast.FunctionDef(name, parameters, [ast.Return(result)], [mark])
            return ast.fix_missing_locations(ast.copy_location(function, node))
    return node


def _mark(node: _Definition) -> tuple[tuple[str, ...], dict[str, tuple[Any, ...]]]:
    """Return the operators that a definition lowers, and its keywords `static` and `plain`."""
    for call in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "lowers":
            words = {word.arg: tuple(ast.literal_eval(word.value)) for word in call.keywords if word.arg}
            return tuple(ast.literal_eval(op) for op in call.args), words
    return (), {}


def _lowering(name: str, node: _Definition, names: frozenset[str], words: dict[str, tuple[Any, ...]]) -> Lowering:
    plain = _plain(node)
    loaded = {part.id for part in ast.walk(plain) if isinstance(part, ast.Name)}
    keywords = frozenset(arg.arg for arg in node.args.kwonlyargs) if isinstance(node, ast.FunctionDef) else frozenset()
    uses = tuple(sorted((loaded & names) - {name}))
    return Lowering(name, ast.unparse(plain), words.get("static", ()), keywords, uses, words.get("plain", ()))


class _Bare(ast.NodeTransformer):
    """Removes docstrings, annotations and decorators, which a script does not need."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        first = node.body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            node.body = node.body[1:] or [ast.Pass()]
        node.decorator_list, node.returns = [], None
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        if node.value is None:
            return ast.Pass()
        return ast.fix_missing_locations(ast.copy_location(ast.Assign([node.target], node.value), node))


def _plain(node: _Definition) -> ast.AST:
    bare: ast.AST = _Bare().visit(ast.parse(ast.unparse(node)).body[0])
    return ast.fix_missing_locations(bare)
