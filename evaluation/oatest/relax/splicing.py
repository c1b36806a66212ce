"""Are patterns of TVM's own tests really inside the Relax programs that they are spliced into?

OATest, sections 3.2 and 4.4, for TVM: patterns of LIBRARY, drawn at random, go into seeds of the `strict` producer. Of
each synthesis is noted whether TVM calls it well-formed, and which edges between seed and pattern the finished module
has; on a sample, whether the intended pass changes the program when it runs alone, and what it does to the seed; on
another, whether it is seen at work in a whole build, and whether that build agrees with the unoptimised one.

Most patterns of a library are for passes that lower, which change whatever they are given. So both samples are drawn
twice: of all syntheses, and of those with a pattern for a pass that optimises, which is one that can be off.
"""

import multiprocessing
import random
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from evaluation.oatest.relax.study import (
    OPTIMISING,
    TARGET,
    PassesAlone,
    RelaxSeed,
    RelaxStudy,
    RelaxSynthesis,
    SpliceJob,
)
from evaluation.oatest.splicing import ending_of, words_of
from miscompile.base.messages import normalise
from miscompile.base.rng import stream
from miscompile.base.specs import print_spec, stored_spec
from miscompile.core.case import Case
from miscompile.core.outcome import Outcome, Values
from miscompile.core.run import Build, Run
from miscompile.core.verdict import Holds, Inconclusive, Needs, Verdict, Violated
from miscompile.engine.coordinator import probe_support
from miscompile.engine.plan import Plan
from miscompile.engine.wiring import make_producer
from miscompile.execution.limits import Limits
from miscompile.execution.pool import LocalPool
from miscompile.oracles.judge import judge_pair
from miscompile.targets.tvm.relax.transforms import SPLICE, Splice, entry, located, names

CALLED = 0.25
"""Share of the syntheses in which the pattern is a private function that is called."""

SECONDS = 60.0
"""How long TVM may take for one synthesis, or for the passes of one program."""

SAMPLES = ("all", "optimising")

DISABLED = "ConvertLayout,DataflowInsertInPlaceCalls"
"""Passes that fail on four in ten seeds as they are, so that campaigns switch them off early."""


class TvmProcess:
    """A process with TVM; a context manager. It is started anew when it dies, or takes too long."""

    def __init__(self, library: str) -> None:
        self._library = library
        self._start()

    def __enter__(self) -> "TvmProcess":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end()

    def ask(self, kind: str, job: RelaxSeed | SpliceJob | PassesAlone) -> dict[str, Any] | None:
        """Return the worker's answer; None where the job killed it, or had no end."""
        try:
            self._pipe.send((kind, job))
            if self._pipe.poll(SECONDS):
                answer: dict[str, Any] = self._pipe.recv()
                return answer
        except (EOFError, OSError):
            pass
        self._end()
        self._start()
        return None

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self._library), daemon=True)
        self._process.start()
        theirs.close()

    def _end(self) -> None:
        self._pipe.close()
        self._process.kill()
        self._process.join()


def _serve(pipe: Any, library: str) -> None:  # noqa: ANN401 - the kind of connection differs between systems
    from evaluation.oatest.relax.worker import serve  # imports TVM

    serve(pipe, library)


def print_progress(what: str, done: int, total: int) -> None:
    """Tell how far a part is, now and then."""
    if done % 100 == 0 or done == total or (total <= 500 and done % 10 == 0):
        print(f"{time.strftime('%H:%M:%S')} {what} {done}/{total}", file=sys.stderr, flush=True)


def make_seeds(child: TvmProcess, count: int, seed: int, study: RelaxStudy) -> list[tuple[Case, RelaxSeed]]:
    """Return `count` cases of the `strict` producer into whose imported programs something can be spliced."""
    plan = Plan(TARGET, seed=seed, producers=("strict{variants=1}",))
    producer = make_producer(plan, probe_support(plan, TARGET))
    found: list[tuple[Case, RelaxSeed]] = []
    for index in range(10 * count):
        if len(found) == count:
            break
        case = producer.propose(stream(seed, "relax seeds", index))
        ports = case.program.inputs
        sizes = [(port.name, tuple(size for size in port.shape or () if isinstance(size, int))) for port in ports]
        one = RelaxSeed(case.program.payload, tuple((name, to) for name, to in sizes if 0 in to))
        answer = child.ask("seed", one) or {"why": "the importer dies"}
        study.seeds[answer.get("why", "taken")] += 1
        if "message" in answer:
            study.importer[answer["message"]] += 1
        if "why" not in answer:
            study.sizes.append(answer["bindings"])
            found.append((case, one))
            print_progress("seeds", len(found), count)
    return found


def synthesise(
    child: TvmProcess, library: str, seeds: Sequence[tuple[Case, RelaxSeed]], count: int, seed: int, study: RelaxStudy
) -> None:
    """Draw patterns and seeds until `count` syntheses are made, or twice as many drawn."""
    listed = names(library)
    while len(study.made) < count and study.drawn < 2 * count:
        rng = stream(seed, "relax splicing", study.drawn)
        study.drawn += 1
        place, name = rng.randrange(len(seeds)), rng.choice(listed)
        job = SpliceJob(seeds[place][1], name, rng.randrange(1 << 31), rng.random() < CALLED)
        told = child.ask("splice", job)
        if told is None:
            study.failed["killed TVM, or had no end"] += 1
        elif "failed" in told:
            study.failed[normalise(told["failed"])] += 1
        elif "refused" in told:
            study.refused[told["refused"]] += 1
            study.patterns[name] = told["refused"]
        else:
            study.made.append(RelaxSynthesis(job, place, tuple(entry(library, name)["passes"]), told))
            print_progress("syntheses", len(study.made), count)


