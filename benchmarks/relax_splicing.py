"""Are patterns of TVM's own tests really inside the Relax programs that they are spliced into? Run as a script.

OATest, sections 3.2 and 4.4, for TVM: patterns of LIBRARY, drawn at random, go into seeds of the `strict` producer. Of
each synthesis is noted whether TVM calls it well-formed, and which edges between seed and pattern the finished module
has; on a sample, whether the intended pass changes the program when it runs alone, and what it does to the seed; on
another, whether it is seen at work in a whole build, and whether that build agrees with the unoptimised one.

Most patterns of a library are for passes that lower, which change whatever they are given. So both samples are drawn
twice: of all syntheses, and of those with a pattern for a pass that optimises, which is one that can be off.
"""

import argparse
import json
import multiprocessing
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from miscompile.base.rng import stream
from miscompile.base.specs import print_spec
from miscompile.bench.splicing import PAPERS_TRIGGER, ending_of, words_of
from miscompile.campaign.lead import probe_support
from miscompile.campaign.plan import Plan
from miscompile.campaign.wiring import make_producer
from miscompile.core.case import Case
from miscompile.core.outcome import Outcome, Values
from miscompile.core.run import Build, Run
from miscompile.core.verdict import Holds, Inconclusive, Needs, Verdict, Violated
from miscompile.execution.limits import Limits
from miscompile.execution.pool import LocalPool
from miscompile.oracles.judge import judge_pair
from miscompile.targets.registry import parse_target
from miscompile.targets.tvm.splice_form import SPLICE, Splice, entry, located, names
from miscompile.triage.signature import normalise

TARGET = "tvm"
CALLED = 0.25
"""Share of the syntheses in which the pattern is a private function that is called."""

SECONDS = 60.0
"""How long TVM may take for one synthesis, or for the passes of one program."""

SAMPLES = ("all", "optimising")
OPTIMISING = frozenset(parse_target(TARGET).about.passes)
"""Passes that can be off, and whose work is seen in a build: all that optimise, but none that must lower."""


DISABLED = "ConvertLayout,DataflowInsertInPlaceCalls"
"""Passes that fail on four in ten seeds as they are, so that campaigns switch them off early."""


class Seed(NamedTuple):
    """A model that TVM's importer takes, and its inputs without elements, whose sizes must be told."""

    payload: bytes
    empty: tuple[tuple[str, tuple[int, ...]], ...]


class Job(NamedTuple):
    """A synthesis: a seed, the pattern's name, the number from which all choices follow, and whether it is called."""

    seed: Seed
    pattern: str
    number: int
    call: bool


class Alone(NamedTuple):
    """A synthesis, and the passes that are to run on it alone."""

    job: Job
    passes: tuple[str, ...]


class Made(NamedTuple):
    """A synthesis that was made: the job, the place of its seed, the passes of its pattern, what the worker tells."""

    job: Job
    place: int
    passes: tuple[str, ...]
    told: Mapping[str, Any]


class Child:
    """A process with TVM; a context manager. It is started anew when it dies, or takes too long."""

    def __init__(self, library: str) -> None:
        self._library = library
        self._start()

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end()

    def ask(self, kind: str, job: Seed | Job | Alone) -> dict[str, Any] | None:
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
    from relax_worker import serve  # imports TVM

    serve(pipe, library)


@dataclass(slots=True)
class Study:
    """What was measured so far. `refused` has syntheses that were not made, by why, `failed` those that should have
    been; `patterns` the names of patterns that were refused. `alone` and `builds` have an entry for each sample,
    `plain` for each seed that was built as it is."""

    seeds: Counter[str] = field(default_factory=Counter)
    importer: Counter[str] = field(default_factory=Counter)
    sizes: list[int] = field(default_factory=list)
    drawn: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    patterns: dict[str, str] = field(default_factory=dict)
    made: list[Made] = field(default_factory=list)
    alone: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    builds: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    plain: dict[int, dict[str, Any]] = field(default_factory=dict)
    stopped: bool = False


def say(what: str, done: int, total: int) -> None:
    """Tell how far a part is, now and then."""
    if done % 100 == 0 or done == total or (total <= 500 and done % 10 == 0):
        print(f"{time.strftime('%H:%M:%S')} {what} {done}/{total}", file=sys.stderr, flush=True)


