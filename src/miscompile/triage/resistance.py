"""Which class of optimisations a bug belongs to: the one whose resistance heals it (ORTHRUS, section III-B).

This needs no switches, so that it says something of compilers that have none; and it names the edge of the program at
which an optimisation must be kept from its work.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from miscompile.base.errors import ModelError, RejectedDraft
from miscompile.base.specs import spec_of
from miscompile.core.case import Case
from miscompile.core.examination import examine
from miscompile.core.ports import Runner
from miscompile.core.verdict import Holds
from miscompile.execution.runners import CachingRunner
from miscompile.graph.read import read
from miscompile.oracles.pair import BuildPair
from miscompile.transforms.resist.attribution import attribute
from miscompile.transforms.resist.transform import Resistant

PLAIN = "gather+where+transpose+split+cast+max"
"""Barriers without control flow, for compilers that refuse it."""

_KINDS = frozenset({"wrong", "shape", "dtype", "missing", "exception", "death"})


@dataclass(frozen=True, slots=True)
class _Healing:
    """Tells whether the build at fault gets the twin of a program right."""

    case: Case
    pair: BuildPair
    runner: Runner
    rng: random.Random

    def __call__(self, twin: Resistant) -> bool:
        """Tell it for one twin; a twin that is refused heals nothing."""
        pair = replace(self.pair, faulty=replace(self.pair.faulty, transform=spec_of("resist", twin)))
        return isinstance(examine(self.case, pair, self.runner, self.rng).verdict, Holds)


def resisted(case: Case, pair: BuildPair, kind: str, runner: Runner, rng: random.Random) -> Mapping[str, Any]:
    """Return the class to blame (`class`), the edges that heal alone (`edges`), and every class that heals (`healing`).

    An empty mapping where no barrier heals, so that the fault lies within one operator or in a body, or where the
    question makes no sense: the builds differ in more than their optimisation, or the bug is a hang.
    """
    if kind not in _KINDS or pair.against or pair.faulty.transform or pair.faulty.level == "off":
        return {}
    heals = _Healing(case, pair, CachingRunner(runner), rng)
    for strategies in ("", PLAIN):
        try:
            found = attribute(read(case.program.payload), Resistant(strategies=strategies), heals)
        except (ModelError, RejectedDraft):
            return {}
        if found.kind:
            edges = [str(site) for site in found.sites]
            return {"class": found.kind, "edges": edges, "healing": sorted(found.healing)}
    return {}
