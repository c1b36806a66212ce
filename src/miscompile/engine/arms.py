"""The arms of a campaign: every technique of generation with every check that its programs can undergo.

A technique is a kind of producer with options. With several targets, a technique has an arm for their comparison and,
for each target, one with every check of that target.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from miscompile.base.errors import UsageError
from miscompile.engine.checks import CHECKS, JUDGED, OWN
from miscompile.engine.plan import Plan
from miscompile.ops import everyday
from miscompile.producers.kinds import PRODUCERS
from miscompile.targets.registry import parse_target

EVERYDAY = "everyday"
"""The technique whose programs are as people's models have them."""

SEEDED = "seeds"
"""The technique that begins from the user's models or from operators of library tests."""

CORPUS = "corpus"
"""The technique that begins from slices of real models: those of the corpus."""

DIFFERENTIAL, TRANSFORMS = "differential", "transforms"
"""Names of the checks of arms that no `--check` has: several targets, and the transforms that the user asks for."""

_NO_OPTIONS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Technique:
    """A way to generate programs: a kind of producer, its options where they differ, and the weight in a campaign of
    which no yields are known."""

    producer: str
    weight: float
    options: Mapping[str, str] = field(default_factory=lambda: _NO_OPTIONS)


TECHNIQUES: Mapping[str, Technique] = {
    EVERYDAY: Technique(
        "strict",
        1.5,
        {
            "min_rank": str(everyday.RANKS[0]), "max_rank": str(everyday.RANKS[1]), "ops": "+".join(everyday.OPERATORS),
            "dtypes": everyday.DTYPE, "zero_size": "0", "control": "0", "quantised": "0", "containers": "0",
        },
    ),
    "generation": Technique("strict", 1.5),
    "motifs": Technique("strict", 1.5, {"motifs": "0.5", "noops": "0.15", "nodes": "7"}),
    "sweep": Technique("sweep", 0.4),
    "synthesis": Technique("oatest", 0.8),
    "mined": Technique("oatest", 0.8, {"seeds": "patterns"}),
    "hirfuzz": Technique("hirfuzz", 0.1, {"nodes": "30"}),
    SEEDED: Technique("seeded", 1.0),
    CORPUS: Technique("seeded", 1.5),
}  # fmt: skip
"""Techniques that make valid programs for every check that compares builds, by name."""

_CHECK_WEIGHTS = {"levels": 4.0, "device": 4.0, DIFFERENTIAL: 4.0, TRANSFORMS: 2.0}
_OWN_WEIGHT = 2.5

VOTES = "votes"
"""The check whose subject is kernels, which a program of few operators shows as well as any."""
FORMS = "forms"
"""The check of programs of a single operator."""

_OF_KERNELS = {"sweep": 5.0, EVERYDAY: 1.0, "generation": 1.0, SEEDED: 1.0, CORPUS: 1.0}
"""The techniques that meet `VOTES`, with a factor of their weights. Patterns of optimisations add nothing to them."""


@dataclass(frozen=True, slots=True)
class Arm:
    """An arm of the plan's campaign.

    `producer` and `options` make its producer for `targets`, those that a program must suit; `check` is the name of a
    check, `oracle` the name that its cases' recipes get (empty: what the producer says). `tag` distinguishes the
    targets where the plan has several. `weight` is the prior one.
    """

    technique: str
    kind: str
    producer: str
    options: Any
    targets: tuple[str, ...]
    weight: float
    oracle: str = ""
    tag: str = ""

    @property
    def check(self) -> str:
        """The check, with the target where the plan has several."""
        return f"{self.kind}@{self.tag}" if self.tag else self.kind

    @property
    def name(self) -> str:
        """The name in tables, such as `motifs/levels`."""
        return self.check if self.technique == self.kind else f"{self.technique}/{self.check}"

    @property
    def everyday(self) -> bool:
        """Whether its programs are of the classes that have a guaranteed share: as people's models have them."""
        return self.technique in (EVERYDAY, CORPUS)


