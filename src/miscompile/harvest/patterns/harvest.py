"""Extraction of patterns from pairs: the passes that fire on the harvested models, and the pieces that trigger them.

The source of a pair seldom names the pass as the compiler does, and a test of one optimiser triggers passes of another
as well. Every unit of every model is therefore built on the targets, and the passes that are OBSERVED to change it are
recorded. For a pass that works on subgraphs the whole connected unit is the pattern, for one that works on blocks the
smallest contiguous region that still triggers the pass (OATest, section 3.1).
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from miscompile.base.rng import stream
from miscompile.core.events import ProgressListener
from miscompile.core.ports import Runner
from miscompile.execution.pool import LocalPool
from miscompile.graph.fingerprint import fingerprint
from miscompile.graph.model import Model
from miscompile.harvest.patterns.fragment_store import FragmentStore, distinct
from miscompile.harvest.patterns.pairs import Pair
from miscompile.harvest.patterns.pass_miner import version_of
from miscompile.harvest.patterns.pass_observation import fired
from miscompile.harvest.patterns.pieces import PieceLimits, case_of, smallest
from miscompile.harvest.patterns.setting import granularity_of
from miscompile.harvest.patterns.shrink import Fires
from miscompile.ops.seed import Seed
from miscompile.patterns.lift import lift
from miscompile.patterns.pattern import Granularity, Pattern, Trigger
from miscompile.patterns.triggers import granularities
from miscompile.patterns.vetting import sound
from miscompile.producers.slices.slices import kind_of
from miscompile.targets.registry import parse_target

_BATCH = 32
_PATIENCE = 3
"""Number of pieces tried for each wanted pattern of a pass."""


@dataclass(frozen=True, slots=True)
class Extraction:
    """The options of the extraction.

    At most `each` patterns for every pass that differ in operators, edges or attributes; pieces within `limits`;
    `seconds` limits how long one model is observed; `seed` begins all random streams.
    """

    each: int = 20
    limits: PieceLimits = field(default_factory=PieceLimits)
    seconds: float = 12.0
    seed: int = 0


@dataclass(slots=True)
class Extracted:
    """Patterns, with the counts of the extraction.

    `models` counts distinct models, `pieces` distinct pieces of them. `seen` counts the pieces that each pass of each
    target was observed to change, `left` the excluded ones by reason. `stopped`: it was interrupted.
    """

    patterns: tuple[Pattern, ...] = ()
    models: int = 0
    pieces: int = 0
    seen: Counter[tuple[str, str]] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)
    stopped: bool = False

    def counts(self) -> Mapping[tuple[str, str], Counter[Granularity]]:
        """Return the number of patterns by target and triggered pass, and by granularity."""
        found: dict[tuple[str, str], Counter[Granularity]] = defaultdict(Counter)
        for pattern in self.patterns:
            for trigger in pattern.triggers:
                found[trigger.target, trigger.name][pattern.granularity] += 1
        return found


class TriggeringPiece(NamedTuple):
    """A piece, or a part of it, that was observed to trigger a pass; `number` is the piece's in the store."""

    trigger: Trigger
    number: int
    seed: Seed
    granularity: Granularity


def extract(
    pairs: Sequence[Pair],
    targets: Sequence[str],
    name: str,
    extraction: Extraction,
    on_progress: ProgressListener,
    pool: Callable[[str], LocalPool] = LocalPool,
) -> Extracted:
    """Return the patterns in the models of `pairs` for passes of `targets`; their names begin with `name`.

    A piece that triggers no pass is not a pattern, even if a test claims so. An interruption ends the search, and the
    results so far are returned. Raises UsageError for a target that is not installed.
    """
    versions = {target: version_of(target) for target in targets}
    found, chosen, triggers = Extracted(), list[TriggeringPiece](), list[list[Trigger]]()
    models = distinct(pairs, found.left)
    fragment_store = FragmentStore(models, extraction.limits, extraction.seconds, extraction.seed)
    found.models = len(models)
    try:
        fragment_store.cut(on_progress)
    except KeyboardInterrupt:
        found.stopped = True
        on_progress("stopped; going on with the pieces that were cut until now, Ctrl-C ends that too")
    try:
        for target in targets:
            with pool(target) as runner:
                _search(
                    _Search(target, versions[target], runner, fragment_store, extraction, found, on_progress),
                    chosen,
                    triggers,
                )
        for target in targets:
            with pool(target) as runner:
                _add_triggers(chosen, target, versions[target], runner, triggers)
        seeds = fragment_store.ranged([(one.number, one.seed) for one in chosen], on_progress)
    except KeyboardInterrupt:
        found.stopped = True
        seeds = [one.seed for one in chosen]
    found.pieces = len(fragment_store.seeds)
    found.left += fragment_store.left
    found.patterns = tuple(_patterns(chosen, seeds, triggers, fragment_store, name, found.left))
    return found


def _search(search: "_Search", chosen: list[TriggeringPiece], triggers: list[list[Trigger]]) -> None:
    """Add what a search finds, each piece once, with the first pass that it was observed to trigger."""
    known = {kind_of(one.seed) for one in chosen}
    for one in search.run():
        kind = kind_of(one.seed)
        if kind not in known:
            known.add(kind)
            chosen.append(one)
            triggers.append([one.trigger])


