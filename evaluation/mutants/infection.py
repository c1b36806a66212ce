"""Which mutants does a test concern? The sound optimiser, instrumented, tells it in one run for all of them.

A mutant of the test of an `if`, or of a value that is assigned or returned, is infected when it gave another answer or
value somewhere than the sound one. Any other mutant is infected when its statement was executed. Only infected mutants
are run, because the others compute what the sound optimiser computes.
"""

import ast
import copy
from collections.abc import Callable, Collection, Iterator
from functools import cache

import numpy as np

from miscompile.targets.toy.mutants import MUTATED, Modules, MutationSite, sites_of, source_of

_PLAIN_WRITES = frozenset(
    {
        "append", "extend", "insert", "remove", "pop", "add", "update", "setdefault", "clear", "sort", "next",
        "fresh", "add_constant", "swap", "bypass", "swap_out", "rename", "retain",
        "rule", "sweep",
    }
)  # fmt: skip
"""Functions that change a program, a container or an iterator, so that an expression with them cannot be tried twice:
those of Python and of `Code`, and parameters that are rules. `_writers` adds the functions of the passes."""


@cache
def _writers() -> frozenset[str]:
    """Return the names of all functions that write, because they call one or put something into what they are given."""
    functions = [
        one for module in MUTATED for one in ast.walk(ast.parse(source_of(module))) if isinstance(one, ast.FunctionDef)
    ]
    found = set(_PLAIN_WRITES) | {one.name for one in functions if _stores(one)}
    while True:
        more = {one.name for one in functions if one.name not in found and found & _called(one)}
        if not more:
            return frozenset(found)
        found |= more


def _stores(function: ast.FunctionDef) -> bool:
    """Tell whether a function assigns to an element or an attribute of something."""
    return any(
        isinstance(one, ast.Subscript | ast.Attribute) and isinstance(one.ctx, ast.Store) for one in ast.walk(function)
    )


def _called(root: ast.AST) -> set[str]:
    return {
        getattr(one.func, "id", getattr(one.func, "attr", "")) for one in ast.walk(root) if isinstance(one, ast.Call)
    }


def _same(one: object, other: object) -> bool:
    """Tell whether two values are the same to the last bit; what cannot be compared is not."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray | np.generic) and isinstance(other, np.ndarray | np.generic):
        return (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(map(_same, one.values(), other.values()))
    return isinstance(one, str | bool | int | np.dtype | slice | set | frozenset) and one == other


class Infection:
    """The sound optimiser with probes for `living` mutants; `names` are those that the last run has infected."""

    def __init__(self, living: Collection[str]) -> None:
        self.names: set[str] = set()
        self._of_statement: dict[int, list[str]] = {}
        self._tables: list[tuple[str, frozenset[str]]] = []
        wanted = frozenset(living)
        changed = {module: self._instrumented(module, wanted) for module in MUTATED}
        self.optimiser = Modules(changed, {"__reached__": self._reached, "__tried__": self._tried}).optimiser()

    def clear(self) -> None:
        """Forget the last run."""
        self.names = set()

    def meet(self, operators: Collection[str]) -> None:
        """Infect the mutants of tables outside functions that name one of the `operators`, or none at all."""
        self.names.update(name for name, words in self._tables if not words or words.intersection(operators))

    def _reached(self, number: int) -> None:
        self.names.update(self._of_statement[number])

    def _tried(self, sound: Callable[[], object], others: tuple[tuple[str, Callable[[], object]], ...]) -> None:
        others = tuple([entry for entry in others if entry[0] not in self.names])
        if not others:
            return
        try:
            wanted = sound()
        except Exception:  # noqa: BLE001 - the pass will raise it; nothing is known of the mutants
            self.names.update(name for name, _ in others)
            return
        for name, other in others:
            if name not in self.names:
                try:
                    infected = not _same(other(), wanted)
                except Exception:  # noqa: BLE001 - whatever the mutant raises, it is not what the sound test does
                    infected = True
                if infected:
                    self.names.add(name)

    def _instrumented(self, module: str, wanted: frozenset[str]) -> ast.Module:
        tree = ast.parse(source_of(module))
        reached: dict[ast.stmt, list[str]] = {}
        tried: dict[ast.stmt, list[tuple[str, ast.expr]]] = {}
        for site in list(sites_of(module, tree)):
            if site.mutant.name not in wanted:
                continue
            statement = site.statement
            if statement is None:
                words = {one.value for part in (site.place.node, site.changed) for one in ast.walk(part)
                         if isinstance(one, ast.Constant) and isinstance(one.value, str)}  # fmt: skip
                self._tables.append((site.mutant.name, frozenset(words)))
                continue
            changed = _changed_expression(site)
            if changed is not None:
                tried.setdefault(statement, []).append((site.mutant.name, changed))
            else:
                reached.setdefault(statement, []).append(site.mutant.name)
        probes = {one: list(self._probes(one, reached, tried)) for one in {*reached, *tried}}
        _insert(tree, probes)
        return ast.fix_missing_locations(tree)

    def _probes(
        self,
        statement: ast.stmt,
        reached: dict[ast.stmt, list[str]],
        tried: dict[ast.stmt, list[tuple[str, ast.expr]]],
    ) -> Iterator[ast.stmt]:
        if statement in reached:
            number = len(self._of_statement)
            self._of_statement[number] = reached[statement]
            yield _call("__reached__", ast.Constant(number))
        if statement in tried:
            sound = _computed(statement)
            assert sound is not None
            others = [ast.Tuple([ast.Constant(name), _thunk(test)], ast.Load()) for name, test in tried[statement]]
            yield _call("__tried__", _thunk(sound), ast.Tuple(list(others), ast.Load()))


def _thunk(test: ast.expr) -> ast.expr:
    nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.Lambda(nothing, test)


def _call(name: str, *args: ast.expr) -> ast.stmt:
    return ast.Expr(ast.Call(ast.Name(name, ast.Load()), list(args), []))


def _computed(statement: ast.stmt | None) -> ast.expr | None:
    """Return a copy of the expression that says what a statement does: the answer of an `if`, or a value."""
    match statement:
        case ast.If(test=test):
            return ast.UnaryOp(ast.Not(), copy.deepcopy(test))
        case ast.Assign(value=value) | ast.Return(value=ast.expr() as value) | ast.AnnAssign(value=ast.expr() as value):
            return copy.deepcopy(value)
    return None


def _changed_expression(site: MutationSite) -> ast.expr | None:
    """Return what the statement of a mutant computes, if that is all that the change is about and it can be tried."""
    statement = site.statement
    sound = _computed(statement)
    if sound is None or statement is None or _called(sound) & _writers():
        return None
    if isinstance(statement, ast.If):
        if site.place.node is statement:  # a guard that is gone, or has fewer conditions
            return _computed(site.changed) if isinstance(site.changed, ast.If) else ast.Constant(True)
        if not site.in_test:
            return None
    elif site.place.node is statement:
        return None
    site.place.put(site.changed)
    changed = _computed(statement)
    site.place.put(site.place.node)
    return None if changed is None or _called(changed) & _writers() else changed


def _insert(tree: ast.AST, probes: dict[ast.stmt, list[ast.stmt]]) -> None:
    """Put the probes of each statement before it."""
    for node in list(ast.walk(tree)):
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if isinstance(body, list):
                setattr(node, field, [one for old in body for one in (*probes.get(old, ()), old)])
