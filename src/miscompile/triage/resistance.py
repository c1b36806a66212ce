"""Attribution of a bug to a class of optimisations: the class whose barriers heal it (ORTHRUS, section III-B).

This needs no switches of passes, so that it works for compilers that have none. It also names the edge of the program
at which a barrier prevents the faulty optimisation.
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

_KINDS = frozenset({"wrong", "shape", "dtype", "missing", "exception", "death", "special"})


@dataclass(frozen=True, slots=True)
class _Healing:
    """Tells whether the faulty build compiles the resistant twin of a program correctly."""

    case: Case
    pair: BuildPair
    runner: Runner
    rng: random.Random

    def __call__(self, twin: Resistant) -> bool:
        """Tell it for one twin; a twin that is refused does not heal the bug."""
        pair = replace(self.pair, faulty=replace(self.pair.faulty, transform=spec_of("resist", twin)))
        return isinstance(examine(self.case, pair, self.runner, self.rng).verdict, Holds)


def resisted(case: Case, pair: BuildPair, kind: str, runner: Runner, rng: random.Random) -> Mapping[str, Any]:
    """Return the class to blame (`class`), the edges that heal alone (`edges`), and every class that heals (`healing`).

    An empty mapping where no barrier heals, because the fault is within one operator or in a body, and where the
    attribution does not apply: the builds differ in more than their optimisation, or the bug is a hang.
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
