"""Which mutants does a test concern? The sound optimiser, instrumented, tells it in one run for all of them.

A mutant of the test of an `if` is infected when its test gave another answer somewhere than the sound one. Any other
mutant is infected when its statement was executed. Only infected mutants are run, because the others compute what the
sound optimiser computes.
"""

import ast
import copy
from collections.abc import Callable, Collection, Iterator

from miscompile.targets.toy.mutants import MUTATED, Modules, MutationSite, sites_of, source_of

_WRITES = frozenset({"_rescale", "merge_reshapes", "rule", "sweep", "_become", "setdefault", "add_constant"})
"""Functions that a test of an `if` may call and that change the program, so that it cannot be tried twice."""


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
        wanted = bool(sound())
        for name, other in others:
            if name not in self.names:
                try:
                    infected = bool(other()) != wanted
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
            test = _changed_test(site)
            if test is not None:
                tried.setdefault(statement, []).append((site.mutant.name, test))
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
            assert isinstance(statement, ast.If)
            others = [ast.Tuple([ast.Constant(name), _thunk(test)], ast.Load()) for name, test in tried[statement]]
            yield _call("__tried__", _thunk(copy.deepcopy(statement.test)), ast.Tuple(list(others), ast.Load()))


def _thunk(test: ast.expr) -> ast.expr:
    nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.Lambda(nothing, test)


def _call(name: str, *args: ast.expr) -> ast.stmt:
    return ast.Expr(ast.Call(ast.Name(name, ast.Load()), list(args), []))


def _changed_test(site: MutationSite) -> ast.expr | None:
    """Return the test of the mutant if the change is in a test of an `if` that can be tried."""
    statement = site.statement
    if not isinstance(statement, ast.If) or not (site.in_test or site.place.node is statement):
        return None
    called = {getattr(one.func, "id", getattr(one.func, "attr", "")) for one in ast.walk(statement.test)
              if isinstance(one, ast.Call)}  # fmt: skip
    if called & _WRITES:
        return None
    if site.place.node is statement:
        return copy.deepcopy(site.changed.test) if isinstance(site.changed, ast.If) else ast.Constant(False)
    site.place.put(site.changed)
    test = copy.deepcopy(statement.test)
    site.place.put(site.place.node)
    return test


def _insert(tree: ast.AST, probes: dict[ast.stmt, list[ast.stmt]]) -> None:
    """Put the probes of each statement before it."""
    for node in list(ast.walk(tree)):
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if isinstance(body, list):
                setattr(node, field, [one for old in body for one in (*probes.get(old, ()), old)])
