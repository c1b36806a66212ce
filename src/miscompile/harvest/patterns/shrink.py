"""Reduction of a program for as long as a pass still changes it.

It uses the reducer of findings, with an oracle that reports a violation when the pass fires. The result is the pattern
that the pass matches, found without any knowledge of the pass.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from miscompile.base.errors import MiscompileError
from miscompile.core.case import Case, Feed, Program
from miscompile.core.outcome import Outcome
from miscompile.core.ports import Runner
from miscompile.core.run import Build, Run
from miscompile.core.verdict import Evidence, Holds, Verdict, Violated
from miscompile.graph.bodies import CONTROL
from miscompile.graph.emit import to_program
from miscompile.graph.model import Model
from miscompile.graph.specialise import folded, is_symbolic, specialised
from miscompile.harvest.patterns.pass_observation import observed
from miscompile.ops.analysis import analyse, require_well_formed
from miscompile.ops.registry import specs
from miscompile.producers.slices.binding import normalised
from miscompile.targets.registry import parse_target
from miscompile.triage.reduce.attributes import FewerAttributes
from miscompile.triage.reduce.bodies import BypassDeeper, FewerResults, InnerBranch, OneTurn
from miscompile.triage.reduce.capture import ReferenceCapture
from miscompile.triage.reduce.cuts import BackCut, FrontCut
from miscompile.triage.reduce.draft import Draft, put_together, take_apart
from miscompile.triage.reduce.dtypes import PlainerTypes
from miscompile.triage.reduce.engine import Budget, reduce_case
from miscompile.triage.reduce.graphs import GraphDrafts
from miscompile.triage.reduce.inlining import OneBranch
from miscompile.triage.reduce.leaves import leaves, structural
from miscompile.triage.reduce.names import ShortNames
from miscompile.triage.reduce.nodes import Bypass, BypassInBodies, Shortcut
from miscompile.triage.reduce.outputs import FewerOutputs
from miscompile.triage.reduce.reduction import Reduction
from miscompile.triage.reduce.shapes import SmallerSizes

TRIES = 400
"""Greatest number of programs built for one pattern."""

_RULE = "fires"

_INDEXED = frozenset({
    "GatherND", "ScatterND", "TensorScatter", "RotaryEmbedding", "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss",
    "MaxUnpool", "ReverseSequence", "OneHot", "AffineGrid",
})  # fmt: skip
"""Operators with operands that are indices into another operand, in addition to those in `triage.reduce.defined`. If
the other operand shrinks, the indices are out of range, and the behaviour is undefined."""


@dataclass(frozen=True, slots=True)
class Fires:
    """An oracle that reports a program which the pass `name` of `target` is observed to change at `level`.

    A rewrite rule that runs inside a pass of several (`About.rules`) fires when that pass changes the program with
    all other rules off.
    """

    target: str
    name: str
    level: str = "full"

    def plan(self, case: Case, rng: random.Random) -> tuple[Run, ...]:
        """Return the one observed run."""
        del rng
        everything = [rule for rules in self._rules().values() for rule in rules]
        disabled = frozenset(everything) - {self.name} if self.name in everything else frozenset()
        return (Run(case, self.target, Build(self.level, disabled, observe=True), "probe"),)

    def judge(self, runs: Sequence[Run], outcomes: Sequence[Outcome]) -> Verdict:
        """Return Violated when the pass fired."""
        shown = next((frame for frame, rules in self._rules().items() if self.name in rules), self.name)
        if shown not in (observed(outcomes[0]) or ()):
            return Holds()
        return Violated(Evidence("accepted", _RULE, f"{self.name} changes the program", runs[0]))

    def _rules(self) -> dict[str, tuple[str, ...]]:
        return dict(parse_target(self.target).about.rules)


def shrunk(case: Case, fires: Fires, runner: Runner, rng: random.Random, budget: Budget | None = None) -> Case | None:
    """Return the smallest program found that the pass still changes, with one feed; None if there is none.

    There is none when the pass does not change `case`, when its model cannot be read, or when it has undefined
    behaviour. Constants remain constants, ranks do not change, and sizes above one remain above one, because a pattern
    must fit other programs. Operands that determine shapes become constants if the pass still fires then. Deterministic
    for a given `rng`.
    """
    seed = rng.getrandbits(64)
    for candidate in _prepared(case):
        found = reduce_case(
            candidate,
            fires,
            runner,
            random.Random(seed),
            GraphDrafts(runner, lawful),
            budget=budget or Budget(TRIES),
            reductions=_reductions(fires, runner),
            admits=_serves,
        )
        if found is not None:
            return found.case if found.defined and _serves(found.case) else None
    return None


@dataclass(frozen=True, slots=True)
class LargeEnough:
    """Smaller sizes, but no new size of 1, because that would add a broadcast. Ranks do not change.

    It proposes nothing for graphs with operators whose rules about sizes are unknown here, because inference accepts
    many programs that break such rules.
    """

    def edits(self, draft: Draft) -> Iterator[Draft]:
        """Yield drafts with smaller leaves, as `SmallerSizes` makes them."""
        if not _is_known(draft):
            return iter(())
        ones = _ones(draft)
        return (smaller for smaller in SmallerSizes().edits(draft) if _ones(smaller) <= ones)


def _ones(draft: Draft) -> int:
    return sum(leaf.value.shape.count(1) for leaf in leaves(draft))


def _is_known(draft: Draft) -> bool:
    nodes = draft.graph.nodes
    return all((node.op in specs() or node.op in CONTROL) and node.op not in _INDEXED for node in nodes)


def lawful(model: Model, feed: Feed) -> Program:
    """Return the `model` of a draft as a program. Raises RejectedDraft when a node breaks a rule.

    The rules are those of the operators' documentation that inference does not enforce. A model that breaks one may
    crash a compiler, and is not a pattern.
    """
    program = to_program(model)
    names = [port.name for port in program.inputs]
    given = dict(zip(names, feed, strict=True))
    shapes = {name: value.shape for name, value in given.items()}
    concrete = folded(specialised(model, shapes)) if is_symbolic(program.inputs) else model
    require_well_formed(concrete, analyse(concrete, given))
    return program


def _reductions(fires: Fires, runner: Runner) -> tuple[Reduction[Draft], ...]:
    """Return the reductions for patterns: those that remove parts, but none that makes a program more specific."""
    capture = ReferenceCapture(runner, fires.target, Build(fires.level))
    return (
        FewerOutputs(),
        BackCut(),
        FrontCut(capture),
        Bypass(),
        OneBranch(),
        OneTurn(capture),
        InnerBranch(),
        FewerResults(),
        Shortcut(),
        BypassInBodies(),
        BypassDeeper(),
        FewerAttributes(),
        LargeEnough(),
        PlainerTypes(),
        ShortNames(),
    )


def _prepared(case: Case) -> Iterator[Case]:
    """Yield `case` with its first feed, without functions and Constant nodes; first with shape operands fixed."""
    try:
        draft = take_apart(replace(case, feeds=case.feeds[:1]))
        flat = Draft(normalised(draft.model), draft.feeds)
        fixed = _fixed(flat)
        yield put_together(fixed, lawful, case.recipe)
        if fixed is not flat:
            yield put_together(flat, lawful, case.recipe)
    except MiscompileError:
        return  # unreadable, or against a rule: nothing to mine


def _fixed(draft: Draft) -> Draft:
    """Return the draft with the inputs that determine shapes as constants."""
    feed = draft.feeds[0] if draft.feeds else {}
    names = structural(draft) & feed.keys()
    if not names:
        return draft
    constants = {**draft.graph.initializers, **{name: feed[name] for name in sorted(names)}}
    inputs = tuple(info for info in draft.graph.inputs if info.name not in names)
    frozen = draft.with_graph(inputs=inputs, initializers=constants)
    return replace(frozen, feeds=({name: value for name, value in feed.items() if name not in names},))


def _serves(case: Case) -> bool:
    """Tell whether a program has a hole, and outputs whose sizes do not depend on the feed."""
    return bool(case.program.inputs) and not is_symbolic(case.program.outputs)
