"""Programs on special values: few operators whose results are specified everywhere, with operands at the edges.

The other producers keep every value inside an interval in which no operator overflows or leaves its domain, so that
rounding can be told from bugs. Here elements are NaN, infinities, zeros of either sign, the ends of types and of
operators, among usual ones. Values are used again and again, because folds that forget special values replace
operators of operators: `Log(Exp(x))`, `Mul(x, 0)`, `Div(x, x)`. A share of the programs has a motif instead, whose
values and constants are such elements too.
"""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from miscompile.base.dtypes import DTYPES, FLOATS, INTEGERS, is_float
from miscompile.base.errors import RejectedDraft, SpecError, UsageError
from miscompile.base.specs import print_spec
from miscompile.core.case import Case
from miscompile.core.outcome import Outcome
from miscompile.core.tensor import Array, Tensor
from miscompile.core.verdict import Verdict
from miscompile.graph.model import TensorType
from miscompile.ops.facts import Exactness, Facts
from miscompile.ops.registry import dtypes_of, specs, version_of
from miscompile.ops.shapes import draw_partner
from miscompile.ops.spec import Call, Operand, OperatorLimits, OpSpec, Shape
from miscompile.ops.special import special_elements
from miscompile.ops.support import Support
from miscompile.ops.values import Range, Style, choose_range, draw
from miscompile.patterns.language import Motif
from miscompile.patterns.shipped import fusion_motifs, noop_motifs
from miscompile.producers.finish import finish, inner_results, leaves
from miscompile.producers.kinds import ProducerKind
from miscompile.producers.motifs.plant import Mutations, plant
from miscompile.producers.options import OPSETS
from miscompile.producers.scope import Scope
from miscompile.producers.sites import ScopeSite, insert

ORACLE = "special"
"""The oracle that judges these programs."""

_ATTEMPTS = 2000
_WEIGHTS = {"float32": 6, "float64": 2, "float16": 2, "bfloat16": 1}
"""How often each type is the main one of a program; integers and bool once."""

_ELEMENTWISE, _EDGED = 4, 12
"""Weights of operators on single elements, and of those of them with edges, which folds are about; others have one.
Motifs of operators on single elements have the former as well."""

_VOCABULARY = (2, 4)
"""Fewest and most different operators of a program: folds are about several calls of few operators."""

_NUMBER, _FILLED = 0.25, 0.3
"""Share of second operands that are one number, as the neutral elements are that folds look for, and share of these
that repeat it in a tensor, which may be larger than the other operand."""

_MUTATIONS = Mutations(constant_value=0.2)
"""Numbers of motifs are zeros of either sign more often here than elsewhere."""

_PLAIN = (0.0, 1.0, 1.0, -1.0, 2.0, 0.5)
"""Scalars that folds look for; zero is of either sign."""


@dataclass(frozen=True, slots=True)
class SpecialOptions:
    """The options of programs on special values.

    A program has one to `nodes` operators, and tensors of at most `max_elements` elements; a share `motifs` of the
    programs begins with a motif; `special` is the share of elements that are special; `ops`, `dtypes` and `opsets`
    restrict what is generated (empty: everything); `feeds` is the number of sets of inputs for each program.
    """

    nodes: int = 5
    special: float = 0.5
    motifs: float = 0.4
    ops: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    opsets: tuple[int, ...] = OPSETS
    max_rank: int = 4
    max_dim: int = 8
    max_elements: int = 64
    feeds: int = 2
    share: float = 1.0

    def __post_init__(self) -> None:
        """Raise SpecError for values that leave nothing to generate."""
        if self.nodes < 1 or self.feeds < 1 or self.max_dim < 1 or self.max_elements < 1:
            raise SpecError("nodes, feeds, max_dim and max_elements must be at least 1")
        if not (0 <= self.special <= 1 and 0 <= self.motifs <= 1) or self.share <= 0 or self.max_rank < 0:
            raise SpecError("special and motifs are numbers from 0 to 1, share more than 0, max_rank not negative")


