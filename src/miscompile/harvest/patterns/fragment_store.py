"""The store of distinct harvested models, and of the pieces cut from them."""

import random
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from miscompile.base.errors import MiscompileError
from miscompile.base.rng import stream
from miscompile.core.events import ProgressListener
from miscompile.graph.fingerprint import fingerprint
from miscompile.graph.model import Model
from miscompile.graph.read import load
from miscompile.harvest.patterns.pairs import Pair
from miscompile.harvest.patterns.pieces import PieceLimits, inferred, pieces, watched, with_ranges
from miscompile.ops.seed import Seed
from miscompile.patterns.extract import Whole
from miscompile.producers.slices.binding import normalised
from miscompile.producers.slices.slices import kind_of

_EVERY = 25
"""Models between two lines of progress."""


@dataclass(slots=True, eq=False)
class HarvestedModel:
    """A harvested model, its origin, and the passes that tests name for it."""

    model: Model
    origin: str
    named: set[str] = field(default_factory=set)


class FragmentStore:
    """The distinct pieces of all models: `seeds`, and under the same index their `sources`.

    Pieces that differ only in the contents of large constants count as one. `left` counts excluded pieces by reason.
    """

    def __init__(self, models: Sequence[HarvestedModel], limits: PieceLimits, seconds: float, seed: int) -> None:
        self.models, self.left = models, Counter[str]()
        self.seeds: list[Seed] = []
        self.sources: list[HarvestedModel] = []
        self._limits, self._seconds, self._seed = limits, seconds, seed
        self._known: dict[str, int] = {}

    def cut(self, on_progress: ProgressListener) -> None:
        """Cut every model into pieces."""
        for number, source in enumerate(self.models, 1):
            if number % _EVERY == 1:
                on_progress(f"cutting model {number} of {len(self.models)}: {source.origin}")
            rng = self.rng(source)
            try:
                whole = inferred(source.model, source.origin)
                if whole is None:
                    on_progress(f"running model {number} of {len(self.models)}: {source.origin}")
                    whole = watched(source.model, source.origin, rng, self._seconds)
                for seed in pieces(whole, self._limits, rng, self.left):
                    self._add(source, seed)
            except (MiscompileError, ValueError) as error:  # protobuf raises ValueError for models beyond its limits
                self.left[f"models that cannot be cut ({brief(error)})"] += 1

    def _add(self, source: HarvestedModel, seed: Seed) -> None:
        kind = kind_of(seed)
        if kind not in self._known:
            self._known[kind] = len(self.seeds)
            self.seeds.append(seed)
            self.sources.append(source)

    def rng(self, source: HarvestedModel) -> random.Random:
        """Return the random stream of a model."""
        return stream(self._seed, "harvest", source.origin)

    def ranged(self, cut: Collection[tuple[int, Seed]], on_progress: ProgressListener) -> list[Seed]:
        """Return pieces with the ranges of their inputs; each is given with the index of the piece that contains it.

        The models of the pieces run for that, each in a process of its own. If one does not run, its pieces get no
        ranges.
        """
        wholes: dict[HarvestedModel, Whole | None] = {}
        found: list[Seed] = []
        for place, (number, seed) in enumerate(cut, 1):
            source = self.sources[number]
            if source not in wholes:
                on_progress(f"running the model of pattern {place} of {len(cut)}: {source.origin}")
                wholes[source] = self._watched(source)
            whole = wholes[source]
            found.append(seed if whole is None else with_ranges(seed, whole))
        return found

    def _watched(self, source: HarvestedModel) -> Whole | None:
        try:
            return watched(source.model, source.origin, self.rng(source), self._seconds)
        except (MiscompileError, ValueError):
            return None  # then its inputs have the usual ranges


def distinct(pairs: Sequence[Pair], left: Counter[str]) -> list[HarvestedModel]:
    """Return the distinct models of `pairs`, each with the named passes, without those that did not change it.

    `left` counts unreadable models by reason.
    """
    by_file: dict[Path, HarvestedModel | None] = {}
    by_kind: dict[str, HarvestedModel] = {}
    for pair in pairs:
        if pair.model not in by_file:
            by_file[pair.model] = _source(pair, by_kind, left)
        source = by_file[pair.model]
        if source is not None and pair.named and pair.changed is not False:
            source.named.add(pair.named)
    return list(by_kind.values())


def _source(pair: Pair, by_kind: dict[str, HarvestedModel], left: Counter[str]) -> HarvestedModel | None:
    try:
        model = normalised(load(pair.model))
        kind = fingerprint(model)
    except (MiscompileError, ValueError) as error:
        left[f"models that cannot be read ({brief(error)})"] += 1
        return None
    return by_kind.setdefault(kind, HarvestedModel(model, pair.test))


def brief(error: BaseException) -> str:
    """Return an error message without the parts specific to one model, so that similar errors are counted together."""
    message = re.sub(r"'[^']*'|\d+", "_", " ".join(str(error).split()))
    return f"{type(error).__name__}: {message[:80]}"
