"""Disruptive generation: single-operator programs that violate a constraint (HIRFUZZ, sections 3.1.5, 5.4).

A compiler must reject them with an error: a crash, a hang or a computed result is a bug. The producer draws a valid
call with the operator's sampler, violates one constraint, and proves that the result is invalid. A coverage of violated
constraints steers it to new ones.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from miscompile.base.dtypes import PLAIN
from miscompile.base.errors import MiscompileError, RejectedDraft, SpecError, UsageError
from miscompile.base.specs import print_spec
from miscompile.core.case import Case, Port, Program
from miscompile.core.outcome import Outcome
from miscompile.core.verdict import Verdict
from miscompile.graph.emit import emit
from miscompile.graph.model import Model, TensorType, ValueInfo
from miscompile.ops.registry import dtypes_of, specs, version_of, written
from miscompile.ops.spec import OperatorLimits, always
from miscompile.ops.support import Support
from miscompile.ops.values import Style
from miscompile.producers.disruptive.attributes import break_attribute, break_declared, break_signature
from miscompile.producers.disruptive.checker import ChildChecker
from miscompile.producers.disruptive.draft import InvalidDraft, Presentation, take_apart
from miscompile.producers.disruptive.operands import (
    Broken,
    break_contents,
    break_domain,
    break_dtype,
    break_mixed,
    break_rank,
    break_shape,
)
from miscompile.producers.disruptive.proof import Check, Proof, Prover, keeps_page
from miscompile.producers.kinds import ProducerKind
from miscompile.producers.sweep import draft_single

ORACLE = "disruptive"
"""Name of the judging oracle in the recipe of a case."""

_BREAKS: Mapping[str, tuple[Callable[[random.Random, InvalidDraft], Broken], float]] = {
    "dtype": (break_dtype, 0.0),
    "mixed": (break_mixed, 0.0),
    "shape": (break_shape, 0.5),
    "rank": (break_rank, 0.4),
    "attribute": (break_attribute, 0.25),
    "contents": (break_contents, 0.2),
    "domain": (break_domain, 0.1),
    "signature": (break_signature, 0.0),
    "declared": (break_declared, 0.0),
}
"""By kind: the function that violates it, and how often sizes are hidden from the compiler until the run."""

KINDS = tuple(_BREAKS)
ACCEPTANCE = ("mixed", "shape", "rank", "attribute", "contents")
"""Kinds whose acceptance is a finding by default, because the result of such a call has no meaning. The other kinds are
not, because many compilers support additional types on purpose, ignore unknown operands and attributes, infer types
themselves, and may give any value where the operator is undefined (`domain`). Elementwise operators never count for
`mixed`, because compilers promote their operands to a common type as numpy does.
"""

_SPARE_TURNS = 20
_DRAFTS = 8
_BREAKS_A_DRAFT = 4
_LOOKS = 4
_STALE_TURNS = 5
_IMPOSSIBLE_TURNS = 20


@dataclass(frozen=True, slots=True)
class DisruptiveOptions:
    """The options of disruptive generation.

    `ops` and `dtypes` restrict the valid calls to start from (empty: all that the target supports); `opsets` are drawn
    from; `kinds` of constraints to violate (empty: all); `acceptance` the kinds for which a computed result is a
    finding (`acceptance=` for none); `share` the producer's share among several.
    """

    ops: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    opsets: tuple[int, ...] = (17, 18, 20, 21, 22)
    kinds: tuple[str, ...] = ()
    acceptance: tuple[str, ...] = ACCEPTANCE
    max_rank: int = 4
    max_dim: int = 5
    share: float = 1.0

    def __post_init__(self) -> None:
        """Raise SpecError for unknown kinds and for limits that leave nothing to generate."""
        for kind in (*self.kinds, *self.acceptance):
            if kind not in KINDS:
                raise SpecError(f"there is no kind of constraint '{kind}'; there are: {', '.join(KINDS)}")
        if self.max_dim < 1 or self.max_rank < 0 or self.share <= 0 or not self.opsets:
            raise SpecError(
                "max_dim must be at least 1, max_rank not negative, share more than 0, and opsets not empty"
            )


@dataclass(slots=True)
class BrokenCoverage:
    """Violated constraints so far, as (operator, kind, detail), and the attempts for each operator and kind."""

    seen: set[tuple[str, str, str]] = field(default_factory=set)
    turns: dict[tuple[str, str], int] = field(default_factory=dict)

    def choose(self, rng: random.Random, pairs: Sequence[tuple[str, str]]) -> tuple[str, str]:
        """Draw a few (operator, kind) pairs and return the one with the fewest attempts."""
        drawn = [pairs[int(rng.random() * len(pairs))] for _ in range(_LOOKS)]
        return min(drawn, key=lambda pair: self.turns.get(pair, 0))

    def is_new(self, op: str, kind: str, key: str) -> bool:
        """Tell whether this constraint was never violated before."""
        return (op, kind, key) not in self.seen

    def add(self, op: str, kind: str, key: str) -> None:
        """Record a violation; a repeated one counts as several attempts, so that pairs with new ones come first."""
        stale = not self.is_new(op, kind, key)
        self.seen.add((op, kind, key))
        self.refuse(op, kind, _STALE_TURNS if stale else 1)

    def refuse(self, op: str, kind: str, turns: int = _IMPOSSIBLE_TURNS) -> None:
        """Record that a pair led to no invalid program."""
        self.turns[op, kind] = self.turns.get((op, kind), 0) + turns


@dataclass(frozen=True, slots=True)
class _Invalid:
    """An invalid call with its presentation and its proof."""

    kind: str
    broken: Broken
    presentation: Presentation
    proof: Proof


class DisruptiveProducer:
    """Producer of invalid single-operator cases.

    Only calls that `support` admits are changed, so that the target's error is due to the violation. `lowered`: the
    target does not read the models but programs that a lowering makes from them, and the lowering may not notice the
    violation; then only crashes, hangs and memory errors in compiled code are findings. `check` replaces onnx's
    checker, which otherwise runs in a child process.
    """

    def __init__(
        self, options: DisruptiveOptions, support: Support, *, lowered: bool = False, check: Check | None = None
    ) -> None:
        self.options = options
        self.support = support
        self.lowered = lowered
        self.prover = Prover(check or ChildChecker())
        self.coverage = BrokenCoverage()
        self.spec = print_spec("disruptive", options)
        self._limits = OperatorLimits(options.max_rank, options.max_dim, 256, zero_size=0.02)
        self._dtypes = {op: dtypes for op in specs() if (dtypes := tuple(self._offered(op)))}
        self._pairs = [(op, kind) for op in self._dtypes for kind in self._kinds(op)]
        if not self._pairs:
            raise UsageError(
                "no operator is left to disrupt: the target takes none of those asked for (--ops, --dtypes)"
            )

    def propose(self, rng: random.Random) -> Case:
        """Return the next case: an operator and kind of constraint with few attempts, with a new violation if possible.

        Raises UsageError when no constraint can be violated under these options.
        """
        for _ in range(_SPARE_TURNS + len(self._pairs)):
            op, kind = self.coverage.choose(rng, self._pairs)
            invalid = self._newest(rng, op, kind)
            if invalid is None:
                self.coverage.refuse(op, kind)
                continue
            self.coverage.add(op, kind, invalid.broken.key)
            return self._case(invalid)
        raise UsageError("no constraint can be broken under these options; allow more with --ops, --dtypes, kinds")

    def learn(self, case: Case, outcomes: Sequence[Outcome], verdict: Verdict) -> None:
        """Do nothing, because the coverage counts programs and not outcomes."""

    def _newest(self, rng: random.Random, op: str, kind: str) -> _Invalid | None:
        """Return the first new violation among a few drafts, else the last proven one."""
        spare: _Invalid | None = None
        found = 0
        for _ in range(_DRAFTS):
            for invalid in self._drafts(rng, op, kind):
                spare = invalid
                found += 1
                if self.coverage.is_new(op, kind, invalid.broken.key):
                    return invalid
            if found >= _BREAKS_A_DRAFT:
                break
        return spare

    def _drafts(self, rng: random.Random, op: str, kind: str) -> Iterator[_Invalid]:
        """Yield the proven violations of one valid call."""
        try:
            draft = self._valid(rng, op)
        except RejectedDraft:
            return
        make, hiding = _BREAKS[kind]
        for _ in range(_BREAKS_A_DRAFT):
            presentation: Presentation = "plain"
            if rng.random() < hiding:
                presentation = "ranks" if rng.random() < 0.25 else "sizes"
            try:
                broken = make(rng, draft)
                proof = self._proof(kind, broken, presentation)
            except (MiscompileError, OverflowError, ValueError):
                continue  # the kind does not apply here, or no model can hold the value
            if proof is not None:
                yield _Invalid(kind, broken, presentation, proof)

    def _proof(self, kind: str, broken: Broken, presentation: Presentation) -> Proof | None:
        if kind == "declared":
            return self.prover.prove_declaration(broken.draft)
        if kind == "domain":
            return self.prover.prove_undefined(broken.draft)
        return self.prover.prove(broken.draft, presentation, broken.page)

    def _valid(self, rng: random.Random, op: str) -> InvalidDraft:
        """Draw a valid call. Raises RejectedDraft when the sampler, target, onnx or the operator's page rejects it."""
        dtype, opset = rng.choice(self._dtypes[op]), rng.choice(self.options.opsets)
        style = Style(integral=True, full=rng.random() < 0.3)
        draft = take_apart(draft_single(rng, op, dtype, opset, self._limits, style, self.support), rng)
        if not keeps_page(draft, "elements") or self.prover.refusal(draft, bare=False) != "":
            raise RejectedDraft(f"{op}: the call is refused before it is broken")
        return draft

    def _case(self, invalid: _Invalid) -> Case:
        draft, proof = invalid.broken.draft, invalid.proof
        model = draft.model(invalid.presentation)
        feed = tuple(part.value for _, part in draft.fed())
        found = invalid.broken
        broken = {"kind": invalid.kind, "place": found.place, "detail": found.detail, "refusal": proof.message}
        recipe: dict[str, Any] = {
            "producer": self.spec,
            "oracle": ORACLE,
            "opset": draft.opset,
            "op": draft.op,
            "broken": broken,
            "proof": proof.kind,
            "counts": self._counts(invalid),
        }
        return Case(_program(model), (feed,), recipe)

    def _counts(self, invalid: _Invalid) -> str:
        """Return which outcomes of this case are findings; see the disruptive oracle."""
        if self.lowered:
            return "compiled"
        op, kind = invalid.broken.draft.op, invalid.kind
        promoted = kind == "mixed" and specs()[op].elementwise
        known = invalid.proof.kind == "checker" and kind in self.options.acceptance and not promoted
        return "acceptance" if known else "deaths"

    def _kinds(self, op: str) -> Iterator[str]:
        """Yield the kinds of constraints to violate in calls of an operator.

        A lowering may give a compiler a program that is undefined in its own language, and may then end in any way.
        """
        for kind in KINDS:
            if self.options.kinds and kind not in self.options.kinds:
                continue
            if kind != "domain" or not (self.lowered or written()[op].defined is always):
                yield kind

    def _offered(self, op: str) -> Iterator[str]:
        options, spec = self.options, specs()[op]
        if options.ops and op not in options.ops:
            return
        for dtype in options.dtypes or PLAIN:
            if any(
                dtype in dtypes_of(op, opset) and self.support.offers(op, dtype, version_of(op, opset), spec.main)
                for opset in options.opsets
            ):
                yield dtype


def _program(model: Model) -> Program:
    graph = model.graph
    return Program("onnx", emit(model), tuple(map(_port, graph.inputs)), tuple(map(_port, graph.outputs)))


def _port(info: ValueInfo) -> Port:
    assert isinstance(info.type, TensorType)
    return Port(info.name, info.type.dtype, info.type.shape)


DISRUPTIVE = ProducerKind(
    "disruptive",
    DisruptiveOptions,
    lambda options, context: DisruptiveProducer(options, context.support, lowered=context.lowered),
)
"""The kind `disruptive`."""