class _Search:
    """The search for patterns of the passes of one target."""

    def __init__(
        self,
        target: str,
        version: str,
        runner: Runner,
        fragment_store: FragmentStore,
        extraction: Extraction,
        found: Extracted,
        on_progress: ProgressListener,
    ) -> None:
        self.version = version
        self.target, self.runner, self.fragment_store, self.each, self.on_progress = (
            target,
            runner,
            fragment_store,
            extraction.each,
            on_progress,
        )
        self.found = found
        self.about = parse_target(target).about
        self.labels = granularities(self.about.name)

    def run(self) -> Iterator[TriggeringPiece]:
        """Yield patterns as they are found."""
        triggered: dict[str, list[int]] = defaultdict(list)
        for number, names in enumerate(self._fired()):
            if names is None:
                self.found.left[f"pieces that {self.target} does not run"] += 1
            for one in names or ():
                triggered[one].append(number)
                self.found.seen[self.about.name, one] += 1
        for place, (called, numbers) in enumerate(sorted(triggered.items()), 1):
            self.on_progress(
                f"{self.target}: pass {place} of {len(triggered)}, {called}, triggered by {len(numbers)} pieces"
            )
            yield from self._patterns(called, sorted(numbers, key=self._size))

    def _size(self, number: int) -> int:
        return len(self.fragment_store.seeds[number].graph.nodes)

    def _fired(self) -> Iterator[frozenset[str] | None]:
        fragment_store = self.fragment_store
        cases = [
            case_of(seed, fragment_store.rng(source))
            for seed, source in zip(fragment_store.seeds, fragment_store.sources, strict=True)
        ]
        for start in range(0, len(cases), _BATCH):
            self.on_progress(f"{self.target}: piece {start + 1} of {len(cases)}")
            yield from fired(cases[start : start + _BATCH], self.target, self.runner)

    def _patterns(self, called: str, numbers: Sequence[int]) -> Iterator[TriggeringPiece]:
        """Yield the distinct patterns of a pass; small pieces are tried first."""
        looked, forms = set[str](), set[str]()
        for number in numbers:
            form = pattern_form_of(self.fragment_store.seeds[number])
            if form in looked:
                continue
            looked.add(form)
            if len(forms) >= self.each or len(looked) > self.each * _PATIENCE:
                return
            one = self._chosen(called, number)
            if pattern_form_of(one.seed) not in forms:
                forms.add(pattern_form_of(one.seed))
                yield one

    def _chosen(self, called: str, number: int) -> TriggeringPiece:
        """Return the pattern in a piece: the whole piece, or its smallest block."""
        seed, label = self.fragment_store.seeds[number], self.labels.get(called)
        trigger = Trigger(self.about.name, self.version, called)
        if label == "subgraph":
            return TriggeringPiece(trigger, number, seed, label)
        fires, rng = Fires(self.target, called), self.fragment_store.rng(self.fragment_store.sources[number])
        small = smallest(seed, fires, self.runner, rng)
        label = label or granularity_of(small, case_of(small, rng), fires, self.runner)
        return TriggeringPiece(trigger, number, small if label == "block" else seed, label)


def _add_triggers(
    chosen: Sequence[TriggeringPiece], target: str, version: str, runner: Runner, triggers: list[list[Trigger]]
) -> None:
    """Add the passes of a target that the chosen pieces trigger."""
    name = parse_target(target).about.name
    rng = stream(0, "wakes")
    for into, names in zip(triggers, fired([case_of(one.seed, rng) for one in chosen], target, runner), strict=True):
        into += [Trigger(name, version, one) for one in sorted(names or ())]


def _patterns(
    chosen: Sequence[TriggeringPiece],
    seeds: Sequence[Seed],
    triggers: Sequence[Sequence[Trigger]],
    fragment_store: FragmentStore,
    name: str,
    left: Counter[str],
) -> Iterator[Pattern]:
    counts: Counter[str] = Counter()
    for one, seed, triggered in zip(chosen, seeds, triggers, strict=True):
        if not sound(seed):
            left["pieces that break ONNX's rules"] += 1
            continue
        called = one.trigger.name
        counts[called] += 1
        title = re.sub(r"\W+", "_", f"{name}_{called}_{counts[called]}")
        source = fragment_store.sources[one.number]
        seed = replace(
            seed, graph=replace(seed.graph, nodes=tuple(replace(node, name="") for node in seed.graph.nodes))
        )
        named = f" ({', '.join(sorted(source.named))})" if source.named else ""
        yield Pattern(
            title, seed, lift(seed, title), one.granularity, tuple(dict.fromkeys(triggered)), f"{source.origin}{named}"
        )


def pattern_form_of(seed: Seed) -> str:
    """Return a digest of a piece's operators, edges and attributes, which does not depend on sizes."""
    return fingerprint(Model(replace(seed.graph, name=""), {"": seed.opset}), values=False, shapes=False)
