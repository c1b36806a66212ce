"""The oracle of memory safety: a program must stay inside of the memory that it gets, and read none that is unwritten.

The adapter gives the compiler memory between guard pages (`targets/guards.py`). A death that such a page causes names
the tensor. Values count in one way only: two runs of one build, at the same addresses relative to the pages, in which
fresh memory holds another byte. Results that differ grossly depend on memory that nobody has written. The values are
never compared with those of a run without guards, because a kernel may sum in another order at another alignment.
"""

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from miscompile.base.dtypes import is_float
from miscompile.base.errors import ModelError
from miscompile.base.specs import Spec
from miscompile.core.case import Case
from miscompile.core.outcome import Crashed, Outcome, Raised, Values, status_of
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Tensor
from miscompile.core.verdict import Evidence, FindingKind, Holds, Inconclusive, Verdict, Violated
from miscompile.graph.randomness import plain
from miscompile.graph.read import read
from miscompile.oracles.compare import contradiction
from miscompile.oracles.kinds import NoOptions, OracleContext, OracleKind
from miscompile.targets.guards import GUARDED, PLACES, SAYS

RULE = "memory"
"""The rule that evidence of this oracle names."""

MemoryClass = Literal[
    "read behind", "write behind", "read before", "write before", "write into", "uninitialised", "heap", "crash"
]
"""An access behind the end or before the beginning of a tensor, a write into one that is only to be read, a result that
depends on unwritten memory, a heap that the allocator finds corrupted, another death with guarded memory only."""

FILLS = ((0x00, 0x3F), (0x00, 0xC1), (0x3F, 0xC1))
"""Pairs of bytes for fresh memory. As float32, 0x3F is 0.75 in every byte of a word, and 0xC1 is -12.1."""

GROSS = 0.01
"""Share of the larger number, or of the tensor's largest one, by which results must differ: unwritten memory with these
bytes makes more of a difference, rounding makes less."""

