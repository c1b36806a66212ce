"""Bisection over passes: the minimal set of passes that causes a violation, and the minimal sequence."""

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeVar

from miscompile.base.rng import stream
from miscompile.core.case import Case
from miscompile.core.examination import examine
from miscompile.core.outcome import Outcome
from miscompile.core.ports import PropertyOracle, Runner
from miscompile.core.run import Build, Run
from miscompile.core.verdict import Violated
from miscompile.execution.runners import CachingRunner
from miscompile.targets.registry import parse_target
from miscompile.transforms.catalogue import places_of, restricted
from miscompile.triage.signature import Symptom, similar, symptom_of

Twins = Sequence[Sequence[str]]
"""Groups of passes that can replace each other."""

Item = TypeVar("Item")

LOOKS = 3
"""Runs of a build when a single death, or its absence, may be random."""


def culprits(
    case: Case,
    held: PropertyOracle,
    runner: Runner,
    passes: Iterable[str],
    twins: Twins,
    rng: random.Random,
    suspects: Iterable[str] = (),
    guesses: Iterable[Sequence[str]] = (),
) -> tuple[str, ...]:
    """Return the smallest set of passes that suffices for the violation, all others being off; sorted by name.

    The violation must keep its kind, stage and message. The set is 1-minimal: without any one member the
    violation is gone. Twins are switched together and a group is called by its first member, so that the name does not
    depend on the twin that fired; `expand` returns all members. Passes that are off in the faulty build stay off.
    `guesses`, sets that were found for similar violations, are tried first, because each takes one examination and one
    for each member; then subsets of `suspects`, then of the passes that change this program.

    Returns () when no optional pass is to blame: the violation stays with every pass off, or does not show, or it is a
    death that does not repeat reliably.
    """
    search = _Search(case, held, runner, tuple(passes), twins, rng)
    groups = search.groups
    if not groups or not search.start() or search.shows(()):
        return ()
    for guess in guesses:
        guessed = search.named(guess)
        if guessed and search.minimal(guessed):
            return tuple(sorted(guessed))
    groups = search.narrowed(groups, suspects) or search.narrowed(groups, _fired(case, held, runner)) or groups
    found = minimise(groups, search.shows)
    return tuple(sorted(found)) if search.sure(found) else ()


def shortest(case: Case, held: PropertyOracle, runner: Runner, rng: random.Random) -> PropertyOracle:
    """Return `held` with the smallest part of its faulty build's pass sequence, in order, that still violates.

    The violation must keep its kind, stage and message. The part is 1-minimal, and empty when the violation shows
    without any sequence. Returns `held` itself when it has no sequence or is not violated.
    """
    sequence = held.faulty.sequence
    search = _Search(case, held, runner, (), (), rng)
    if not sequence or not search.start():
        return held

    def part(places: Sequence[int]) -> PropertyOracle:
        return held.with_faulty(replace(held.faulty, sequence=tuple(sequence[place] for place in places)))

    def shows(places: Sequence[int]) -> bool:
        return search.same(part(places))

    return part(() if shows(()) else minimise(range(len(sequence)), shows))


def fewest(case: Case, held: PropertyOracle, runner: Runner, rng: random.Random) -> PropertyOracle:
    """Return `held` with the fewest places of the program changed by the faulty build's transform that still violates.

    The violation must keep its kind, stage and message. The set is 1-minimal, so that the bug needs every remaining
    change, and a reduction can keep it. Returns `held` itself when the transform has no separate places.
    """
    transform = held.faulty.transform
    places = places_of(case, transform)
    search = _Search(case, held, runner, (), (), rng)
    if transform is None or not places or not search.start():
        return held

    def part(chosen: Sequence[str]) -> PropertyOracle:
        return held.with_faulty(replace(held.faulty, transform=restricted(transform, tuple(chosen))))

    def shows(chosen: Sequence[str]) -> bool:
        return search.same(part(chosen))

    return part(minimise(places, shows)) if shows(places) else held


def still_guilty(
    case: Case,
    held: PropertyOracle,
    runner: Runner,
    guilty: Sequence[str],
    passes: Iterable[str],
    twins: Twins,
    rng: random.Random,
) -> bool:
    """Tell whether `guilty`, found on a larger case, is a 1-minimal set of culprits of this one as well.

    That takes an examination for each member and two more; a new search takes dozens. False where `guilty` is empty.
    """
    search = _Search(case, held, runner, tuple(passes), twins, rng)
    groups = search.named(guilty)
    return bool(groups) and search.start() and not search.shows(()) and search.minimal(groups)


def _fired(case: Case, held: PropertyOracle, runner: Runner) -> frozenset[str]:
    """Return the passes that change the program in the faulty build; none when the build dies."""
    run = Run(case, held.target, replace(held.faulty, observe=True), "bisect")
    rules = parse_target(held.target).about.rules
    names = runner.run([run])[0].observations.passes
    return frozenset(one for name in names for one in rules.get(name, (name,)))


def expand(names: Iterable[str], twins: Twins) -> frozenset[str]:
    """Return `names` with every twin of each."""
    found = set(names)
    for group in twins:
        if not found.isdisjoint(group):
            found.update(group)
    return frozenset(found)


