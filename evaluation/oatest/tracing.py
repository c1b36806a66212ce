"""Synthesis under watch: which values of a program are the seed's and which the pattern's, and what making it costs.

A recipe says whether a pattern is joined to its seed; here it is looked up in the program as the compiler gets it, from
the names of the values alone. The released code of OATest shows why: its splicing for ONNX Runtime builds graphs that
all pass the checker, and in none of them is the pattern inside the seed.
"""

import random
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from miscompile.core.case import Case
from miscompile.core.outcome import Outcome
from miscompile.core.verdict import Verdict
from miscompile.graph.edges import reads
from miscompile.graph.model import Function, Model, Node
from miscompile.ops.seed import Seed
from miscompile.ops.support import Support
from miscompile.patterns.pattern import Pattern
from miscompile.producers.scope import Scope
from miscompile.producers.synthesis.options import OatestOptions
from miscompile.producers.synthesis.pool import PooledSeed
from miscompile.producers.synthesis.producer import Synthesised
from miscompile.producers.synthesis.splice import Spliced
from miscompile.targets.about import About


@dataclass(frozen=True, slots=True)
class Trace:
    """Names of values in a synthesised program.

    `before`: results of the seed's operators in front of the pattern. `own`: results of the pattern's operators and of
    the bridges into it. `behind`: results of the seed's operators behind the pattern, without those of bridges.
    """

    before: frozenset[str]
    own: frozenset[str]
    behind: frozenset[str]


@dataclass(frozen=True, slots=True)
class Joined:
    """How a pattern hangs in its seed.

    `into`: an operator of the pattern, or a bridge of it, reads a result of one of the seed's operators that depends on
    an input. `out`: a result of one of the seed's operators depends on a result of the pattern. `fixed`: the pattern
    reads results of the seed's operators, but only such as depend on no input; a compiler that folds constants takes
    the pattern along.
    """

    into: bool
    out: bool
    fixed: bool = False

    @property
    def inside(self) -> bool:
        """Whether the pattern stands between operators of the seed."""
        return self.into and self.out


def joined(model: Model, trace: Trace) -> Joined:
    """Return how the pattern hangs in the seed, followed along the edges of `model`, operator by operator.

    Functions that are called stand in the graph as operators. A function may hold a bridge that the pattern does not
    take, so that only those of its operands count on which the pattern's results depend.
    """
    functions = {(function.domain, function.name): function for function in model.functions}
    live = {info.name for info in model.graph.inputs}
    after: set[str] = set()
    into = reading = False
    for node in model.graph.nodes:
        read, made = set(reads(node)), {name for name in node.outputs if name}
        if made & trace.own:
            function = functions.get((node.domain, node.op))
            needed = read if function is None else _needed_operands(node, function, trace.own)
            reading = reading or bool(needed & trace.before)
            into = into or bool(needed & live & trace.before)
            after |= made
        if read & after:
            after |= made
        if read & live:
            live |= made
    return Joined(into, bool(after & trace.behind), reading and not into)


def _needed_operands(call: Node, function: Function, wanted: Collection[str]) -> set[str]:
    """Return the operands of a call on which those of its results depend that are `wanted`."""
    needed = {inner for name, inner in zip(call.outputs, function.outputs, strict=False) if name in wanted}
    for node in reversed(function.nodes):
        if not needed.isdisjoint(node.outputs):
            needed |= set(reads(node))
    return {name for name, inner in zip(call.inputs, function.inputs, strict=False) if name and inner in needed}


class Traced(Synthesised):
    """The producer of campaigns, which keeps traces of its programs and counts the CPU seconds that it takes.

    `contexts` are the graphs that seeds are drawn from, where the options do not ask for generated ones.
    """

    def __init__(
        self,
        generator_options: OatestOptions,
        support: Support,
        patterns: Sequence[Pattern],
        about: About,
        contexts: Sequence[Seed] = (),
    ) -> None:
        super().__init__(generator_options, support, patterns, [about.name], functions=about.functions)
        self._given = list(contexts)
        self._traces: dict[int, Trace] = {}
        self.cpu_seconds = 0.0

    def propose(self, rng: random.Random) -> Case:
        """Return a new case, as the producer of campaigns does."""
        begin = time.process_time()
        case = super().propose(rng)
        self.cpu_seconds += time.process_time() - begin
        return case

    def learn(self, case: Case, outcomes: Sequence[Outcome], verdict: Verdict) -> None:
        """Learn as the producer of campaigns does."""
        begin = time.process_time()
        super().learn(case, outcomes, verdict)
        self.cpu_seconds += time.process_time() - begin

    def trace(self, case: Case) -> Trace:
        """Return the trace of a case and forget it. Raises KeyError for a case that this producer did not propose."""
        return self._traces.pop(case.recipe["synthesis"])

    def _remember(self, number: int, scope: Scope, entry: PooledSeed, pattern: Pattern, spliced: Spliced) -> None:
        super()._remember(number, scope, entry, pattern, spliced)
        self._traces[number] = Trace(
            _made(scope.nodes[: spliced.first]),
            _made(_needed(scope.nodes[spliced.first : spliced.last], {one.name for one in spliced.placed.outputs})),
            _made(_rest(scope.nodes[spliced.last :], entry.host.seed.graph.nodes[spliced.point :])),
        )


def _rest(nodes: Sequence[Node], seeds: Sequence[Node]) -> Sequence[Node]:
    """Return those of `nodes`, all that stands behind a pattern, that are the `seeds` own: the last ones, in order."""
    found = nodes[len(nodes) - len(seeds) :]
    assert [node.op for node in found] == [node.op for node in seeds], "bridges stand in front of the seed's operators"
    return found


def _needed(nodes: Sequence[Node], outputs: set[str]) -> Sequence[Node]:
    """Return those of `nodes` that `outputs` depend on: a bridge that was made and then not taken is none of them.

    The producer looks the same up while it splices; this is computed apart, because it is what the producer is held to.
    """
    needed, found = set(outputs), []
    for node in reversed(nodes):
        if not needed.isdisjoint(node.outputs):
            needed.update(reads(node))
            found.append(node)
    return found[::-1]


def _made(nodes: Sequence[Node]) -> frozenset[str]:
    return frozenset(name for node in nodes if node.op != "Constant" for name in node.outputs if name)
