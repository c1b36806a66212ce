"""The sweep: every operator alone, over attributes x ranks x dtypes x constant-or-input x optionals.

More than half of all known compiler bugs need only one operator in an uncommon form. New combinations come first: for
the operator and dtype with the fewest cases, the sweep proposes the one of a few drafts that has the most unseen pairs
of features.
"""

import heapq
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, count

from miscompile.base.dtypes import PLAIN
from miscompile.base.errors import RejectedDraft, UsageError
from miscompile.base.specs import print_spec
from miscompile.core.case import Case
from miscompile.core.outcome import Outcome
from miscompile.core.verdict import Verdict
from miscompile.graph.model import TensorType
from miscompile.ops.registry import dtypes_of, schema, specs, version_of
from miscompile.ops.spec import Call, Operand, OperatorLimits
from miscompile.ops.support import Support
from miscompile.ops.values import Style
from miscompile.producers.finish import finish
from miscompile.producers.kinds import ProducerKind
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.scope import Scope
from miscompile.producers.sites import ScopeSite, insert

_DRAFTS = 3
_PATIENCE = 40
_MOST_TURNS = 2000
CONSTANTS = (0.0, 0.15, 0.5, 1.0)
PINNED = (0.0, 0.0, 0.3, 1.0)


@dataclass(frozen=True, slots=True)
class Single:
    """A program of one operator: its call, the outputs' types, and its scope."""

    call: Call
    results: tuple[Operand, ...]
    scope: Scope

    @property
    def types(self) -> tuple[TensorType, ...]:
        """Types of the outputs."""
        return tuple(TensorType(result.dtype, result.shape) for result in self.results)

    def case(self, producer: str, feeds: int = 1) -> Case:
        """Return the case with every output of the operator as a graph output."""
        recipe = {"producer": producer, "opset": self.scope.opset, "op": self.call.op}
        return finish(self.scope, [result.name for result in self.results], feeds, recipe)


def draft_single(
    rng: random.Random, op: str, dtype: str, opset: int, limits: OperatorLimits, style: Style, support: Support
) -> Single:
    """Draw a program of one operator. Raises RejectedDraft when the sampler or the target rejects it."""
    scope = Scope(rng, opset, limits, style, support)
    constants, pinned = CONSTANTS[int(rng.random() * 4)], PINNED[int(rng.random() * 4)]
    site = ScopeSite(scope, dtype, reuse=0.0, constants=constants, pinned=pinned)
    call, results = insert(scope, op, site)
    return Single(call, results, scope)


def features(single: Single) -> Iterator[str]:
    """Yield the features of a single-operator program: version, dtypes, ranks, sizes, constness, attributes."""
    call, scope = single.call, single.scope
    known = schema(call.op, scope.opset)
    yield f"v{known.since_version if known else scope.opset}"
    for place, operand in enumerate(call.inputs):
        if operand is None:
            yield f"{place}:absent"
            continue
        role = "constant" if operand.name in scope.initializers else "input"
        yield f"{place}:{operand.dtype}"
        yield f"{place}:{role}"
        yield f"{place}:rank{operand.rank}"
        yield f"{place}:sizes{''.join(sorted({str(min(size, 2)) for size in operand.shape}))}"
    yield f"inputs{len(call.inputs)}"
    yield f"outputs{call.outputs}"
    for name, attribute in call.attributes.items():
        yield f"{name}={attribute.value if attribute.kind in ('int', 'string', 'ints') else attribute.kind}"


class Sweep:
    """Producer of single-operator cases."""

    def __init__(self, options: GeneratorOptions, support: Support) -> None:
        self.options = replace(options, nodes=1, spread=0.0, large=0.0)
        self.support = support
        self.spec = print_spec("sweep", self.options)
        self._limits = OperatorLimits(options.max_rank, options.max_dim, options.max_elements, zero_size=0.03)
        self._seen: dict[str, set[int]] = {}
        self._numbers: dict[str, int] = {}
        self._order = count()
        self._queue = [(0, next(self._order), op, dtype) for op, dtype in self._pairs()]
        if not self._queue:
            raise UsageError("no operator is left to sweep: the target takes none of those asked for (--ops, --dtypes)")
        heapq.heapify(self._queue)

    def propose(self, rng: random.Random) -> Case:
        """Return the next case: the operator and dtype with the fewest cases, in its newest form drawn."""
        for _ in range(_MOST_TURNS):
            cases, _, op, dtype = heapq.heappop(self._queue)
            single = self._newest(rng, op, dtype)
            penalty = 1 if single is not None else _PATIENCE
            heapq.heappush(self._queue, (cases + penalty, next(self._order), op, dtype))
            if single is not None:
                return single.case(self.spec, self.options.feeds)
        raise UsageError("no operator can be drawn under these options; allow more with --ops, --dtypes, --max-rank")

    def learn(self, case: Case, outcomes: Sequence[Outcome], verdict: Verdict) -> None:
        """Do nothing, because the order depends on the cases and not on outcomes."""

    def _newest(self, rng: random.Random, op: str, dtype: str) -> Single | None:
        best: tuple[int, Single, set[int]] | None = None
        seen = self._seen.setdefault(op, set())
        drafts = 0
        for _ in range(_PATIENCE):
            style = Style(rng.random() < self.options.integral, rng.random() < self.options.full)
            opset = self.options.draw_opset(rng)
            try:
                limits = self.options.draw_limits(rng, self._limits)
                single = draft_single(rng, op, dtype, opset, limits, style, self.support)
            except RejectedDraft:
                continue
            pairs = self._pairs_in(single)
            fresh = len(pairs - seen)
            if best is None or fresh > best[0]:
                best = (fresh, single, pairs)
            drafts += 1
            if drafts == _DRAFTS:
                break
        if best is None:
            return None
        seen |= best[2]
        return best[1]

    def _pairs_in(self, single: Single) -> set[int]:
        """Return the pairs of features of a program, as numbers: because they hash and compare far faster than text."""
        known = self._numbers
        numbers = sorted([known.setdefault(feature, len(known)) for feature in features(single)])
        return {one << 24 | other for one, other in combinations(numbers, 2)}

    def _pairs(self) -> Iterator[tuple[str, str]]:
        options, offers = self.options, self.support.offers
        for op, spec in specs().items():
            if options.ops and op not in options.ops:
                continue
            dtypes = {
                dtype
                for opset in options.opsets
                for dtype in dtypes_of(op, opset)
                if offers(op, dtype, version_of(op, opset), spec.main)
            }
            yield from ((op, dtype) for dtype in options.dtypes or PLAIN if dtype in dtypes)


SWEEP = ProducerKind("sweep", GeneratorOptions, lambda options, context: Sweep(options, context.support))
"""The kind `sweep`."""