class OpenScope(Scope):
    """A scope in which floats may have any value: operators that say what they give for it are never rejected."""

    def __init__(
        self, rng: random.Random, opset: int, options: SpecialOptions, limits: OperatorLimits, support: Support
    ) -> None:
        """Take the options of the programs; `rng` draws elements too."""
        super().__init__(rng, opset, limits, Style(), support, elements=4 * options.max_elements)
        self._options = options

    def new_input(self, dtype: str, shape: Shape, span: Range) -> Operand:
        """Add a graph input; one of floats has special elements and disregards `span`. See `Scope.new_input`."""
        if not is_float(dtype) or (shape and min(shape) < 0):
            return super().new_input(dtype, shape, span)
        return self.new_special(dtype, shape)

    def new_special(self, dtype: str, shape: Shape) -> Operand:
        """Add a graph input with special elements, others in every feed."""
        values = tuple([self.elements(dtype, shape) for _ in range(self._options.feeds)])
        return self.new_cycled(values, _anything(dtype))

    def drawn_constant(self, dtype: str, shape: Shape, span: Range) -> Operand:
        """Add an initialiser; one of floats has special elements and disregards `span`."""
        if not is_float(dtype):
            return super().drawn_constant(dtype, shape, span)
        return self.given_constant(self.elements(dtype, shape), _anything(dtype))

    def elements(self, dtype: str, shape: Shape) -> Tensor:
        """Draw elements, a share of them special. Raises RejectedDraft for a negative size."""
        if shape and min(shape) < 0:
            raise RejectedDraft(f"the value wanted here cannot have the shape {shape}")
        rng = self.rng
        usual = draw(rng, dtype, shape, choose_range(dtype, Style(rng.random() < 0.5)))
        count = math.prod(shape)
        if not count or not (is_float(dtype) or dtype in INTEGERS):
            return Tensor(dtype, usual)
        pool = special_elements(dtype, _all_edges())
        chosen = np.array([int(rng.random() * len(pool)) for _ in range(count)]).reshape(shape)
        taken = np.array([rng.random() < self._options.special for _ in range(count)]).reshape(shape)
        return Tensor(dtype, np.where(taken, pool[chosen], usual))

    def _facts(
        self, call: Call, types: tuple[TensorType, ...], spec: OpSpec, defined: Callable[[Call], bool]
    ) -> tuple[Facts, ...]:
        if spec.special is None or not any(operand and is_float(operand.dtype) for operand in call.inputs):
            return super()._facts(call, types, spec, defined)
        if spec.exactness is Exactness.MOVES and not defined(call):  # its conditions are about sizes and places
            raise RejectedDraft(f"{call.op} is undefined for these operands")
        return tuple([_anything(kind.dtype) for kind in types])


class OpenSite(ScopeSite):
    """A site that gives floats without regard to the domain of an operator, special ones among them."""

    def __init__(self, scope: OpenScope, dtype: str) -> None:
        super().__init__(scope, dtype, reuse=0.9, constants=0.2)
        self._open = scope

    def _select(
        self, dtype: str, serves: Callable[[Shape], bool], within: tuple[float, float] | None
    ) -> Operand | None:
        return super()._select(dtype, serves, None if is_float(dtype) else within)

    def _create(self, dtype: str, shape: Shape, within: tuple[float, float] | None, *, constant: float) -> Operand:
        if within is not None and not is_float(dtype):
            return super()._create(dtype, shape, within, constant=constant)
        if self.rng.random() < constant:
            return self._open.given_constant(self._open.elements(dtype, shape), _anything(dtype))
        operand = self._open.new_special(dtype, shape)
        self._taken.add(operand.name)
        return operand

    def partner(self, *shapes: Shape, dtype: str | None = None, within: tuple[float, float] | None = None) -> Operand:
        """Return a value that broadcasts with `shapes`; sometimes a single number. See `Site.partner`."""
        rng, wanted = self.rng, dtype or self.dtype
        if is_float(wanted) and rng.random() < _NUMBER:
            number = _number(rng, wanted)
            if rng.random() < _FILLED:
                shape = draw_partner(rng, self.limits, *shapes)
                number = Tensor(wanted, np.full(shape, number.array))
            return self.scope.given_constant(number, _anything(wanted))
        return super().partner(*shapes, dtype=dtype, within=within)


