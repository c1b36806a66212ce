"""Failures of a series: which of its violations can be repeated, and how many different bugs are behind them.

Authors of published fuzzers told bugs apart by hand. Here a rule does it: a violation must show again in a fresh
worker, and its bug in the standalone script of a reduced case.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from evaluation.measures import ConfirmedFailure, Watch, failure_of, unique
from evaluation.series import Judged, SeriesPools
from miscompile.core.verdict import Inconclusive, Violated
from miscompile.engine.wiring import oracle_context, triage_settings
from miscompile.environments.resolve import versions_of
from miscompile.findings import folder
from miscompile.findings.folder import REPEATED, Stored
from miscompile.oracles.kinds import OracleContext
from miscompile.triage.attribution import MOST_SIGHTINGS, ConfirmedViolation, Confirmer, to_stored
from miscompile.triage.queue import TriageQueue

_TURN = 0.1


@dataclass(frozen=True, slots=True)
class SettledFailures:
    """Violations of a series, by what became of them.

    `failures` showed again in a fresh worker, and their bug again in the standalone script of a reduced case;
    `unstable` counts violations that failed the first of these; `unconfirmed` are those whose bug failed the second,
    three sightings of it if there are as many; `untriaged` counts those for which there was no time, or whose triage
    ended with one of the `problems`. `undecided` says by reason how many tests could not be judged.
    """

    failures: tuple[ConfirmedFailure, ...]
    unstable: int
    unconfirmed: tuple[ConfirmedFailure, ...]
    untriaged: int
    problems: tuple[str, ...]
    undecided: Mapping[str, int]

    def as_json(self) -> dict[str, Any]:
        """Return the failures, and how many different ones they are, as a JSON object."""
        return {
            "unique": unique(self.failures).as_json(),
            "unstable": self.unstable,
            "untriaged": self.untriaged,
            "undecided": dict(self.undecided),
            "problems": list(self.problems),
            "failures": [failure.as_json() for failure in self.failures],
            "unconfirmed": [failure.as_json() for failure in self.unconfirmed],
        }


@dataclass(slots=True)
class _Bucket:
    """Failures of one bug, as far as is known before triage, and the first few as findings for the triage process."""

    sightings: list[Stored] = field(default_factory=list)
    failures: list[ConfirmedFailure] = field(default_factory=list)


class FailureLog:
    """Takes the judged tests of one series, and settles in the end which of them failed of what."""

    def __init__(self, pools: SeriesPools) -> None:
        plan = pools.plan
        self._pools, self._versions = pools, versions_of(plan.target)
        self._confirmer = Confirmer(pools.second, oracle_context(plan), plan.seed)
        self._buckets: dict[str, _Bucket] = {}
        self._unstable, self._undecided = 0, Counter[str]()

    def take(self, judged: Judged) -> None:
        """Note what came of a test; a violation is looked into at once, in fresh workers."""
        match judged.verdict:
            case Inconclusive(reason):
                self._undecided[reason] += 1
            case Violated(evidence):
                confirmed = self._confirmer.investigate(judged.case, evidence)
                self._unstable += confirmed is None
                if confirmed is not None:
                    _enter(self._buckets, judged, confirmed, self._versions, oracle_context(self._pools.plan))

    def settle(self, patience: float, watch: Watch) -> SettledFailures:
        """Triage the bugs, for at most `patience` seconds; the remaining ones are counted as untriaged."""
        found, unconfirmed, untriaged, problems = _triaged(self._pools, list(self._buckets.values()), patience, watch)
        return SettledFailures(
            tuple(sorted(found, key=lambda failure: failure.test)),
            self._unstable,
            tuple(unconfirmed),
            untriaged,
            tuple(problems),
            dict(self._undecided),
        )


def _enter(
    buckets: dict[str, _Bucket],
    judged: Judged,
    confirmed: ConfirmedViolation,
    versions: Mapping[str, str],
    context: OracleContext,
) -> None:
    """Put a failure to those of the same signature; without culprits and message, every failure is for itself."""
    assert isinstance(judged.verdict, Violated)
    seen, signature = judged.verdict.evidence, confirmed.signature
    told_apart = signature.culprits or seen.kind in ("exception", "hang", "memory")
    key = str(signature) if told_apart else f"{signature} {judged.test}"
    outcomes = [outcome for run, outcome in zip(judged.runs, judged.outcomes, strict=True) if run == seen.faulty]
    failure = failure_of(judged.test, seen, next(iter(outcomes), None), str(signature))
    bucket = buckets.setdefault(key, _Bucket())
    bucket.failures.append(failure)
    if len(bucket.sightings) < MOST_SIGHTINGS:
        bucket.sightings.append(
            to_stored(confirmed.evidence, signature, judged.case, versions, context, test=judged.test)
        )


def _triaged(
    pools: SeriesPools, buckets: Sequence[_Bucket], patience: float, watch: Watch
) -> tuple[list[ConfirmedFailure], list[ConfirmedFailure], int, list[str]]:
    """Have a failure of every bucket reduced and confirmed.

    Returns the failures that count, with the signatures of the reduced cases; those of unconfirmed bugs; how many there
    was no time for, or triage did not survive; and what it said then.
    """
    found: list[ConfirmedFailure] = []
    unconfirmed: list[ConfirmedFailure] = []
    problems: list[str] = []
    end = time.monotonic() + patience
    waiting: dict[str, _Bucket] = {}
    with TemporaryDirectory(prefix="miscompile-") as place:
        out = Path(place)
        triage = TriageQueue(triage_settings(replace(pools.plan, out=out)))

        def submit(bucket: _Bucket) -> None:
            stored = bucket.sightings.pop(0)
            waiting[stored.finding.identifier] = bucket
            folder.save(out, stored)
            triage.submit(stored.finding.identifier)

        try:
            for bucket in buckets:
                submit(bucket)
            while waiting and triage.alive and time.monotonic() < end:
                for answer in triage.collect():
                    bucket = waiting.pop(answer.identifier)
                    problems += [answer.problem] if answer.problem else []
                    stored = folder.load(out, answer.identifier)
                    if answer.duplicate or stored.status in REPEATED:
                        signature = str(stored.finding.property.signature)
                        found += [replace(failure, signature=signature) for failure in bucket.failures]
                    elif bucket.sightings:
                        submit(bucket)  # another one may come off better
                    elif not answer.problem:
                        unconfirmed += bucket.failures
                    watch(f"{pools.plan.target}, triage", len(buckets) - len(waiting), len(buckets))
                time.sleep(_TURN)
        finally:
            triage.close()
    left = sum(len(bucket.failures) for bucket in buckets) - len(found) - len(unconfirmed)
    return found, unconfirmed, left, problems
