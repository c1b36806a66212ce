"""Failing tests and different failures, with and without guidance (HIRFUZZ, section 5.5, second experiment)."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from miscompile.base.rng import stream
from miscompile.bench.measures import Failure, Unique, Watch, failure_of, unique, unwatched
from miscompile.bench.series import Judged, Laboratory, run_series
from miscompile.campaign.desk import Desk
from miscompile.campaign.suspicion import MOST_SIGHTINGS, Charge, Detective, to_stored
from miscompile.campaign.wiring import make_oracle
from miscompile.core.verdict import Inconclusive, Violated
from miscompile.environments.resolve import versions_of
from miscompile.findings.folder import Stored
from miscompile.generation.presets import Hirfuzz, HirfuzzKnobs, PresetGuidance
from miscompile.ops.support import Support

PAPERS_BUGS = {"gate": (11, 24), "off": (8, 37)}
"""Bugs and failing tests of the paper in two days on TVM 0.9, told apart by hand."""

MODES: tuple[PresetGuidance, ...] = ("gate", "off")


_TURN = 0.1


@dataclass(frozen=True, slots=True)
class FailureSeries:
    """What came of one series of tests on one target.

    `failures` showed again in a fresh worker, and their bug again in the standalone script of a reduced case;
    `unstable` counts violations that failed the first of these; `unconfirmed` are those whose bug failed the second,
    three sightings of it if there are as many; `untriaged` counts those for which there was no time, or whose triage
    ended with one of the `problems`. `undecided` says by reason how many tests could not be judged.
    `seconds` are wall-clock seconds: of the tests with the confirming of failures, and of triage.
    """

    target: str
    mode: PresetGuidance
    tests: int
    failures: tuple[Failure, ...]
    unstable: int
    unconfirmed: tuple[Failure, ...]
    untriaged: int
    problems: tuple[str, ...]
    undecided: Mapping[str, int]
    score: int
    seconds: tuple[float, float]

    @property
    def unique(self) -> Unique:
        """How many different failures there are."""
        return unique(self.failures)

    def as_json(self) -> dict[str, Any]:
        """Return the series as a JSON object."""
        bugs, failing = PAPERS_BUGS.get(self.mode, (None, None))
        names = ("target", "mode", "tests", "unstable", "untriaged", "score")
        return {
            **{name: getattr(self, name) for name in names},
            "unique": self.unique.as_json(),
            "undecided": dict(self.undecided),
            "seconds": {"tests": self.seconds[0], "triage": self.seconds[1]},
            "failures": [failure.as_json() for failure in self.failures],
            "unconfirmed": [failure.as_json() for failure in self.unconfirmed],
            "problems": list(self.problems),
            "paper": {"bugs": bugs, "failing_tests": failing, "days": 2},
        }


@dataclass(slots=True)
class _Docket:
    """Failures of one bug, as far as is known before triage, and the first few as findings for the desk."""

    sightings: list[Stored] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)


def measure(
    lab: Laboratory,
    knobs: HirfuzzKnobs,
    support: Support,
    tests: int,
    patience: float = 300.0,
    watch: Watch = unwatched,
) -> FailureSeries:
    """Run `tests` tests under the knobs' guidance, confirm every violation in a fresh worker, and triage the bugs.

    Triage takes at most `patience` seconds; what is not done by then is counted as untriaged.
    """
    plan, begin = lab.plan, time.monotonic()
    producer = Hirfuzz(knobs, support)
    detective = Detective(lab.second, plan.compare, plan.seed)
    dockets: dict[str, _Docket] = {}
    unstable, undecided = 0, Counter[str]()
    rng_of = partial(stream, plan.seed, "bench", "failures", knobs.guidance)
    for judged in run_series(lab, producer, make_oracle(plan, {}), tests, rng_of):
        match judged.verdict:
            case Inconclusive(reason):
                undecided[reason] += 1
            case Violated(evidence):
                charge = detective.investigate(judged.case, evidence)
                unstable += charge is None
                if charge is not None:
                    _enter(dockets, judged, charge, versions_of(plan.target))
        watch(f"{plan.target}, guidance {knobs.guidance}", judged.test + 1, tests)
    tested = time.monotonic()
    found, unconfirmed, untriaged, problems = _triaged(lab, list(dockets.values()), patience, watch)
    return FailureSeries(
        target=plan.target,
        mode=knobs.guidance,
        tests=tests,
        failures=tuple(sorted(found, key=lambda failure: failure.test)),
        unstable=unstable,
        unconfirmed=tuple(unconfirmed),
        untriaged=untriaged,
        problems=tuple(problems),
        undecided=undecided,
        score=producer.coverage.score,
        seconds=(tested - begin, time.monotonic() - tested),
    )


def _enter(dockets: dict[str, _Docket], judged: Judged, charge: Charge, versions: Mapping[str, str]) -> None:
    """Put a failure to those of the same signature; without culprits and message, every failure is for itself."""
    assert isinstance(judged.verdict, Violated)
    seen, signature = judged.verdict.evidence, charge.signature
    told_apart = signature.culprits or seen.kind in ("exception", "hang", "memory")
    key = str(signature) if told_apart else f"{signature} {judged.test}"
    outcomes = [outcome for run, outcome in zip(judged.runs, judged.outcomes, strict=True) if run == seen.faulty]
    failure = failure_of(judged.test, seen, next(iter(outcomes), None), str(signature))
    docket = dockets.setdefault(key, _Docket())
    docket.failures.append(failure)
    if len(docket.sightings) < MOST_SIGHTINGS:
        docket.sightings.append(to_stored(charge.evidence, signature, judged.case, versions, test=judged.test))


def _triaged(
    lab: Laboratory, dockets: Sequence[_Docket], patience: float, watch: Watch
) -> tuple[list[Failure], list[Failure], int, list[str]]:
    """Have a failure of every docket reduced and confirmed.

    Returns the failures that count, with the signatures of the reduced cases; those of unconfirmed bugs; how many there
    was no time for, or triage did not survive; and what it said then.
    """
    found: list[Failure] = []
    unconfirmed: list[Failure] = []
    problems: list[str] = []
    end = time.monotonic() + patience
    waiting: dict[str, _Docket] = {}
    with TemporaryDirectory(prefix="miscompile-") as place:
        desk = Desk(replace(lab.plan, out=Path(place)))

        def submit(docket: _Docket) -> None:
            stored = docket.sightings.pop(0)
            waiting[stored.finding.identifier] = docket
            desk.submit(stored)

        try:
            for docket in dockets:
                submit(docket)
            while waiting and desk.alive and time.monotonic() < end:
                for answer in desk.collect():
                    docket = waiting.pop(answer.stored.finding.identifier)
                    problems += [answer.problem] if answer.problem else []
                    if answer.stored.status in ("confirmed", "known"):
                        signature = str(answer.stored.finding.property.signature)
                        found += [replace(failure, signature=signature) for failure in docket.failures]
                    elif docket.sightings:
                        submit(docket)  # another one may come off better
                    elif not answer.problem:
                        unconfirmed += docket.failures
                    watch(f"{lab.plan.target}, triage", len(dockets) - len(waiting), len(dockets))
                time.sleep(_TURN)
        finally:
            desk.close()
    left = sum(len(docket.failures) for docket in dockets) - len(found) - len(unconfirmed)
    return found, unconfirmed, left, problems
