"""Mutants of the optimiser, derived from its source: one small change each, which makes most of them miscompile.

A mutant has a name such as `moving.merge_pads.drop-guard.2`: module, function, operator of mutation, and the number of
the place in the function. The list is made by walking the syntax trees of the modules in `MUTATED`, so it follows the
source; nobody writes a mutant by hand. `load` compiles the modules again with one of them changed.
"""

import ast
import builtins
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from miscompile.base.errors import SpecError
from miscompile.core.tensor import Array
from miscompile.targets.toy.ir import Bugs, Code
from miscompile.targets.toy.kernels.table import OPERATORS, REFERENCE_OPERATORS, interpret
from miscompile.targets.toy.passes.pipeline import PASSES, optimise
from miscompile.targets.toy.passes.reference import REFERENCE_PASSES
from miscompile.targets.toy.passes.rewriting import Pass

_TOY = "miscompile.targets.toy"

MUTATED = (
    "passes.arithmetic", "passes.casts", "passes.cleanup", "passes.conditions", "passes.fusion", "passes.identities",
    "passes.layout", "passes.moving", "passes.products", "passes.quantised", "passes.rewriting", "passes.selection",
    "passes.storage", "kernels.tiled",
)  # fmt: skip
"""Modules whose functions are mutated, without the package's name."""

_RELOADED = (*MUTATED, "passes.pipeline", "passes.reference", "passes.fatal", "kernels.table")


@dataclass(frozen=True, slots=True)
class Optimiser:
    """The passes of an optimiser, and the functions of the toy that a mutant replaces.

    `rewrite` runs passes on a program, `interpret` runs a program; `operators` are those that a model may use.
    """

    rewrite: Callable[[Code, str, frozenset[str], Bugs, tuple[Pass, ...]], tuple[str, ...]]
    interpret: Callable[[Code, tuple[Any, ...]], list[Array | None]]
    passes: tuple[Pass, ...]
    operators: Collection[str] = REFERENCE_OPERATORS

    def optimise(self, code: Code, level: str, disabled: frozenset[str], bugs: Bugs) -> tuple[str, ...]:
        """Rewrite `code` in place and return the names of the passes that changed it."""
        return self.rewrite(code, level, disabled, bugs, self.passes)


