"""The generator of HIRFUZZ, as exactly as ONNX can represent its programs.

`hirfuzz` is the strict generation of HIRFUZZ (sections 3.1.2 to 3.1.4, Algorithm 1) over its 58 operators and eleven
dtypes: no motifs, no no-ops, one program for each graph. One difference remains: every operand is within the
operator's domain, by selection or by a guard operator, whereas the paper's oracle handles domain errors.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from miscompile.base.errors import RejectedDraft, SpecError, UsageError
from miscompile.base.specs import print_spec
from miscompile.core.case import Case
from miscompile.core.outcome import Outcome
from miscompile.core.verdict import Verdict
from miscompile.ops.registry import schema, specs, version_of
from miscompile.ops.spec import Operand, OperatorLimits
from miscompile.ops.support import Support
from miscompile.ops.values import Style
from miscompile.producers.coverage import Coverage, Path
from miscompile.producers.finish import finish, leaves
from miscompile.producers.hirfuzz.operators import HIRFUZZ_DTYPES, HIRFUZZ_OPERATORS, by_name, plain_names
from miscompile.producers.hirfuzz.paper_operator import PaperOperator, encode, hide, operands_of
from miscompile.producers.kinds import ProducerKind
from miscompile.producers.scope import CallRefused, Scope
from miscompile.producers.sites import ScopeSite

PresetGuidance = Literal["gate", "released", "steer", "off"]
"""gate: a node enters only if it adds coverage, as in the paper; released: with a probability that grows with the
number of coverages it increases, as in the released code; steer: pairs with fewer attempts are preferred; off: uniform.
"""

_RELEASED = (0.0, 0.11, 0.51, 1.0)
"""The probability with which the released code inserts a node that increases none, one, two or three coverages."""

_LARGEST_VALUE = 10.0
"""The largest magnitude of a random float, as in the released code."""


@dataclass(frozen=True, slots=True)
class HirfuzzOptions:
    """The options of the preset; the defaults are those of the paper, or else of the released code.

    `nodes` is the number of the paper's operators in a graph, without guards and the inner steps of chains. `ops`
    excludes every operator whose decomposition needs an ONNX operator that it does not name. `path` = 3 adds the
    coverage of paths of three operators. `reuse` is the probability to look for an existing operand first,
    `constants` the probability that a new operand is a constant. `patience` is the number of consecutive failed
    draws after which a graph ends early. `integral` is the share of graphs in exact arithmetic, `full` the share
    whose narrow integers use their whole range.
    """

    nodes: int = 100
    ops: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    opsets: tuple[int, ...] = (18, 20, 21, 22)
    max_rank: int = 3
    max_dim: int = 16
    max_elements: int = 4096
    guidance: PresetGuidance = "gate"
    path: int = 2
    reuse: float = 2 / 3
    constants: float = 0.25
    patience: int = 1000
    integral: float = 0.5
    full: float = 0.5
    feeds: int = 1
    share: float = 1.0

    def __post_init__(self) -> None:
        """Raise SpecError for values that exclude every graph."""
        if min(self.nodes, self.max_dim, self.max_elements, self.patience, self.feeds) < 1:
            raise SpecError("nodes, max_dim, max_elements, patience and feeds must be at least 1")
        if self.path not in (2, 3):
            raise SpecError("path must be 2 (operator edges) or 3 (paths of three operators)")
        if self.max_rank < 0 or self.share <= 0 or not self.opsets:
            raise SpecError("max_rank must not be negative, share must be more than 0, and opsets not empty")
        if not all(0 <= chance <= 1 for chance in (self.reuse, self.constants, self.integral, self.full)):
            raise SpecError("reuse, constants, integral and full are probabilities: from 0 to 1")


@dataclass(slots=True)
class HirfuzzGraph:
    """A graph under construction: its scope, its operators, and the producer of each value.

    `labels` contains for each value the paper's name of its producer ("" for none of the 58), `parents` the labels
    of the parents of each operator's result.
    """

    scope: Scope
    operators: list[str] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)
    parents: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def label(self, operand: Operand) -> str:
        """Return the paper's name of the producer of `operand`; for a guard, the name of its ONNX operator."""
        own = self.labels.get(operand.name)
        return plain_names().get(self.scope.producer[operand.name], "") if own is None else own

    def paths(self, op: str, operands: Sequence[Operand]) -> set[Path]:
        """Return the paths of three operators that would end at a node of `op`."""
        found = {
            (first, self.label(operand), op) for operand in operands for first in self.parents.get(operand.name, ())
        }
        return {path for path in found if all(path)}

    def add(self, op: str, result: Operand, operands: Sequence[Operand]) -> None:
        """Add a node to the coverage and the labels."""
        parents = tuple([self.label(operand) for operand in operands])
        self.operators.append(op)
        self.labels[result.name] = op
        self.parents[result.name] = parents


