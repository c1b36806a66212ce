"""The cross-check of a suite's expected results against a second implementation.

The expected results come from onnx's reference evaluator. The users of a suite cannot examine a mismatch as this tool
does, and a suite compares every element under one tolerance. So a test is exported only if `assess` finds no
unspecified element, noise moves no element beyond its tolerance, and a second implementation agrees: a compiler, or
onnx's node case that the test is from.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Self

import numpy as np

from miscompile.base.dtypes import DTYPES
from miscompile.base.errors import UsageError
from miscompile.core.case import Feed
from miscompile.core.outcome import Outcome, Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Tensor
from miscompile.execution.limits import Limits
from miscompile.execution.pool import LocalPool
from miscompile.execution.runners import ParallelRunner
from miscompile.harvest.libraries.onnx import node_results
from miscompile.migration.suite import tolerances
from miscompile.oracles.library_reference import Dropped, LibraryReference, assess, reference_case, wide
from miscompile.producers.instances.migrated import Migrated
from miscompile.targets.front_ends import reference_of
from miscompile.targets.registry import second_implementations


class Pools:
    """A context manager with one pool of one worker for each used target."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._stack = ExitStack()
        self._open: dict[str, LocalPool] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def pool(self, target: str) -> LocalPool:
        """Return the pool of a target; its worker stays until all are closed."""
        if target not in self._open:
            self._open[target] = self._stack.enter_context(LocalPool(target, 1, self._limits))
        return self._open[target]


_LIMITS = Limits(seconds=60.0, memory=8 << 30)
_OPEN, _MOVES = "its results are left open", "its results move under noise"
_REASONS = {
    "random": "draws numbers",
    "undefined": _OPEN,
    "unspecified": _OPEN,
    "unstable": _MOVES,
    "no tensor": "no tensor comes of it",
}
_MARGIN = 4.0
"""Factor by which the tolerances must exceed the movement under noise, because implementations round several times."""
ALONE = "nobody agrees with onnx's reference evaluator"


class CrossCheck(Pools):
    """Runs the evaluator and the compilers of the cross-check; a context manager, because it keeps their workers.

    `asked` names the compilers; None stands for all that are installed.
    """

    def __init__(self, asked: Sequence[str] | None = None) -> None:
        super().__init__(_LIMITS)
        self._compilers = tuple(second_implementations()) if asked is None else tuple(asked)

    def expected(self, tests: Sequence[Migrated]) -> list[Feed | str]:
        """Return for each test of ONNX the expected results, or the reason why it has none."""
        library = reference_of("onnx")
        cases = [reference_case(test.instance, test.case) for test in tests]
        asked = self._ask(library, [Run(case, library, Build("off"), "judge") for case in cases])
        found = [_steady(test, outcome) for test, outcome in zip(tests, asked, strict=True)]
        alone = [place for place, one in enumerate(found) if not isinstance(one, str)]
        for name in self._compilers:
            try:
                answers = self._ask(name, [Run(tests[place].case, name, Build("off")) for place in alone])
            except UsageError:
                continue  # it is installed but cannot be loaded
            alone = [
                place
                for place, outcome in zip(alone, answers, strict=True)
                if not (isinstance(outcome, Values) and _agree(tests[place], found[place], outcome.results[0]))
            ]
        if not self._compilers:
            return found
        for place in alone:
            if not _agree(tests[place], found[place], node_results().get(tests[place].instance.origin, ())):
                found[place] = ALONE
        return found

    def _ask(self, target: str, runs: Sequence[Run]) -> list[Outcome]:
        return ParallelRunner(self.pool(target)).run(runs) if runs else []


def _steady(test: Migrated, outcome: Outcome) -> Feed | str:
    """Return the evaluator's results if every element is specified and stable, else the reason to omit the test."""
    found = assess(test.instance, test.case, outcome)
    if isinstance(found, Dropped):
        return _REASONS.get(found.reason, "the reference evaluator does not run it")
    results = tuple(value for value in found.results if value is not None)
    if any(one is None or not np.isfinite(one).all() for one in found.spread):
        return _OPEN
    return results if _moves_little(found, results, *tolerances(test.case, (results,))) else _MOVES


def _moves_little(found: LibraryReference, results: Feed, rtol: float, atol: float) -> bool:
    """Tell whether the movement under noise is well within the tolerances; integers must not move."""
    for spread, value in zip(found.spread, results, strict=True):
        if spread is None or value.dtype == "string":
            continue  # texts that move are unspecified
        size = np.abs(wide(value))
        exact = DTYPES[value.dtype].kind not in ("float", "complex")
        allowed = np.zeros(size.shape) if exact else atol + rtol * np.where(np.isfinite(size), size, 0.0)
        if (_MARGIN * np.asarray(spread, np.float64) > allowed).any():
            return False
    return True


def _agree(test: Migrated, expected: Feed | str, results: Sequence[Tensor | None]) -> bool:
    """Tell whether results agree with the expected ones, by the suite's own tolerances."""
    if isinstance(expected, str) or len(results) != len(expected):
        return False
    rtol, atol = tolerances(test.case, (expected,))
    return all(
        other is not None and _same(one, other, rtol, atol) for one, other in zip(expected, results, strict=True)
    )


def _same(one: Tensor, other: Tensor, rtol: float, atol: float) -> bool:
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        return False
    if DTYPES[one.dtype].kind not in ("float", "complex"):
        return one.same(other)
    return bool(np.allclose(wide(other), wide(one), rtol, atol, equal_nan=True))