def make_seeds(child: Child, count: int, seed: int, study: Study) -> list[tuple[Case, Seed]]:
    """Return `count` cases of the `strict` producer into whose imported programs something can be spliced."""
    plan = Plan(TARGET, seed=seed, producers=("strict{variants=1}",))
    producer = make_producer(plan, probe_support(plan, TARGET))
    found: list[tuple[Case, Seed]] = []
    for index in range(10 * count):
        if len(found) == count:
            break
        case = producer.propose(stream(seed, "relax seeds", index))
        ports = case.program.inputs
        sizes = [(port.name, tuple(size for size in port.shape or () if isinstance(size, int))) for port in ports]
        one = Seed(case.program.payload, tuple((name, to) for name, to in sizes if 0 in to))
        answer = child.ask("seed", one) or {"why": "the importer dies"}
        study.seeds[answer.get("why", "taken")] += 1
        if "message" in answer:
            study.importer[answer["message"]] += 1
        if "why" not in answer:
            study.sizes.append(answer["bindings"])
            found.append((case, one))
            say("seeds", len(found), count)
    return found


def synthesise(
    child: Child, library: str, seeds: Sequence[tuple[Case, Seed]], count: int, seed: int, study: Study
) -> None:
    """Draw patterns and seeds until `count` syntheses are made, or twice as many drawn."""
    listed = names(library)
    while len(study.made) < count and study.drawn < 2 * count:
        rng = stream(seed, "relax splicing", study.drawn)
        study.drawn += 1
        place, name = rng.randrange(len(seeds)), rng.choice(listed)
        job = Job(seeds[place][1], name, rng.randrange(1 << 31), rng.random() < CALLED)
        told = child.ask("splice", job)
        if told is None:
            study.failed["killed TVM, or had no end"] += 1
        elif "failed" in told:
            study.failed[normalise(told["failed"])] += 1
        elif "refused" in told:
            study.refused[told["refused"]] += 1
            study.patterns[name] = told["refused"]
        else:
            study.made.append(Made(job, place, tuple(entry(library, name)["passes"]), told))
            say("syntheses", len(study.made), count)


def samples(made: Sequence[Made], size: int, rng: random.Random) -> dict[str, list[Made]]:
    """Return a sample of all syntheses, and one of those with a pattern for a pass that optimises."""
    some = [one for one in made if not OPTIMISING.isdisjoint(one.passes)]
    return {name: rng.sample(pool, min(size, len(pool))) for name, pool in zip(SAMPLES, (made, some), strict=True)}


def run_alone(child: Child, library: str, chosen: Mapping[str, Sequence[Made]], study: Study) -> None:
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
            told = child.ask("alone", Alone(one.job, passes))
            wakes = entry(library, one.job.pattern)["wakes"]
            row = {"pattern": one.job.pattern, "own": own, "others": others, "told": told, "wakes": wakes}
            study.alone[sample].append(row)
            say(f"passes alone, {sample},", place + 1, len(programs))


def _intended(sample: str, passes: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in passes if sample == "all" or name in OPTIMISING)