def samples(made: Sequence[RelaxSynthesis], size: int, rng: random.Random) -> dict[str, list[RelaxSynthesis]]:
    """Return a sample of all syntheses, and one of those with a pattern for a pass that optimises."""
    some = [one for one in made if not OPTIMISING.isdisjoint(one.passes)]
    return {name: rng.sample(pool, min(size, len(pool))) for name, pool in zip(SAMPLES, (made, some), strict=True)}


def run_alone(
    child: TvmProcess, library: str, chosen: Mapping[str, Sequence[RelaxSynthesis]], study: RelaxStudy
) -> None:
    """See whether the intended passes change the programs of each sample, and their seeds, when they run alone.

    The passes of the next program's pattern are run as well, to see what chance does.
    """
    for sample, programs in chosen.items():
        study.alone[sample] = []
        intended = [_intended(sample, one.passes) for one in programs]
        for place, one in enumerate(programs):
            others = intended[(place + 1) % len(programs)]
            own = intended[place]
            passes = tuple(dict.fromkeys((*own, *others)))
            told = child.ask("alone", PassesAlone(one.job, passes))
            triggers = entry(library, one.job.pattern)["wakes"]
            row = {"pattern": one.job.pattern, "own": own, "others": others, "told": told, "wakes": triggers}
            study.alone[sample].append(row)
            print_progress(f"passes alone, {sample},", place + 1, len(programs))


def _intended(sample: str, passes: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in passes if sample == "all" or name in OPTIMISING)


def build_all(
    library: str,
    seeds: Sequence[tuple[Case, RelaxSeed]],
    chosen: Mapping[str, Sequence[RelaxSynthesis]],
    disabled: frozenset[str],
    study: RelaxStudy,
) -> None:
    """Build the programs of each sample without optimisation and with all but `disabled`; hold one against the other.

    Each seed is also built once without a pattern, because a failure of the seed alone is not caused by the splice.
    """
    with LocalPool(TARGET, 1, Limits(seconds=SECONDS)) as pool:
        for sample, programs in chosen.items():
            study.builds[sample] = []
            for done, one in enumerate(programs, 1):
                job, (case, _) = one.job, seeds[one.place]
                if one.place not in study.plain:
                    study.plain[one.place] = judged(pool, case, "", disabled)
                form = print_spec(SPLICE, Splice(library, (job.pattern,), seed=job.number, call=job.call))
                row = {
                    "pattern": job.pattern,
                    "seed": one.place,
                    "form": form,
                    "passes": [name for name in one.passes if name not in disabled],
                }
                study.builds[sample].append(
                    row | judged(pool, case, form, disabled) | {"plain": study.plain[one.place]}
                )
                print_progress(f"builds, {sample},", done, len(programs))


def judged(pool: LocalPool, case: Case, form: str, disabled: frozenset[str]) -> dict[str, Any]:
    """Return what came of both builds of `case` in `form`, and the tool's own verdict, after a second round if need be.

    `seen` are the passes that were seen at work.
    """
    full = Build("full", disabled, observe=True, transform=stored_spec(form))
    runs = [Run(case, TARGET, build) for build in (Build("off", transform=stored_spec(form)), full)]
    outcomes = pool.run(runs)
    verdict = judge_pair(runs, outcomes, "strict")
    if isinstance(verdict, Needs):
        runs, outcomes = [*runs, *verdict.runs], [*outcomes, *pool.run(verdict.runs)]
        verdict = judge_pair(runs, outcomes, "strict")
    evidence = verdict.evidence if isinstance(verdict, Violated) else None
    return {
        "off": _ending(outcomes[0]),
        "full": _ending(outcomes[1]),
        "verdict": _word(verdict),
        "seen": outcomes[1].observations.passes,
        "message": evidence.message if evidence else "",
        "details": dict(evidence.details) if evidence else {},
    }


def _ending(outcome: Outcome) -> str:
    return "values" if isinstance(outcome, Values) else f"{ending_of(outcome)}: {words_of(outcome)}"[:300]


def _word(verdict: Verdict) -> str:
    match verdict:
        case Holds(note):
            return f"other bits, {note}" if note else "the same bits"
        case Inconclusive(reason):
            return reason
        case Violated(evidence):
            return f"violated: {evidence.kind}"
        case Needs():
            return "too many rounds"


@dataclass(frozen=True, slots=True)
class RelaxSettings:
    """The folder of patterns, and how much is measured.

    `syntheses` programs from `seeds` seeds; on `watched` of each sample passes run alone, `built` of each sample are
    built and run, without the passes `disabled` (joined with commas).
    """

    library: str
    syntheses: int = 5000
    seeds: int = 100
    watched: int = 300
    built: int = 100
    disabled: str = DISABLED
    seed: int = 11


def run(settings: RelaxSettings) -> RelaxStudy:
    """Measure; after Ctrl-C, return what was measured until then. Raises UsageError for a folder without patterns."""
    names(located(settings.library))
    study = RelaxStudy()
    try:
        measure(settings, study)
    except KeyboardInterrupt:
        study.stopped = True
    return study


def measure(settings: RelaxSettings, study: RelaxStudy) -> None:
    """Measure everything; after an interruption `study` holds the figures so far."""
    library = located(settings.library)
    rng = stream(settings.seed, "relax samples")
    with TvmProcess(library) as child:
        seeds = make_seeds(child, settings.seeds, settings.seed, study)
        synthesise(child, library, seeds, settings.syntheses, settings.seed, study)
        run_alone(child, library, samples(study.made, settings.watched, rng), study)
    off = frozenset(filter(None, settings.disabled.split(",")))
    build_all(library, seeds, samples(study.made, settings.built, rng), off, study)