class Hirfuzz:
    """Producer of the preset `hirfuzz`. Its coverage grows with every case, so a case depends on earlier ones."""

    def __init__(self, options: HirfuzzOptions, support: Support) -> None:
        self.options = options
        self.support = support
        self.coverage = Coverage()
        self.spec = print_spec("hirfuzz", options)
        self._limits = OperatorLimits(options.max_rank, options.max_dim, options.max_elements, zero_size=0.0)
        self._barren: set[tuple[str, str, int]] = set()
        self._menu = lru_cache(maxsize=None)(self._make_menu)
        if not any(self._menu(opset) for opset in options.opsets):
            raise UsageError("none of HIRFUZZ's operators is left: the target takes none of those asked for")

    def propose(self, rng: random.Random) -> Case:
        """Return the next graph as a case whose outputs are all leaves. Raises UsageError when no operator can be
        inserted."""
        graph = self.grow(rng)
        if not graph.operators:
            raise UsageError("no graph comes about under these options; allow more with --ops, --dtypes, --max-rank")
        recipe = {"producer": self.spec, "opset": graph.scope.opset, "operators": list(graph.operators)}
        return finish(graph.scope, leaves(graph.scope), self.options.feeds, recipe)

    def learn(self, case: Case, outcomes: Sequence[Outcome], verdict: Verdict) -> None:
        """Do nothing, because the coverages count graphs and not outcomes."""

    def grow(self, rng: random.Random) -> HirfuzzGraph:
        """Grow a graph: GENERATION of Algorithm 1."""
        options = self.options
        opset = rng.choice([opset for opset in options.opsets if self._menu(opset)])
        style = Style(rng.random() < options.integral, rng.random() < options.full, _LARGEST_VALUE)
        graph = HirfuzzGraph(Scope(rng, opset, self._limits, style, self.support))
        idle = 0
        while len(graph.operators) < options.nodes and idle < options.patience:
            idle = 0 if self._insert(graph) else idle + 1
        return graph

    def _insert(self, graph: HirfuzzGraph) -> bool:
        """Draw an operator and dtype, and insert it if operands are found and the guidance admits it; tell whether it
        was inserted.
        """
        scope, options, coverage = graph.scope, self.options, self.coverage
        looks = 2 if options.guidance == "steer" else 1
        op, dtype = coverage.choose(scope.rng, self._menu(scope.opset), looks)
        mark = scope.mark()
        try:
            operands, (*inner, result) = self._preinsert(scope, by_name()[op], dtype)
        except RejectedDraft:
            coverage.refuse(op, dtype)
            scope.rollback(mark)
            return False
        parents = [graph.label(operand) for operand in operands]
        paths = graph.paths(op, operands) if options.path > 2 else set()
        if not self._admits(scope.rng, coverage.fresh(op, dtype, result.shape, parents, paths)):
            scope.rollback(mark)
            return False
        for operand in inner:
            hide(scope, operand)
        coverage.add(op, dtype, result.shape, parents, paths)
        graph.add(op, result, operands)
        return True

    def _admits(self, rng: random.Random, fresh: int) -> bool:
        guidance = self.options.guidance
        if guidance == "gate":
            return fresh > 0
        return guidance != "released" or rng.random() < _RELEASED[min(fresh, len(_RELEASED) - 1)]

    def _preinsert(
        self, scope: Scope, operator: PaperOperator, dtype: str
    ) -> tuple[tuple[Operand, ...], tuple[Operand, ...]]:
        """Select or create the operands and add the operator's steps; return the operands and their results.

        Raises RejectedDraft when no operands are found or a node cannot be added.
        """
        decomposition = operator.decomposition(dtype)
        key = (operator.name, dtype, scope.opset)
        if decomposition is None or key in self._barren:
            raise RejectedDraft(f"{operator.name} of {dtype} has no ONNX equivalent")
        site = ScopeSite(scope, dtype, self.options.reuse, self.options.constants, pinned=0.0)
        operands = operands_of(site, operator, decomposition)
        try:
            return operands, encode(scope, decomposition, operands)
        except CallRefused:
            self._barren.add(key)  # every draw of this operator in this dtype leads to the same calls
            raise

    def _make_menu(self, opset: int) -> tuple[tuple[str, str], ...]:
        return tuple(self._offered(opset))

    def _offered(self, opset: int) -> Iterator[tuple[str, str]]:
        """Yield the (operator, dtype) pairs whose operators the opset has, and whose first step the target supports."""
        options = self.options
        for operator in HIRFUZZ_OPERATORS:
            for dtype in HIRFUZZ_DTYPES:
                decomposition = operator.decomposition(dtype)
                if decomposition is None or (options.dtypes and dtype not in options.dtypes):
                    continue
                if options.ops and not set(decomposition.operators) <= set(options.ops):
                    continue
                if all(schema(op, opset) is not None and opset >= specs()[op].since for op in decomposition.operators):
                    first = decomposition.operators[0]
                    if self.support.offers(first, dtype, version_of(first, opset), specs()[first].main):
                        yield operator.name, dtype


HIRFUZZ = ProducerKind(
    "hirfuzz",
    HirfuzzOptions,
    lambda options, context: Hirfuzz(options, context.support),
    guided="gate",
    own_opsets=True,
)
"""The kind `hirfuzz`."""