def build_all(
    library: str,
    seeds: Sequence[tuple[Case, Seed]],
    chosen: Mapping[str, Sequence[Made]],
    disabled: frozenset[str],
    study: Study,
) -> None:
    """Build the programs of each sample without optimisation and with all but `disabled`; hold one against the other.

    The same is done once with every seed as it is: what goes wrong with that says nothing about the splice.
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
                say(f"builds, {sample},", done, len(programs))


def judged(pool: LocalPool, case: Case, form: str, disabled: frozenset[str]) -> dict[str, Any]:
    """Return what came of both builds of `case` in `form`, and the tool's own verdict, after a second round if need be.

    `seen` are the passes that were seen at work.
    """
    full = Build("full", disabled, observe=True, form=form)
    runs = [Run(case, TARGET, build) for build in (Build("off", form=form), full)]
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


_AGREED, _WRONG = ("the same bits", "other bits"), "violated: wrong"


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


def share(part: int, whole: int) -> str:
    """Return a share for people, with its numbers."""
    return f"{100 * part / whole:.1f} % ({part:,} of {whole:,})" if whole else "none"


def syntheses_rows(study: Study) -> dict[str, str]:
    """Return what is to be said of the syntheses, by row of the table."""
    told = [one.told for one in study.made]
    facts = {name: sum(one["facts"][name] for one in told) for name in (told[0]["facts"] if told else ())}
    reading = {one.job.pattern: one.told["reading"] for one in study.made}
    return {
        "seeds": f"{dict(study.seeds)}, {statistics.mean(study.sizes or [0]):.1f} bindings on average",
        "drawn; refused; failed": f"{study.drawn:,}; {study.refused.total():,}; {study.failed.total():,}",
        "refused, by why": f"{dict(study.refused)}, {len(study.patterns)} patterns",
        "failed, by what": f"{dict(study.failed)}",
        "different patterns": f"{len(reading):,}",
        "well-formed": share(sum(one["formed"] for one in told), len(told) + study.failed.total()),
        **edge_rows(told),
        "called; in a block of its own": f"{sum(one.job.call for one in study.made):,}; {facts.get('apart', 0):,}",
        "holes: same type, other size, bridge": _sums(facts, "exact", "relaxed", "bridged"),
        "results: rewired, bridge, none": _sums(facts, "rewired", "bridged_out", "loose"),
        "CPU time of a synthesis, mean and median, ms": _ms([one["cpu"] for one in told]),
        "CPU time of reading a pattern, mean and median, ms": _ms(list(reading.values())),
    }


def edge_rows(told: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return what is to be said of the edges between seed and pattern."""
    with_holes = [one for one in told if one["holes"]]

    def count(among: Sequence[Mapping[str, Any]], *edges: str) -> str:
        return share(sum(all(one["edges"][edge] for edge in edges) for one in among), len(among))

    claims = ((one["facts"]["inner_in"], one["facts"]["inner_out"]) for one in told)
    seen = ((one["edges"]["into"], one["edges"]["out"]) for one in told)
    disputed = sum((bool(into), bool(out)) != found for (into, out), found in zip(claims, seen, strict=True))
    return {
        "edge into the pattern, of those with holes": count(with_holes, "into"),
        "edge into the pattern, of all": count(told, "into"),
        "the same from a value that depends on an input, of those with holes": count(with_holes, "fed"),
        "the same of all": count(told, "fed"),
        "edge out of the pattern": count(told, "out"),
        "the same towards a result of the program": count(told, "alive"),
        "both edges": count(told, "into", "out"),
        "both edges, the former from a value that depends on an input": count(told, "fed", "out"),
        "splicing says another thing than the edges": f"{disputed:,}",
    }


def _sums(facts: Mapping[str, int], *wanted: str) -> str:
    return ", ".join(f"{facts.get(name, 0):,}" for name in wanted)


def _ms(seconds: Sequence[float]) -> str:
    return f"{1e3 * statistics.mean(seconds):.1f}, {1e3 * statistics.median(seconds):.1f}" if seconds else "none"