def arms_of(plan: Plan) -> tuple[Arm, ...]:
    """Return the arms of a campaign. Raises UsageError for invalid options, or when they leave none."""
    found = tuple(_of_several(plan) if plan.others else _of_one(plan, plan, ""))
    if not found:
        raise UsageError("the options leave nothing to test")
    return found


def _of_several(plan: Plan) -> Iterator[Arm]:
    """Yield the arms that compare the targets, and those of each target alone unless the checks are chosen."""
    _ = plan.chosen_checks  # raises for a check that several targets cannot have
    for name, producer, options, weight in _techniques(plan):
        yield Arm(name, DIFFERENTIAL, producer, options, plan.targets, weight * _CHECK_WEIGHTS[DIFFERENTIAL])
    if plan.checks:
        return
    compilers = {parse_target(target).about.name: target for target in reversed(plan.targets)}
    for target in plan.targets:
        if target in compilers.values():  # further releases of a compiler are only compared with the first
            yield from _of_one(plan, plan.alone(target), target)


def _of_one(plan: Plan, alone: Plan, tag: str) -> Iterator[Arm]:
    """Yield the arms of the one target of `alone`; `tag` names it where the plan has several.

    The options of producers are those of `plan`, because a target is only asked about the opsets that all targets read.
    """
    checks, targets = alone.chosen_checks, alone.targets
    general = [(name, name if name in JUDGED or name not in CHECKS else "") for name in checks if name not in OWN]
    if alone.chosen_transforms:
        general.append((TRANSFORMS, ""))
    for technique, producer, options, weight in _techniques(plan) if general else ():
        for kind, oracle in general:
            if kind == FORMS and technique not in ("sweep", SEEDED):
                continue
            if kind == VOTES and technique not in _OF_KERNELS and not plan.checks:
                continue
            prior = weight * (_OF_KERNELS.get(technique, 1.0) if kind == VOTES else _CHECK_WEIGHTS.get(kind, 1.0))
            yield Arm(technique, kind, producer, options, targets, prior, oracle, tag)
    for kind in checks:
        if kind in OWN:
            yield Arm(kind, kind, kind, plan.options_of(kind, {}, kind), targets, _OWN_WEIGHT, tag=tag)


def _techniques(plan: Plan) -> Iterator[tuple[str, str, Any, float]]:
    """Yield name, producer, options and weight of every technique that the plan's options leave."""
    for name, technique in TECHNIQUES.items():
        kind = PRODUCERS.get(technique.producer)
        chosen = bool(plan.ops or plan.dtypes)
        if (chosen and kind.brings_patterns) or (kind.needs_seeds and not _has_seeds(plan, name)):
            continue
        if name == "motifs" and plan.motifs is not None:
            continue  # the user has said how many motifs there are
        given = _agreed(plan, name, technique)
        if given is not None:
            yield name, technique.producer, plan.options_of(technique.producer, given, name), technique.weight


def _has_seeds(plan: Plan, technique: str) -> bool:
    return bool(plan.corpus) if technique == CORPUS else plan.has_own_seeds


def _agreed(plan: Plan, name: str, technique: Technique) -> dict[str, str] | None:
    """Return the options of a technique without those that the user has chosen; None when nothing is left."""
    given = dict(technique.options)
    if name == EVERYDAY:
        ops = [op for op in everyday.OPERATORS if not plan.ops or op in plan.ops]
        most = everyday.RANKS[1] if plan.max_rank is None else min(everyday.RANKS[1], plan.max_rank)
        if not ops or most < everyday.RANKS[0] or (plan.dtypes and everyday.DTYPE not in plan.dtypes):
            return None
        given |= {"ops": "+".join(ops), "max_rank": str(most)}
    for option in ("nodes", "motifs"):
        if getattr(plan, option) is not None:
            given.pop(option, None)
    return given