PLAIN = Optimiser(optimise, interpret, PASSES, OPERATORS)
REFERENCE = Optimiser(optimise, interpret, REFERENCE_PASSES)


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change at one place of the source: `line` of `module`, where `before` becomes `after`."""

    name: str
    module: str
    function: str
    operator: str
    line: int
    before: str
    after: str


NodeChange = tuple[str, ast.AST]
"""The operator of mutation, and what stands in the place of a node."""

_COMPARISONS: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_ARITHMETIC: Mapping[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.BitAnd: ast.BitOr, ast.FloorDiv: ast.Mult,
}  # fmt: skip
_TWINS = {
    "any": "all", "all": "any", "min": "max", "max": "min", "transA": "transB", "transB": "transA", "Max": "Min",
    "Min": "Max", "Add": "Sub", "Sub": "Add", "Mul": "Add", "And": "Or", "Or": "And", "Less": "LessOrEqual",
    "Greater": "GreaterOrEqual", "GreaterOrEqual": "Greater", "LessOrEqual": "Less", "ReduceMean": "ReduceMax",
    "ReduceMax": "ReduceMin", "ReduceSum": "ReduceProd", "ReduceMin": "ReduceMax", "ArgMin": "ArgMax",
    "ArgMax": "ArgMin", "LEFT": "RIGHT", "RIGHT": "LEFT", "Floor": "Ceil", "Relu": "Abs", "Abs": "Neg", "Neg": "Abs",
    "BitwiseAnd": "BitwiseOr", "BitwiseOr": "BitwiseXor", "BitwiseXor": "BitwiseOr", "Softmax": "LogSoftmax",
    "int64": "int32", "float32": "float64", "float64": "float32", "bool_": "int8", "zeros": "ones", "ones": "zeros",
    "iu": "iuf", "iub": "iubf", "multiply": "add", "isfinite": "isnan", "bitwise_and": "bitwise_or",
    "ReduceProd": "ReduceSum", "Equal": "LessOrEqual", "Slice": "Identity", "Sign": "Neg", "Exp": "Sigmoid",
}  # fmt: skip
"""Names of functions, types and operators, each with another one that fits in its place."""
_ADDED = {
    "Add": "Sub", "Relu": "Neg", "ReduceMax": "ReduceMean", "Max": "Sub", "And": "Xor", "Less": "Equal",
    "Transpose": "Concat", "MatMul": "Relu", "Neg": "Abs", "BitwiseAnd": "BitwiseXor", "Reshape": "Transpose",
}  # fmt: skip
"""An operator of a list, and one that does not belong beside it."""
_ESSENTIAL = frozenset({"retain", "swap", "bypass", "append", "add", "update"})
"""Methods whose calls stay: a pass that does not call them does nothing, which is sound."""


def _is_refusal(node: ast.If) -> bool:
    """Tell whether an `if` guards the code behind it: it returns False or None, or goes on to the next candidate."""
    only = node.body[0] if len(node.body) == 1 and not node.orelse else None
    if isinstance(only, ast.Return):
        return only.value is None or (isinstance(only.value, ast.Constant) and only.value.value in (False, None))
    return isinstance(only, ast.Continue)


def _is_presence(node: ast.expr) -> bool:
    """Tell whether a condition asks whether something is there; without it the pass would only raise an error."""
    if isinstance(node, ast.Compare):
        return isinstance(node.ops[0], ast.Is | ast.IsNot)
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) and isinstance(node.operand, ast.Name)


def _conditions(test: ast.expr) -> Iterator[ast.expr]:
    """Yield `test` without one of its parts, for each part."""
    if isinstance(test, ast.BoolOp):
        for place, part in enumerate(test.values):
            rest = [*test.values[:place], *test.values[place + 1 :]]
            asks = any(not _asks_for_bugs(one) for one in rest)  # the rest alone must not decide by planted bugs
            if asks and not _is_presence(part) and not _asks_for_bugs(part):
                yield rest[0] if len(rest) == 1 else ast.BoolOp(test.op, rest)


def _of_statement(node: ast.stmt) -> Iterator[NodeChange]:
    if isinstance(node, ast.If) and _is_refusal(node):
        for rest in _conditions(node.test) if isinstance(node.test, ast.BoolOp) else ():
            yield "drop-guard", ast.If(rest, node.body, node.orelse)
        if not isinstance(node.test, ast.BoolOp) and not _is_presence(node.test):
            yield "drop-guard", ast.Pass()
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        called = node.value.func
        if isinstance(called, ast.Attribute) and called.attr not in _ESSENTIAL:
            yield "drop-step", ast.Pass()


def _of_condition(node: ast.expr) -> Iterator[NodeChange]:
    if isinstance(node, ast.BoolOp):
        if isinstance(node.op, ast.And):
            yield from (("drop-condition", rest) for rest in _conditions(node))
    elif isinstance(node, ast.IfExp):
        for part in (node.body, node.orelse):
            if not (isinstance(part, ast.Constant) and part.value is None):  # a pass that finds nothing is sound
                yield "missed-case", part
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARISONS:
        changed = _COMPARISONS[type(node.ops[0])]()
        yield "comparison", ast.Compare(node.left, [changed, *node.ops[1:]], node.comparators)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "negation", node.operand


def _of_number(node: ast.expr) -> Iterator[NodeChange]:
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield "constant", ast.Constant(not node.value)
        elif isinstance(node.value, int):
            yield "constant", ast.Constant(node.value + 1)
        elif isinstance(node.value, float):
            yield "constant", ast.Constant(node.value * 2 + 1)
        elif isinstance(node.value, str) and node.value in _TWINS:
            yield "other-name", ast.Constant(_TWINS[node.value])
    elif isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Sub | ast.FloorDiv | ast.Mod):
            yield "swap", ast.BinOp(node.right, node.op, node.left)
        if type(node.op) in _ARITHMETIC:
            yield "arithmetic", ast.BinOp(node.left, _ARITHMETIC[type(node.op)](), node.right)
        if isinstance(node.op, ast.Mod):
            yield "axis", node.left
    elif isinstance(node, ast.Slice) and node.upper is not None:
        yield "off-by-one", ast.Slice(node.lower, ast.BinOp(node.upper, ast.Sub(), ast.Constant(1)), node.step)


def _of_call(node: ast.expr) -> Iterator[NodeChange]:
    if isinstance(node, ast.Call):
        called, args = node.func, node.args
        name = called.id if isinstance(called, ast.Name) else ""
        if isinstance(called, ast.Attribute) and called.attr == "astype":
            yield "dtype", called.value
        if name == "sorted":
            yield "order", ast.Call(ast.Name("list", ast.Load()), args[:1], [])
        if name == "range" and len(args) == 2:
            yield "off-by-one", ast.Call(called, [args[0], ast.BinOp(args[1], ast.Add(), ast.Constant(1))], [])
        if len(args) == 2 and _is_numeric(called):
            yield "swap", ast.Call(called, [args[1], args[0]], node.keywords)
    elif isinstance(node, ast.Name | ast.Attribute):
        name = node.id if isinstance(node, ast.Name) else node.attr
        if name in _TWINS:
            twin = _TWINS[name]
            changed = (
                ast.Name(twin, node.ctx) if isinstance(node, ast.Name) else ast.Attribute(node.value, twin, node.ctx)
            )
            yield ("dtype" if name in ("int64", "float32", "float64", "bool_") else "other-name"), changed


def _is_numeric(called: ast.expr) -> bool:
    """Tell whether a function is one of numpy, or comes out of a table."""
    if isinstance(called, ast.Attribute):
        return isinstance(called.value, ast.Name) and called.value.id == "np"
    return isinstance(called, ast.Subscript)


def _of_tuple(node: ast.expr) -> Iterator[NodeChange]:
    if isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load):
        words = [one.value for one in node.elts if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        if words and len(words) == len(node.elts):
            for word in words:
                if word in _ADDED and _ADDED[word] not in words:
                    yield "extra-case", ast.Tuple([*node.elts, ast.Constant(_ADDED[word])], ast.Load())
                    break
            return
        if len(node.elts) >= 2:
            yield "swap", ast.Tuple([node.elts[1], node.elts[0], *node.elts[2:]], ast.Load())
        if len(node.elts) >= 2 and any(isinstance(one, ast.Starred) for one in node.elts):
            yield "lost-operand", ast.Tuple(node.elts[:-1], ast.Load())
    elif isinstance(node, ast.Set):
        words = [one.value for one in node.elts if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        for word in words:
            if word in _ADDED and _ADDED[word] not in words:
                yield "extra-case", ast.Set([*node.elts, ast.Constant(_ADDED[word])])
                break


_OPERATORS = (_of_condition, _of_number, _of_call, _of_tuple)


@dataclass(frozen=True, slots=True)
class MutationPlace:
    """A node with the field of its parent in which it stands (`index`: its place in a list, None: alone)."""

    parent: ast.AST
    field: str
    index: int | None
    node: ast.AST

    def put(self, changed: ast.AST) -> None:
        """Put another node in the place."""
        if self.index is None:
            setattr(self.parent, self.field, changed)
        else:
            getattr(self.parent, self.field)[self.index] = changed


@dataclass(frozen=True, slots=True)
class MutationSite:
    """A mutant with the place of its change in the syntax tree of the module, and what is put there.

    `statement` is the innermost statement of a function around it (None: the change is in a table of the module);
    `in_test` tells whether it is within the test of that `if`.
    """

    mutant: Mutant
    place: MutationPlace
    changed: ast.AST
    statement: ast.stmt | None
    in_test: bool


_Walked = tuple[MutationPlace, ast.stmt | None, bool]

_SKIPPED = ("annotation", "returns", "decorator_list", "type_ignores", "args")
"""Fields without anything to change: types, and the parameters of functions."""


def _places(root: ast.AST, statement: ast.stmt | None, in_test: bool) -> Iterator[_Walked]:
    """Yield every node under `root` in order, without annotations, docstrings and what asks for planted bugs."""
    for field, value in ast.iter_fields(root):
        if field in _SKIPPED and not isinstance(root, ast.Call):
            continue
        for index, node in enumerate(value) if isinstance(value, list) else ((None, value),):
            if not isinstance(node, ast.AST) or _is_about_bugs(node):
                continue
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                continue
            if isinstance(node, ast.If | ast.IfExp) and _is_about_bugs(node.test):
                continue
            inner = node if isinstance(node, ast.stmt) else statement
            tested = not isinstance(node, ast.stmt) and (in_test or (isinstance(root, ast.If) and field == "test"))
            yield MutationPlace(root, field, index, node), inner, tested
            yield from _places(node, inner, tested)


def _only_refuses(site: MutationSite) -> bool:
    """Tell whether a table of a module names an operator twice now, so that it only lacks one: its pass does less."""
    parent, changed = site.place.parent, site.changed
    if site.statement is not None or not isinstance(parent, ast.Tuple | ast.Set):
        return False
    words = [one.value for one in parent.elts if isinstance(one, ast.Constant)]
    known = isinstance(changed, ast.Constant) and changed.value in words
    return known and len(words) == len(parent.elts) > 2  # two are an exception to another table


def _is_about_bugs(node: ast.AST) -> bool:
    return isinstance(node, ast.Compare) and any(
        isinstance(one, ast.Name) and one.id == "bugs" for one in ast.walk(node)
    )


def _asks_for_bugs(node: ast.expr) -> bool:
    return any(isinstance(one, ast.Name) and one.id == "bugs" for one in ast.walk(node))


def _changes(place: MutationPlace) -> Iterator[NodeChange]:
    node = place.node
    if isinstance(node, ast.stmt):
        yield from _of_statement(node)
    elif isinstance(node, ast.expr) and not (isinstance(place.parent, ast.Return) and isinstance(node, ast.Constant)):
        for operator in _OPERATORS:  # a constant that a pass returns only reports whether it changed something
            yield from operator(node)


@cache
def source_of(module: str) -> str:
    """Return the source of a module in `MUTATED`."""
    found = find_spec(f"{_TOY}.{module}")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).read_text("utf-8")


def _named_parts(tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    """Yield the functions and tables of a module with their names, without what only planted bugs use."""
    for part in tree.body:
        if isinstance(part, ast.FunctionDef):
            if not (ast.get_docstring(part) or "").startswith("Fault"):  # it runs for planted bugs only
                yield part.name, part
        elif isinstance(part, ast.Assign | ast.AnnAssign):
            target = part.targets[0] if isinstance(part, ast.Assign) else part.target
            if isinstance(target, ast.Name) and not target.id.endswith(("Sweep", "Rule", "_FAULTY")):
                yield target.id, part


def sites_of(module: str, tree: ast.Module, only: str = "") -> Iterator[MutationSite]:
    """Yield all changes of a module in the order of its source, in `tree`, its syntax tree; `only` names just one."""
    counts: dict[tuple[str, str], int] = {}
    for function, part in _named_parts(tree):
        for place, statement, in_test in _places(part, None, False):
            for operator, changed in _changes(place):
                number = counts[function, operator] = counts.get((function, operator), 0) + 1
                name = f"{module.rpartition('.')[2]}.{function.strip('_')}.{operator}.{number}"
                if only and name != only:
                    continue
                line = getattr(place.node, "lineno", getattr(place.parent, "lineno", 0))
                before, after = (ast.unparse(ast.fix_missing_locations(one)) for one in (place.node, changed))
                if before != after:
                    mutant = Mutant(name, module, function, operator, line, before, after)
                    site = MutationSite(mutant, place, changed, statement, in_test)
                    if not _only_refuses(site):
                        yield site


@cache
def mutants() -> tuple[Mutant, ...]:
    """Return all mutants in the order of the source."""
    return tuple(site.mutant for module in MUTATED for site in sites_of(module, ast.parse(source_of(module))))


@cache
def _compiled(module: str) -> CodeType:
    return compile(source_of(module), f"<{module}>", "exec")


def _mutated(name: str) -> tuple[str, ast.Module]:
    """Return the module of a mutant and its changed tree. Raises SpecError for an unknown name."""
    for module in MUTATED:
        if name.startswith(module.rpartition(".")[2] + "."):
            tree = ast.parse(source_of(module))
            for site in sites_of(module, tree, name):
                site.place.put(ast.copy_location(site.changed, site.place.node))
                return module, ast.fix_missing_locations(tree)
    raise SpecError(
        f"toy has no optimiser '{name}'; write reference, or a mutant of `python -m evaluation mutants --list`"
    )


def load(name: str) -> Optimiser:
    """Return the optimiser called `name`: `plain`, `reference`, or a mutant of the latter.

    Raises SpecError for an unknown name, and whatever the changed module raises when it is executed.
    """
    if name in ("plain", "reference"):
        return PLAIN if name == "plain" else REFERENCE
    module, tree = _mutated(name)
    return Modules({module: tree}).optimiser()


class Modules:
    """The modules of the optimiser, executed again: they import each other from here, everything else as usual.

    `changed` are the syntax trees of those that differ from the source, `extra` further built-in names for them.
    """

    def __init__(self, changed: Mapping[str, ast.Module], extra: Mapping[str, object] | None = None) -> None:
        self._changed = {name: compile(tree, f"<{name}>", "exec") for name, tree in changed.items()}
        self._made: dict[str, ModuleType] = {}
        self._builtins = {**vars(builtins), **(extra or {}), "__import__": self._import}

    def optimiser(self) -> Optimiser:
        """Return the optimiser that these modules are."""
        pipeline, table = self.module("passes.pipeline"), self.module("kernels.table")
        return Optimiser(pipeline.optimise, table.interpret, self.module("passes.reference").REFERENCE_PASSES)

    def module(self, name: str) -> ModuleType:
        """Return the module `name` (without the package's name), executing it when it is wanted first."""
        if name not in self._made:
            made = self._made[name] = ModuleType(f"{_TOY}.{name}")
            vars(made)["__builtins__"] = self._builtins
            exec(self._changed.get(name) or _compiled(name), vars(made))
        return self._made[name]

    def _import(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: tuple[str, ...] = (),
        level: int = 0,
    ) -> ModuleType:
        short = name.removeprefix(f"{_TOY}.")
        if short in _RELOADED:
            return self.module(short)
        if short in ("passes", "kernels"):
            package = ModuleType(name)
            for part in fromlist:
                whole = f"{short}.{part}"
                usual = self.module(whole) if whole in _RELOADED else import_module(f"{name}.{part}")
                setattr(package, part, usual)
            return package
        return __import__(name, globals, locals, fromlist, level)