def alone_rows(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return what is to be said of passes that ran alone on a sample; passes of which nothing is known are left out."""
    kept = [row for row in rows if row["told"] and _known(row, "own", 0)]
    left = [row for row in kept if not any(_known(row, "own", 1))]
    strangers = [row for row in kept if _known(row, "others", 0)]
    tried, woken = Counter[str](), Counter[str]()
    for row in kept:
        for name in row["own"]:
            tried[name] += row["told"][name][0] is not None
            woken[name] += row["told"][name][0] is True
    shares = [woken[name] / number for name, number in tried.items() if number]
    by_pattern = sum(bool(set(row["wakes"]) & set(row["own"])) for row in kept)
    return {
        "programs": f"{len(rows):,}",
        "TVM died, or had no end": f"{sum(row['told'] is None for row in rows):,}",
        "no intended pass of which it can be told": f"{sum(row['told'] is not None for row in rows) - len(kept):,}",
        "an intended pass changes the program": share(sum(any(_known(row, "own", 0)) for row in kept), len(kept)),
        "an intended pass changes the seed": share(sum(any(_known(row, "own", 1)) for row in kept), len(kept)),
        "a pass of another's pattern changes it": share(
            sum(any(_known(row, "others", 0)) for row in strangers), len(strangers)
        ),
        "changes the program, where it leaves the seed alone": share(
            sum(any(_known(row, "own", 0)) for row in left), len(left)
        ),
        "mean over the passes": f"{100 * statistics.mean(shares or [0]):.1f} % ({len(shares)} passes)",
        "the pattern outside of any seed wakes it": share(by_pattern, len(kept)),
    }


def _known(row: Mapping[str, Any], whose: str, place: int) -> list[bool]:
    """Return for passes `own` or of `others` whether they change the program (0) or its seed (1), where that is known.

    A pass counts only where it is known of the program.
    """
    told = [row["told"][name] for name in row[whose]]
    return [bool(pair[place]) for pair in told if pair[0] is not None]


def build_rows(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return what is to be said of whole builds of a sample, of seeds that are well built as they are."""
    sound = [row for row in rows if row["plain"]["verdict"].startswith(_AGREED)]
    done = [row for row in sound if row["full"] == "values"]
    seeable = [row for row in done if OPTIMISING.intersection(row["passes"])]
    weighed = [row for row in sound if row["verdict"].startswith((*_AGREED, _WRONG))]

    def seen(found: Sequence[Mapping[str, Any]]) -> str:
        wanted = [OPTIMISING.intersection(row["passes"]) for row in seeable]
        count = sum(not names.isdisjoint(one["seen"]) for names, one in zip(wanted, found, strict=True))
        return share(count, len(seeable))

    return {
        "seeds that both levels build alike": f"{len(sound)} of {len(rows)}",
        "built at off; at full": f"{sum(row['off'] == 'values' for row in sound)}; {len(done)} of {len(sound)}",
        "an intended pass is seen at work": seen(seeable),
        "an intended pass is seen at work in the seed as it is": seen([row["plain"] for row in seeable]),
        "same bits; other bits within the noise; outside": "; ".join(
            f"{sum(row['verdict'].startswith(word) for row in weighed)}" for word in (*_AGREED, _WRONG)
        ),
        "verdicts": f"{dict(Counter(row['verdict'] for row in sound))}",
        "verdicts on the other seeds": f"{dict(Counter(row['verdict'] for row in rows if row not in sound))}",
    }


def table(study: Study) -> dict[str, dict[str, str]]:
    """Return all figures as text, by part and row."""
    found = {"syntheses": syntheses_rows(study)}
    found |= {f"passes alone, {name}": alone_rows(rows) for name, rows in study.alone.items()}
    found |= {f"builds, {name}": build_rows(rows) for name, rows in study.builds.items()}
    return found


def show(found: Mapping[str, Mapping[str, str]], stopped: bool) -> None:
    """Print the table."""
    for part, rows in found.items():
        print(part)
        for label, value in rows.items():
            print(f"  {label}: {value}")
    print(f"the paper's trigger rate, by coverage of the pass's file: {100 * PAPERS_TRIGGER[TARGET]:.2f} %")
    if stopped:
        print("stopped: the figures are of what was measured until then")


def as_json(study: Study, options: argparse.Namespace, found: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """Return everything as a JSON object."""
    made = [
        {**one._asdict(), "job": {**one.job._asdict(), "seed": one.place}, "told": dict(one.told)} for one in study.made
    ]
    asked = {name: str(value) for name, value in vars(options).items()}
    plain = {one.name: getattr(study, one.name) for one in fields(study)}
    return {"options": asked, "table": found, **plain, "made": made}


def measure(options: argparse.Namespace, study: Study) -> None:
    """Measure everything; what is measured when it is interrupted stays in `study`."""
    library = located(str(options.library))
    rng = stream(options.seed, "relax samples")
    with Child(library) as child:
        seeds = make_seeds(child, options.seeds, options.seed, study)
        synthesise(child, library, seeds, options.syntheses, options.seed, study)
        run_alone(child, library, samples(study.made, options.watched, rng), study)
    off = frozenset(filter(None, options.disabled.split(",")))
    build_all(library, seeds, samples(study.made, options.built, rng), off, study)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", type=Path, help="folder of patterns, as `miscompile harvest tvm` makes it")
    parser.add_argument("--syntheses", type=int, default=5000)
    parser.add_argument("--seeds", type=int, default=100, help="programs into which patterns go")
    parser.add_argument("--watched", type=int, default=300, help="syntheses of each sample on which passes run alone")
    parser.add_argument("--built", type=int, default=100, help="syntheses of each sample that are built and run")
    parser.add_argument("--disabled", default=DISABLED, help="passes that stay off in builds, joined with commas")
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--json", type=Path, help="file for everything that was measured")
    options = parser.parse_args()
    study = Study()
    try:
        measure(options, study)
    except KeyboardInterrupt:
        study.stopped = True
    found = table(study)
    show(found, study.stopped)
    if options.json:
        options.json.write_text(json.dumps(as_json(study, options, found), indent=1, default=str), "utf-8")


if __name__ == "__main__":
    main()
