"""The measurement of all arms, one after the other; arms that are in the file of figures are not measured again."""

import json
import resource
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluation.measures import Watch
from evaluation.mutants.arms import MIXTURE, NNSMITH, Mixture, draw_for, names
from evaluation.mutants.campaign import MutantCampaign, Score, score_from
from evaluation.mutants.selection import chosen, equivalent
from miscompile.base.errors import UsageError

_MEMORY = 6 << 30
"""Bytes of address space: a mutant may ask for a tensor of any size, and gets a MemoryError."""

_EVERY = 10
"""Tests between two states of the figures."""


@dataclass(frozen=True, slots=True)
class MutationSettings:
    """The options of the command, see there."""

    arms: tuple[str, ...]
    seconds: float
    tests: int
    share: float
    only: str
    nnsmith: Path | None
    seed: int
    out: Path | None


@dataclass(slots=True)
class MutationFigures:
    """The scores of all arms over the chosen `mutants`; `equivalent` are those of them that were proved equivalent."""

    mutants: dict[str, str]
    equivalent: tuple[str, ...]
    scores: dict[str, Score] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return everything as a JSON object."""
        scores = {name: score.as_json() for name, score in self.scores.items()}
        return {"mutants": self.mutants, "equivalent": list(self.equivalent), "scores": scores}


def measure(settings: MutationSettings, watch: Watch) -> Iterator[MutationFigures]:
    """Yield all figures so far. Raises UsageError for an unknown arm, and for figures of other mutants."""
    picked = chosen(settings.share, settings.only)
    described = {one.name: f"{one.operator}: {one.before} -> {one.after}" for one in picked}
    figures = MutationFigures(described, tuple(one.name for one in picked if one.name in equivalent()))
    figures.scores = _known(settings.out, described)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, hard))
    try:
        for arm in _arms(settings):
            if arm not in figures.scores:
                yield from _measured(arm, settings, figures, watch)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    yield figures


def _measured(
    arm: str, settings: MutationSettings, figures: MutationFigures, watch: Watch
) -> Iterator[MutationFigures]:
    """Measure one arm; one that is interrupted begins again next time."""
    mutated, keep = tuple(figures.mutants), settings.out and settings.out.with_suffix(".false")
    if arm == MIXTURE:
        mixture = Mixture(settings.seed)
        campaign = MutantCampaign(arm, mixture.draw, settings.seed, mutated, mixture.count, keep)
    else:
        draw = draw_for(arm, settings.seed, settings.nnsmith)
        campaign = MutantCampaign(arm, draw, settings.seed, mutated, keep=keep)
    figures.scores[arm] = campaign.score
    for score in campaign.run(settings.seconds, settings.tests):
        if score.tests % _EVERY == 0:
            watch(f"{arm}: {len(score.kills)} killed", round(score.seconds), round(settings.seconds))
            yield figures
    campaign.score.done = True
    yield figures


def _known(out: Path | None, described: dict[str, str]) -> dict[str, Score]:
    """Return the finished scores that a file of figures holds."""
    if out is None or not out.exists() or not out.stat().st_size:
        return {}
    data = json.loads(out.read_text("utf-8"))
    if data["mutants"] != described:
        raise UsageError(f"{out} has the figures of other mutants; choose another --json")
    return {name: score_from(score) for name, score in data["scores"].items() if score["done"]}


def _arms(settings: MutationSettings) -> list[str]:
    """Return the names of the arms in order; `techniques` and `checks` stand for several."""
    every = names()
    found: list[str] = []
    for name in settings.arms:
        if name == "techniques":
            found += [arm for arm in every if arm.endswith("/levels")]
        elif name == "checks":
            found += [arm for arm in every if arm.startswith("generation/") or "/" not in arm]
        elif name in every or (name == NNSMITH and settings.nnsmith is not None):
            found.append(name)
        else:
            raise UsageError(f"there is no arm '{name}'; there are: techniques, checks, {', '.join(every)}")
    if settings.nnsmith is not None:
        found.append(NNSMITH)
    return list(dict.fromkeys(found)) or [MIXTURE]