class SpecialProducer:
    """Producer of programs on special values."""

    def __init__(self, options: SpecialOptions, support: Support) -> None:
        self.options = options
        self.support = support
        self.spec = print_spec("special", options)
        self._limits = OperatorLimits(options.max_rank, options.max_dim, options.max_elements, zero_size=0.0)
        self._menu = cache(self._make_menu)
        self._motifs = cache(self._make_motifs)
        if not any(self._menu(opset) for opset in options.opsets):
            raise UsageError("the target takes no operator about whose results on special values anything is said")

    def propose(self, rng: random.Random) -> Case:
        """Return the next program. Raises UsageError when none can be drawn."""
        for _ in range(_ATTEMPTS):
            try:
                return self._draft(rng)
            except RejectedDraft:
                continue
        raise UsageError("no program on special values comes about; allow more with --ops, --dtypes, --max-rank")

    def learn(self, case: Case, outcomes: Sequence[Outcome], verdict: Verdict) -> None:
        """Do nothing, because the draws do not depend on outcomes."""

    def _draft(self, rng: random.Random) -> Case:
        options = self.options
        opset = rng.choice([opset for opset in options.opsets if self._menu(opset)])
        menu = self._menu(opset)
        dtypes = tuple(menu)
        dtype = rng.choices(dtypes, [_WEIGHTS.get(name, 1) for name in dtypes])[0]
        ops, weights = menu[dtype]
        words = tuple(rng.choices(ops, weights, k=rng.randint(*_VOCABULARY)))
        scope = OpenScope(rng, opset, options, self._limits, self.support)
        motifs = self._motifs(opset)
        if motifs[0] and rng.random() < options.motifs:
            plant(scope, rng.choices(*motifs)[0], _MUTATIONS, dtypes=dtypes)
        wanted = 1 + int(rng.random() * options.nodes)
        for _ in range(3 * wanted):
            self._grow(scope, dtype, words)
            if len(scope.nodes) >= wanted:
                break
        ends = [*leaves(scope), *(name for name in inner_results(scope) if rng.random() < 0.2)]
        recipe: dict[str, Any] = {"producer": self.spec, "oracle": ORACLE, "opset": opset}
        return finish(scope, ends, options.feeds, recipe)

    def _grow(self, scope: OpenScope, dtype: str, ops: tuple[str, ...]) -> None:
        """Add an operator, if its sampler finds operands."""
        mark = scope.mark()
        try:
            insert(scope, scope.rng.choice(ops), OpenSite(scope, dtype))
        except RejectedDraft:
            scope.rollback(mark)

    def _make_motifs(self, opset: int) -> tuple[tuple[Motif, ...], tuple[int, ...]]:
        """Return the motifs of operators that the target takes and about which something is specified, with weights."""
        taken = {op for ops, _ in self._menu(opset).values() for op in ops}
        motifs = tuple([motif for motif in (*fusion_motifs(), *noop_motifs()) if taken.issuperset(motif.operators)])
        known = specs()
        weights = [_ELEMENTWISE if all(known[op].elementwise for op in motif.operators) else 1 for motif in motifs]
        return motifs, tuple(weights)

    def _make_menu(self, opset: int) -> dict[str, tuple[tuple[str, ...], tuple[int, ...]]]:
        """Return by main type the operators that the target takes, with their weights."""
        options, found = self.options, dict[str, tuple[tuple[str, ...], tuple[int, ...]]]()
        for dtype in options.dtypes or (*FLOATS, *INTEGERS, "bool"):
            taken = {
                op: (_EDGED if spec.special.edges else _ELEMENTWISE) if spec.elementwise else 1
                for op, spec in specs().items()
                if spec.special is not None
                and (not options.ops or op in options.ops)
                and dtype in dtypes_of(op, opset)
                and self.support.offers(op, dtype, version_of(op, opset), spec.main)
            }
            if taken:
                found[dtype] = tuple(taken), tuple(taken.values())
        return found


@cache
def _all_edges() -> tuple[Callable[[str], tuple[float, ...]], ...]:
    """Return the edges that operators state, each table once."""
    return tuple(dict.fromkeys(spec.special.edges for spec in specs().values() if spec.special and spec.special.edges))


def _anything(dtype: str) -> Facts:
    info = DTYPES[dtype]
    return Facts(-math.inf, math.inf) if is_float(dtype) else Facts(info.low, info.high, integral=True)


def _number(rng: random.Random, dtype: str) -> Tensor:
    """Draw a scalar: one that folds look for, or a special one."""
    if rng.random() < 0.3:
        pool = special_elements(dtype, ())
        return Tensor(dtype, pool[int(rng.random() * len(pool))].reshape(()))
    value = rng.choice(_PLAIN) * (-1.0 if rng.random() < 0.1 else 1.0)
    return Tensor(dtype, _stored(dtype, value))


def _stored(dtype: str, value: float) -> Array:
    single = np.asarray(value, np.float32)
    return np.asarray(single.view(np.uint32) >> 16, np.uint16) if dtype == "bfloat16" else single.astype(dtype)


SPECIAL = ProducerKind("special", SpecialOptions, lambda options, context: SpecialProducer(options, context.support))
"""The kind `special`."""
