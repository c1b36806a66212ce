"""A pool that applies the transforms that builds ask for, before they go to a worker."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import TracebackType

from miscompile.core.outcome import Observations, Outcome, Values
from miscompile.core.pool import Counters, Pool
from miscompile.core.run import Run
from miscompile.core.tensor import Tensor
from miscompile.targets.derivatives import of_the_program, result_ports, rewritten_by
from miscompile.targets.registry import parse_target
from miscompile.transforms.catalogue import Share, present


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the outcomes of one run stand in the batch that was sent: a run may become several.

    `outputs` is the number of outputs that are compared; a transform may have added some.
    """

    start: int
    shares: tuple[Share, ...]
    outputs: int

    def is_plain(self, outcome: Outcome) -> bool:
        """Tell whether the outcome of the one program is that of the run as it is."""
        if len(self.shares) != 1 or not isinstance(outcome, Values):
            return False
        feeds = self.shares[0].feeds
        return len(outcome.results) == len(feeds) == len(set(feeds)) and len(outcome.results[0]) == self.outputs


class TransformingRunner:
    """Has the face of the pool that it wraps; runs without a transform pass through untouched.

    A transform that gives several programs gives one outcome: the values in the order of the feeds, or the first
    failure.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._places: dict[int, list[_Place]] = {}

    def __enter__(self) -> "TransformingRunner":
        self._pool.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._pool.__exit__(kind, error, at)

    @property
    def counters(self) -> Counters:
        """The counts of the pool's workers."""
        return self._pool.counters

    @property
    def compiler_cpu_seconds(self) -> float:
        """CPU time that the workers have spent inside the compiler."""
        return self._pool.compiler_cpu_seconds

    def run(self, runs: Sequence[Run]) -> list[Outcome]:
        """Execute `runs` as one batch and return their outcomes."""
        if not any(run.build.transform for run in runs):
            return self._pool.run(runs)
        sent, places = _spread(runs)
        return _gather(self._pool.run(sent), places)

    def submit(self, runs: Sequence[Run]) -> int:
        """Queue `runs` as one batch and return its ticket."""
        for run in runs:
            if run.build.transform:
                sent, places = _spread(runs)
                ticket = self._pool.submit(sent)
                self._places[ticket] = places
                return ticket
        return self._pool.submit(runs)

    def poll(self, timeout: float) -> list[tuple[int, list[Outcome]]]:
        """Return finished batches as (ticket, outcomes); waits up to `timeout` seconds when there is none yet."""
        done = self._pool.poll(timeout)
        if not self._places:
            return done
        return [(ticket, self._hand_out(ticket, outcomes)) for ticket, outcomes in done]

    def fresh(self) -> None:
        """Let the next batch meet workers that have run nothing."""
        self._pool.fresh()

    def allow(self, seconds: float | None) -> None:
        """Let a run take so long from now on; None: as long as at first."""
        self._pool.allow(seconds)

    def confirm(self, run: Run, times: int = 3) -> list[Outcome]:
        """Execute `run` alone in a fresh worker, `times` times; the first program that fails stands for it."""
        sent, places = _spread([run])
        repeated = [self._pool.confirm(one, times) for one in sent]
        return [_gather([outcomes[turn] for outcomes in repeated], places)[0] for turn in range(times)]

    def _hand_out(self, ticket: int, outcomes: list[Outcome]) -> list[Outcome]:
        places = self._places.pop(ticket, None)
        return outcomes if places is None else _gather(outcomes, places)


def _spread(runs: Sequence[Run]) -> tuple[list[Run], list[_Place]]:
    """Return the runs to send, and which of them belong to each run."""
    sent: list[Run] = []
    places = []
    for run in runs:
        shares = _shares(run)
        places.append(_Place(len(sent), shares, len(result_ports(run.case.program, run.build.transform))))
        if len(shares) == 1 and shares[0].case is run.case:
            sent.append(run)
            continue
        build = replace(run.build, transform=of_the_program(run.build.transform) if _rewrites_first(run) else None)
        sent += [replace(run, case=share.case, build=build) for share in shares]
    return sent, places


def _rewrites_first(run: Run) -> bool:
    return rewritten_by(run.build.transform) is not None


def _shares(run: Run) -> tuple[Share, ...]:
    transform = run.build.transform
    if _rewrites_first(run):
        return present(run.case, rewritten_by(transform))
    if transform is None or transform.name in parse_target(run.target).about.transforms:
        return (Share(run.case, tuple(range(len(run.case.feeds)))),)
    return present(run.case, transform)


def _gather(outcomes: Sequence[Outcome], places: Sequence[_Place]) -> list[Outcome]:
    return [_merged(outcomes[place.start : place.start + len(place.shares)], place) for place in places]


def _merged(outcomes: Sequence[Outcome], place: _Place) -> Outcome:
    """Return one outcome for the programs of one run, with the feeds and outputs of the case itself."""
    values = [outcome for outcome in outcomes if isinstance(outcome, Values)]
    if len(values) < len(outcomes):
        return next(outcome for outcome in outcomes if not isinstance(outcome, Values))
    if place.is_plain(outcomes[0]):
        return outcomes[0]
    results: dict[int, tuple[Tensor | None, ...]] = {}
    for one, share in zip(values, place.shares, strict=True):
        results.update(zip(share.feeds, [outputs[: place.outputs] for outputs in one.results], strict=True))
    return Values(tuple(results[feed] for feed in sorted(results)), _together([one.observations for one in values]))


def _together(seen: Sequence[Observations]) -> Observations:
    return replace(
        seen[0],
        compile_seconds=sum(one.compile_seconds for one in seen),
        run_seconds=sum(one.run_seconds for one in seen),
        cpu_seconds=sum(one.cpu_seconds for one in seen),
        memory=max(one.memory for one in seen),
        passes=tuple(dict.fromkeys(name for one in seen for name in one.passes)),
    )
