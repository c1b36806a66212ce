"""The casebook of a series: which of its violations are failures, and how many different bugs are behind them.

What published fuzzers count by hand is counted here by rule: a violation must show again in a fresh worker, and its bug
in the standalone script of a reduced case.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from miscompile.bench.measures import Failure, Watch, failure_of
from miscompile.bench.series import Judged, Laboratory
from miscompile.core.verdict import Inconclusive, Violated
from miscompile.engine.wiring import oracle_context, triage_settings
from miscompile.environments.resolve import versions_of
from miscompile.findings import folder
from miscompile.findings.folder import Stored
from miscompile.oracles.registry import OracleContext
from miscompile.triage.attribution import MOST_SIGHTINGS, ConfirmedViolation, Confirmer, to_stored
from miscompile.triage.queue import TriageQueue

_TURN = 0.1


@dataclass(frozen=True, slots=True)
class Settled:
    """What is left of a series' violations.

    `failures` showed again in a fresh worker, and their bug again in the standalone script of a reduced case;
    `unstable` counts violations that failed the first of these; `unconfirmed` are those whose bug failed the second,
    three sightings of it if there are as many; `untriaged` counts those for which there was no time, or whose triage
    ended with one of the `problems`. `undecided` says by reason how many tests could not be judged.
    """

    failures: tuple[Failure, ...]
    unstable: int
    unconfirmed: tuple[Failure, ...]
    untriaged: int
    problems: tuple[str, ...]
    undecided: Mapping[str, int]


@dataclass(slots=True)
class _Docket:
    """Failures of one bug, as far as is known before triage, and the first few as findings for the desk."""

    sightings: list[Stored] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)


class FailureLog:
    """Takes the judged tests of one series, and settles in the end which of them failed of what."""

    def __init__(self, lab: Laboratory) -> None:
        plan = lab.plan
        self._lab, self._versions = lab, versions_of(plan.target)
        self._detective = Confirmer(lab.second, oracle_context(plan), plan.seed)
        self._dockets: dict[str, _Docket] = {}
        self._unstable, self._undecided = 0, Counter[str]()

    def take(self, judged: Judged) -> None:
        """Note what came of a test; a violation is looked into at once, in fresh workers."""
        match judged.verdict:
            case Inconclusive(reason):
                self._undecided[reason] += 1
            case Violated(evidence):
                charge = self._detective.investigate(judged.case, evidence)
                self._unstable += charge is None
                if charge is not None:
                    _enter(self._dockets, judged, charge, self._versions, oracle_context(self._lab.plan))

    def settle(self, patience: float, watch: Watch) -> Settled:
        """Triage the bugs, for at most `patience` seconds; what is not done by then is counted as untriaged."""
        found, unconfirmed, untriaged, problems = _triaged(self._lab, list(self._dockets.values()), patience, watch)
        return Settled(
            tuple(sorted(found, key=lambda failure: failure.test)),
            self._unstable,
            tuple(unconfirmed),
            untriaged,
            tuple(problems),
            dict(self._undecided),
        )


def _enter(
    dockets: dict[str, _Docket],
    judged: Judged,
    charge: ConfirmedViolation,
    versions: Mapping[str, str],
    context: OracleContext,
) -> None:
    """Put a failure to those of the same signature; without culprits and message, every failure is for itself."""
    assert isinstance(judged.verdict, Violated)
    seen, signature = judged.verdict.evidence, charge.signature
    told_apart = signature.culprits or seen.kind in ("exception", "hang", "memory")
    key = str(signature) if told_apart else f"{signature} {judged.test}"
    outcomes = [outcome for run, outcome in zip(judged.runs, judged.outcomes, strict=True) if run == seen.faulty]
    failure = failure_of(judged.test, seen, next(iter(outcomes), None), str(signature))
    bucket = dockets.setdefault(key, _Docket())
    bucket.failures.append(failure)
    if len(bucket.sightings) < MOST_SIGHTINGS:
        bucket.sightings.append(to_stored(charge.evidence, signature, judged.case, versions, context, test=judged.test))


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
        out = Path(place)
        triage = TriageQueue(triage_settings(replace(lab.plan, out=out)))

        def submit(bucket: _Docket) -> None:
            stored = bucket.sightings.pop(0)
            waiting[stored.finding.identifier] = bucket
            folder.save(out, stored)
            triage.submit(stored.finding.identifier)

        try:
            for bucket in dockets:
                submit(bucket)
            while waiting and triage.alive and time.monotonic() < end:
                for answer in triage.collect():
                    bucket = waiting.pop(answer.identifier)
                    problems += [answer.problem] if answer.problem else []
                    stored = folder.load(out, answer.identifier)
                    if stored.status in ("confirmed", "known"):
                        signature = str(stored.finding.property.signature)
                        found += [replace(failure, signature=signature) for failure in bucket.failures]
                    elif bucket.sightings:
                        submit(bucket)  # another one may come off better
                    elif not answer.problem:
                        unconfirmed += bucket.failures
                    watch(f"{lab.plan.target}, triage", len(dockets) - len(waiting), len(dockets))
                time.sleep(_TURN)
        finally:
            triage.close()
    left = sum(len(bucket.failures) for bucket in dockets) - len(found) - len(unconfirmed)
    return found, unconfirmed, left, problems
