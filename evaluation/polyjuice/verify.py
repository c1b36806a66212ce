"""The check of a whole e-graph: every term is evaluated and compared with the value of its class.

It detects an unsound rule, or an engine that merges unequal classes, independently of extraction. Inputs are small
integers, in floats too, so that most terms must agree exactly.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from miscompile.base.dtypes import DTYPES
from miscompile.base.rng import array_stream
from miscompile.core.tensor import Array, Tensor
from miscompile.transforms.egraph.program import LEAVES, OPAQUE, TermProgram, is_constant
from miscompile.transforms.rules.kinds import ELEMENTS
from miscompile.transforms.rules.terms import Symbol, TermType, evaluate

_SLACK = 64
"""Greatest difference of two computations of a value, in units in the last place of the greatest operand or result."""

_FULL = 0.3
"""Share of the integer inputs that cover the whole range of their type."""


@dataclass(slots=True)
class Verified:
    """The results of checks: numbers of evaluated terms by outcome.

    `exact` terms equalled the value of their class, `close` ones up to rounding; `unbounded` ones were not compared,
    because the value has infinities or NaN, for which rounding rules guarantee nothing. `bad` describes the others.
    """

    exact: int = 0
    close: int = 0
    unbounded: int = 0
    operators: Counter[str] = field(default_factory=Counter)
    bad: list[str] = field(default_factory=list)

    @property
    def checked(self) -> int:
        """The number of terms that were compared with the value of their class."""
        return self.exact + self.close + len(self.bad)


def verify(program: TermProgram, seed: int, found: Verified) -> None:
    """Evaluate every term of the e-graph of `program` on inputs drawn from `seed`, and add to `found`.

    Results of nodes outside the language are drawn as well, because the language cannot evaluate them. Classes without
    a type are skipped.
    """
    _Checker(program, seed, found).run()


class _Checker:
    """One e-graph, with the values of its classes."""

    def __init__(self, program: TermProgram, seed: int, found: Verified) -> None:
        self._program = program
        self._graph = program.graph
        self._rng = array_stream(seed, "verify")
        self._found = found
        self._values: dict[int, Array] = {}
        self._constants: dict[str, Tensor] = dict(program.model.graph.initializers)
        for node in program.model.graph.nodes:
            if is_constant(node):
                self._constants[node.outputs[0]] = node.attributes["value"].value
        for info in program.model.graph.inputs:
            self._constants.pop(info.name, None)

    def run(self) -> None:
        """Find a value for each class, then compare its terms with it."""
        graph = self._graph
        waiting = [number for number in graph.members if graph.types[number] is not None]
        self._program_values()
        progress = True
        while progress:
            progress = False
            for number in waiting:
                if number not in self._values:
                    progress = self._settle(number) or progress
        for number in waiting:
            if number in self._values:
                for node in graph.nodes_of(number):
                    self._check(number, node)

    def _program_values(self) -> None:
        """Compute the values of the program's classes, in its own order."""
        for name in self._program.values:
            number = self._graph.find(self._program.values[name])
            kind = self._graph.types[number]
            if kind is None or number in self._values:
                continue
            symbol, children = self._term(self._first(number))
            if name in self._constants:
                self._values[number] = numbers(self._constants[name])
            elif symbol.op in LEAVES or symbol.op == OPAQUE:
                self._values[number] = self._drawn(kind)
            elif all(child in self._values for child in children):
                self._values[number] = self._evaluated(symbol, children)

    def _first(self, number: int) -> int:
        """Return the earliest node of the program in a class that holds a value of it."""
        origins = self._graph.origins
        return min((node for node in self._graph.nodes_of(number) if node in origins), key=origins.__getitem__)

    def _settle(self, number: int) -> bool:
        """Give a class the value of its first term whose operands have values; tell whether there is one."""
        for node in self._graph.nodes_of(number):
            symbol, children = self._term(node)
            if symbol.op in LEAVES or symbol.op == OPAQUE:
                continue
            if all(child in self._values for child in children):
                self._values[number] = self._evaluated(symbol, children)
                return True
        return False

    def _term(self, node: int) -> tuple[Symbol, tuple[int, ...]]:
        key = self._graph.terms[node] or (0,)
        return self._graph.symbols[key[0]], tuple([self._graph.find(child) for child in key[1:]])

    def _evaluated(self, symbol: Symbol, children: Sequence[int]) -> Array:
        return evaluate(symbol, tuple([self._values[child] for child in children]))

    def _drawn(self, kind: TermType) -> Array:
        """Return random elements: small integers, or for integer types sometimes the whole range."""
        dtype = DTYPES[kind.dtype]
        if dtype.kind == "bool":
            return self._rng.random(kind.shape) < 0.5
        if dtype.kind in ("int", "uint") and self._rng.random() < _FULL:
            limits = np.iinfo(dtype.storage)
            return self._rng.integers(limits.min, limits.max, kind.shape, dtype.storage, endpoint=True)
        low = 0 if dtype.kind == "uint" else -4
        return self._rng.integers(low, 5, kind.shape).astype(ELEMENTS[kind.dtype])

    def _check(self, number: int, node: int) -> None:
        symbol, children = self._term(node)
        if symbol.op in LEAVES or symbol.op == OPAQUE or any(child not in self._values for child in children):
            return
        value = self._evaluated(symbol, children)
        self._found.operators[symbol.op] += 1
        expected, kind = self._values[number], self._graph.types[number]
        fits = kind is not None and value.shape == kind.shape and value.dtype == ELEMENTS[kind.dtype]
        if fits and np.array_equal(value, expected, equal_nan=value.dtype.kind not in "iub"):
            self._found.exact += 1
        elif not fits or value.dtype.kind in "iub":
            self._report(number, symbol, children)
        else:
            self._compare(number, symbol, children, value)

    def _compare(self, number: int, symbol: Symbol, children: Sequence[int], value: Array) -> None:
        """Compare floats that are not equal, up to rounding at the size of the operands and the result."""
        kind = self._graph.types[number]
        expected = self._values[number]
        every = [expected, value, *(self._values[child] for child in children)]
        wide = [each.astype(np.float64) for each in every]
        if not all(np.isfinite(each).all() for each in wide):
            self._found.unbounded += 1
            return
        scale = max([1.0, *(float(np.abs(each).max(initial=0.0)) for each in wide)])
        gap = float(np.abs(wide[0] - wide[1]).max(initial=0.0))
        eps = DTYPES[kind.dtype if kind else "float32"].eps
        if gap <= _SLACK * eps * scale:
            self._found.close += 1
        else:
            self._report(number, symbol, children)

    def _report(self, number: int, symbol: Symbol, children: Sequence[int]) -> None:
        types = [self._graph.types[child] for child in children]
        self._found.bad.append(f"{symbol} of {types} in a class of {self._graph.types[number]}")


def numbers(value: Tensor) -> Array:
    """Return the elements of a tensor in the evaluation type: bfloat16 as ml_dtypes numbers."""
    return value.array.view(ELEMENTS[value.dtype]) if value.dtype == "bfloat16" else value.array


def table(rules: Sequence[str], matches: Mapping[str, int], unions: Mapping[str, int]) -> str:
    """Return a table of each rule's matches and merges of classes, the rarest first."""
    rows = sorted(rules, key=lambda name: (unions.get(name, 0), name))
    return "\n".join(f"{unions.get(name, 0):8}{matches.get(name, 0):9}  {name}" for name in rows)