def without(held: PropertyOracle, passes: frozenset[str]) -> PropertyOracle:
    """Return `held` with `passes` off in the faulty build, besides those that are off already."""
    return held.with_faulty(replace(held.faulty, disabled=held.faulty.disabled | passes))


def only(held: PropertyOracle, on: Iterable[str], passes: Iterable[str], twins: Twins) -> PropertyOracle:
    """Return `held` with all of `passes` off in the faulty build, but for `on` and their twins."""
    return without(held, frozenset(passes) - expand(on, twins))


def minimise(names: Sequence[Item], shows: Callable[[Sequence[Item]], bool]) -> list[Item]:
    """Delta debugging (Zeller and Hildebrandt's ddmin): return a 1-minimal subsequence of `names` that shows.

    No item may occur twice, and `shows(names)` must hold. Deterministic; tries the parts first, then their complements.
    """
    best, parts = list(names), 2
    while len(best) > 1:
        chunks = _split(best, parts)
        found = next((chunk for chunk in chunks if shows(chunk)), None)
        if found is not None:
            best, parts = found, 2
            continue
        rests = [[name for name in best if name not in set(chunk)] for chunk in chunks] if parts > 2 else []
        found = next((rest for rest in rests if shows(rest)), None)
        if found is not None:
            best, parts = found, max(parts - 1, 2)
        elif parts >= len(best):
            break
        else:
            parts = min(len(best), 2 * parts)
    return best


def _split(items: Sequence[Item], parts: int) -> list[list[Item]]:
    bounds = [len(items) * place // parts for place in range(parts + 1)]
    return [list(items[low:high]) for low, high in pairwise(bounds) if low < high]


class _Search:
    """Owns the predicate: whether the violation stays the same with only the given groups on."""

    def __init__(
        self,
        case: Case,
        held: PropertyOracle,
        runner: Runner,
        passes: tuple[str, ...],
        twins: Twins,
        rng: random.Random,
    ) -> None:
        self.case, self.held, self.passes, self.twins = case, held, passes, twins
        self.runner = CachingRunner(runner)
        self.seed = rng.getrandbits(64)
        self.groups = _groups((name for name in passes if name not in held.faulty.disabled), twins)
        self.wanted: Symptom | None = None
        self.known: dict[Build, bool] = {}

    def start(self) -> bool:
        """Record the violation of the full build; return False when there is none."""
        self.wanted = self._symptom(self.held)
        return self.wanted is not None

    def narrowed(self, groups: Sequence[str], names: Iterable[str]) -> list[str]:
        """Return the `groups` that contain some of `names`, if they suffice and are fewer; else an empty list."""
        wanted = frozenset(names)
        likely = [group for group in groups if not expand((group,), self.twins).isdisjoint(wanted)]
        return likely if likely and len(likely) < len(groups) and self.shows(likely) else []

    def named(self, names: Iterable[str]) -> list[str]:
        """Return the groups that contain some of `names`."""
        wanted = frozenset(names)
        return [group for group in self.groups if not expand((group,), self.twins).isdisjoint(wanted)]

    def minimal(self, groups: Sequence[str]) -> bool:
        """Tell whether the violation shows with `groups` on and without any one of them; it needs some group."""
        rests = [[one for one in groups if one != left] for left in groups] if len(groups) > 1 else []
        return self.shows(groups) and not any(map(self.shows, rests)) and self.sure(groups)

    def shows(self, on: Sequence[str]) -> bool:
        """Tell whether the violation shows with exactly the groups `on` switched on."""
        return self.same(only(self.held, on, self.passes, self.twins))

    def sure(self, found: Sequence[str]) -> bool:
        """Tell whether the process dies every time with only `found` on, and never without them.

        A corrupted heap does not kill the process every time, so that one run of each build proves nothing.
        """
        if self.wanted is None or self.wanted.kind != "death":
            return True
        builds = [only(self.held, found, self.passes, self.twins)]
        builds.append(without(self.held, expand(found, self.twins)))
        dies = [[self._symptom(held, self.runner.afresh) is not None for _ in range(LOOKS)] for held in builds]
        return all(dies[0]) and not any(dies[1])

    def same(self, held: PropertyOracle) -> bool:
        """Tell whether `held`, which differs in its faulty build, shows the violation."""
        if held.faulty not in self.known:
            found = self._symptom(held)
            self.known[held.faulty] = found is not None and self.wanted is not None and similar(found, self.wanted)
        return self.known[held.faulty]

    def _symptom(self, held: PropertyOracle, runner: Runner | None = None) -> Symptom | None:
        seen = examine(self.case, held, runner or self.runner, stream(self.seed, "bisect"))
        outcome: Outcome | None = seen.faulty
        return symptom_of(seen.verdict.evidence, outcome) if isinstance(seen.verdict, Violated) else None


def _groups(passes: Iterable[str], twins: Twins) -> list[str]:
    """Return one name for each group, in the order of `passes`: the group's first member, or the lone pass."""
    first = {name: group[0] for group in reversed(list(twins)) for name in group}
    return list(dict.fromkeys(first.get(name, name) for name in passes))