_ACCESS = re.compile(
    rf"{SAYS} (?P<verb>read|write|touche)s (?P<where>behind|before|into) (?:the \w+ of )?(?P<role>\w+) '.*"
)
_HEAP = re.compile(
    r"^.*(?:free\(\)|double free|malloc\(|munmap_chunk|realloc\(\)|corrupted (?:size|top|unsorted|double-linked)"
    r"|unsorted chunk|malloc_consolidate).*$",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Access:
    """What a dead or failed run says about its memory: the class, the role of the tensor (or an empty text), a line."""

    kind: MemoryClass
    role: str
    line: str


@dataclass(frozen=True, slots=True)
class MemorySafety:
    """Runs a build without guards, and twice with guards and other bytes in fresh memory.

    The property of a finding names the build with its transform in `faulty`, the bytes in `fills` and the class of the
    violation in `only`. In a campaign, the place of the arrays and the bytes are drawn.
    """

    target: str
    faulty: Build = field(default_factory=Build)
    fills: tuple[int, int] = (0, 0)
    only: str = ""

    def plan(self, case: Case, rng: random.Random) -> tuple[Run, ...]:
        """Return the run without guards, and the two with guards."""
        first, second = self.fills if any(self.fills) else rng.choice(FILLS)
        drawn = Spec(GUARDED).with_options(place=rng.choice(PLACES), taps=rng.choice(("yes", "no")))
        way = self.faulty.transform or drawn
        builds = [replace(self.faulty, transform=way.with_options(fill=str(fill))) for fill in (first, second)]
        return tuple(Run(case, self.target, build) for build in (replace(self.faulty, transform=None), *builds))

    def judge(self, runs: Sequence[Run], outcomes: Sequence[Outcome]) -> Verdict:
        """Judge the runs with guards; the first run must give values of the declared types."""
        usual = outcomes[0]
        if not isinstance(usual, Values):
            return Inconclusive(f"{status_of(usual)} without guards")  # other oracles judge that
        if contradiction(runs[0].case.program.outputs, usual):
            return Inconclusive("undeclared types without guards")  # other oracles judge types
        for run, outcome in zip(runs[1:], outcomes[1:], strict=True):
            if isinstance(outcome, Values):
                continue
            found = access_of(outcome)
            if found is None:
                return Inconclusive(f"{status_of(outcome)} with guards", _said(outcome))
            return self._violated(runs[0], run, outcome, found)
        return self._compared(runs, outcomes)

    def with_faulty(self, build: Build) -> "MemorySafety":
        """Return the same property of another build, whose transform says where the arrays lie."""
        return replace(self, faulty=build)

    def _violated(self, usual: Run, run: Run, outcome: Outcome, found: Access) -> Verdict:
        if self.only not in ("", found.kind):
            return Inconclusive(f"another violation of memory: {found.kind}")
        kind: FindingKind = "death" if isinstance(outcome, Crashed) else "exception"
        reference = None if run.build.disabled else usual
        details = {"memory": found.kind, "role": found.role, "fills": [_fill(run), _fill(run)]}
        return Violated(Evidence(kind, RULE, f"{found.kind}: {found.line}", run, reference, "", details))

    def _compared(self, runs: Sequence[Run], outcomes: Sequence[Outcome]) -> Verdict:
        """Compare the two runs with guards; they differ in the content of fresh memory alone."""
        first, second = outcomes[1], outcomes[2]
        assert isinstance(first, Values)
        assert isinstance(second, Values)
        place = next(iter(_differing(first, second)), None)
        if place is None:
            return Holds()
        if self.only not in ("", "uninitialised"):
            return Holds("another violation of memory")
        if _random(runs[0].case):
            return Inconclusive("the program is random")
        feed, output = place
        name, fills = runs[0].case.program.outputs[output].name, [_fill(run) for run in runs[1:3]]
        message = (
            f"uninitialised: output '{name}' depends on the content of fresh memory (bytes {fills[0]:#04x} "
            f"or {fills[1]:#04x})"
        )
        details = {"memory": "uninitialised", "role": "output", "fills": fills, "feed": feed, "output": output}
        return Violated(Evidence("wrong", RULE, message, runs[2], runs[1], name, details))


def access_of(outcome: Outcome) -> Access | None:
    """Return what an outcome without values says about memory; None if memory is not what it is about."""
    text = outcome.observations.stderr if isinstance(outcome, Crashed) else _said(outcome)
    match = _ACCESS.search(text)
    if match:
        verb = "write" if match["verb"] == "write" else "read"
        if match["where"] == "into" and verb == "read":
            return None  # a fault inside of readable memory is none of the compiler's making
        kind: MemoryClass = f"{verb} {match['where']}"  # type: ignore[assignment]
        return Access(kind, match["role"], match[0].removeprefix(SAYS).strip())
    if not isinstance(outcome, Crashed):
        return None
    heap = _HEAP.search(text)
    if heap:
        return Access("heap", "", heap[0].strip())
    said = next((line for line in text.splitlines() if line.startswith(SAYS)), "the process dies with guards only")
    return Access("crash", "", said.removeprefix(SAYS).strip())


def _said(outcome: Outcome) -> str:
    return outcome.message if isinstance(outcome, Raised) else ""


def _fill(run: Run) -> int:
    return int(dict(run.build.transform.options)["fill"]) if run.build.transform else 0


def _differing(first: Values, second: Values) -> list[tuple[int, int]]:
    """Return the feeds and outputs in which elements differ grossly."""
    return [
        (feed, output)
        for feed, (lefts, rights) in enumerate(zip(first.results, second.results, strict=True))
        for output, (left, right) in enumerate(zip(lefts, rights, strict=True))
        if left is not None and right is not None and _gross(left, right)
    ]


def _gross(left: Tensor, right: Tensor) -> bool:
    if left.shape != right.shape or left.dtype != right.dtype:
        return True
    if left.same(right):
        return False
    if not is_float(left.dtype):
        return True
    a, b = left.numbers().astype(np.float64), right.numbers().astype(np.float64)
    with np.errstate(all="ignore"):
        alike = (a == b) | (np.isnan(a) & np.isnan(b))
        sizes = np.where(np.isfinite(a) & np.isfinite(b), np.maximum(np.abs(a), np.abs(b)), 0.0)
        near = np.abs(a - b) <= GROSS * max(float(sizes.max(initial=0.0)), float(np.finfo(np.float32).tiny))
    return not bool((alike | near).all())


def _random(case: Case) -> bool:
    try:
        return not all(plain(node) for node in read(case.program.payload).graph.nodes)
    except ModelError:
        return True


def _hold(options: NoOptions, evidence: Evidence, context: OracleContext, facts: Mapping[str, Any]) -> MemorySafety:
    """Return the property of one finding: its build, the bytes of fresh memory and the class."""
    del options, context, facts
    first, second = evidence.details.get("fills", (0, 0))
    only = str(evidence.details.get("memory", ""))
    return MemorySafety(evidence.faulty.target, evidence.faulty.build, (int(first), int(second)), only)


def _make(options: NoOptions, context: OracleContext) -> MemorySafety:
    del options
    return MemorySafety(context.target, Build("full", context.off(context.target)))


KIND = OracleKind(RULE, "accesses outside of tensors, and results that depend on unwritten memory", _hold, _make)
