"""Wiring: the only module that knows all parts; it makes producers, oracles and pools from a plan."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from miscompile.base.errors import UsageError
from miscompile.core.pool import Pool
from miscompile.core.ports import Oracle, Producer
from miscompile.engine.arms import CORPUS, DIFFERENTIAL, FORMS, TRANSFORMS, Arm, arms_of
from miscompile.engine.bandit import fixed_weights
from miscompile.engine.checks import CHECKS, JUDGED, OWN, VOTED, families
from miscompile.engine.plan import Plan
from miscompile.engine.seeds import seeds_of, wants_seeds
from miscompile.execution.frames import LARGEST_BODY
from miscompile.execution.multi_target import MultiTargetPool
from miscompile.execution.pool import LocalPool
from miscompile.ops.seed import Seed
from miscompile.ops.support import Support, joint
from miscompile.oracles.differential import VOTERS, Differential
from miscompile.oracles.kinds import OracleContext
from miscompile.oracles.optimisation import Family, Optimisation
from miscompile.oracles.registry import PerCaseOracle, campaign_oracles
from miscompile.producers.around import Around
from miscompile.producers.combined import Assigned, Choosing, Mixture
from miscompile.producers.kinds import PRODUCERS, ProducerContext
from miscompile.producers.scheduled import Scheduled, ScheduledArm
from miscompile.producers.seeded import Seeded
from miscompile.producers.slices.collection import Collection, FittingInput
from miscompile.producers.synthesis.corpus import Corpus
from miscompile.targets.registry import parse_target, second_executor, settled_transform
from miscompile.transforms.runner import TransformingRunner
from miscompile.triage.settings import TriageSettings


def make_producer(plan: Plan, *supports: Support, corpus: Path | None = None, name: str = "") -> Producer:
    """Return the plan's producers as one; `supports` are the support tables of the plan's targets.

    Seeds that reach new coverage are stored in the folder `corpus`, in a file called `name`, and the seeds that it
    holds are used (None: seeds are not stored). Raises UsageError when nothing is left to generate, or the user's model
    is broken.
    """
    found = seeds_of(plan) if wants_seeds(plan) else Collection((), 0)
    seeds = found.seeds
    tables = dict(zip(plan.targets, supports, strict=True))
    if plan.scheduled:
        return _scheduled(plan, tables, seeds, corpus, name)

    def make(chosen: tuple[str, ...]) -> Producer:
        support = joint([tables[target] for target in chosen]) if plan.others else supports[0]
        if plan.model is not None:
            return Seeded(seeds, plan.options_of("seeded", {}, ""), support)
        return _mixture(plan, support, seeds, None if corpus is None else _corpus_of(corpus, name, chosen))

    if plan.model is not None:
        return _around(plan, found.inputs, make if seeds and plan.slices else None)
    if plan.others and not plan.finite:
        return Choosing(plan.targets, make)
    asked = tuple(name for name in plan.chosen_checks if name in JUDGED or name not in CHECKS)
    return Assigned(make(plan.targets), asked) if asked else make(plan.targets)


def _scheduled(
    plan: Plan, tables: Mapping[str, Support], seeds: Sequence[Seed], corpus: Path | None, name: str
) -> Scheduled:
    """Return the producer that draws from the arms of a plan; arms with the same technique and targets share one."""
    arms = arms_of(plan)
    sources = {
        arm: f"{arm.technique}{f'/{FORMS}' if arm.kind == FORMS else ''}@{'+'.join(arm.targets)}" for arm in arms
    }

    def maker(arm: Arm) -> Callable[[], Producer]:
        def make(chosen: tuple[str, ...]) -> Producer:
            support = joint([tables[target] for target in chosen]) if len(chosen) > 1 else tables[chosen[0]]
            support = support.of_any_form() if arm.kind == FORMS else support
            own = None if corpus is None else _corpus_of(corpus, f"{name}-{arm.technique}", chosen)
            context = _context(arm.targets, support, _seeds_for(arm, seeds), own)
            return PRODUCERS.get(arm.producer).make(arm.options, context)

        return lambda: Choosing(arm.targets, make) if len(arm.targets) > 1 else make(arm.targets)

    drawn = tuple(ScheduledArm(arm.name, sources[arm], arm.check, arm.oracle) for arm in arms)
    return Scheduled(drawn, {source: maker(arm) for arm, source in sources.items()}, fixed_weights(arms))


def _seeds_for(arm: Arm, seeds: Sequence[Seed]) -> Sequence[Seed]:
    """Return the seeds of an arm: its producer's own kind, or all of them for producers that can do without any."""
    if not PRODUCERS.get(arm.producer).needs_seeds:
        return seeds
    return [seed for seed in seeds if seed.corpus == (arm.technique == CORPUS)]


def _context(targets: Sequence[str], support: Support, seeds: Sequence[Seed], corpus: Corpus | None) -> ProducerContext:
    faces = [parse_target(target).about for target in targets]
    return ProducerContext(
        support,
        tuple(seeds),
        tuple(face.name for face in faces),
        lowered=any(face.lowered for face in faces),
        functions=all(face.functions for face in faces),
        corpus=corpus,
    )


def _around(plan: Plan, inputs: Sequence[FittingInput], make: Callable[[tuple[str, ...]], Producer] | None) -> Producer:
    """Return the producer for the user's model, and for its slices if the targets accept any."""
    around = Around(Path(plan.model or ""), inputs, most_bytes(plan))
    if make is None:
        return around
    try:
        sliced = Choosing(plan.targets, make) if plan.others else make(plan.targets)
    except UsageError:
        return around
    return Mixture(((around, 1.0), (sliced, 1.0)))


def most_bytes(plan: Plan) -> int:
    """Return the bytes of inputs that a worker of this campaign can receive on this machine."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(machine, LARGEST_BODY, plan.limits.memory or machine)


def _corpus_of(folder: Path, name: str, chosen: Sequence[str]) -> Corpus:
    """Return the corpus for the targets `chosen`; each choice of targets has a folder of its own."""
    targets = [parse_target(target).about.name for target in chosen]
    return Corpus(folder / "-".join(targets), name, targets[0])


def _mixture(plan: Plan, support: Support, seeds: Sequence[Seed], corpus: Corpus | None) -> Producer:
    parts: list[tuple[Producer, float]] = []
    context = _context(plan.targets, support, seeds, corpus)
    for name, options in plan.producer_specs():
        kind = PRODUCERS.get(name)
        try:
            parts.append((kind.make(options, context), options.share))
        except UsageError:
            usual = kind.brings_patterns and not plan.producers and not plan.patterns
            if not usual and not (kind.needs_seeds and plan.others):
                raise  # other targets may accept the slices; default patterns are optional
    if not parts:
        raise UsageError("the targets take none of the slices alike")
    return parts[0][0] if len(parts) == 1 else Mixture(tuple(parts))


def make_oracle(plan: Plan, disabled: Mapping[str, frozenset[str]], check: str = "") -> Oracle:
    """Return the plan's oracle, with the passes in `disabled`, by target, off.

    `check` is that of an arm in a scheduled campaign (empty: all checks of the plan).
    """
    if check:
        return _arm_oracle(plan, disabled, check)
    if plan.others:
        return Differential(plan.targets, VOTERS, disabled, plan.narrowed)
    checks, asked = plan.chosen_checks, tuple((transform,) for transform in plan.chosen_transforms)
    about = parse_target(plan.target).about
    usual = _optimisation(plan, checks, (*families(checks, about), *((asked,) if asked else ())), disabled)
    special = _special_oracles(plan, disabled)
    return PerCaseOracle(usual, special) if special else usual


def _arm_oracle(plan: Plan, disabled: Mapping[str, frozenset[str]], check: str) -> Oracle:
    """Return the oracle of an arm: that of its check alone, for the target that it names or the plan's only one."""
    kind, _, target = check.partition("@")
    if kind == DIFFERENTIAL:
        return Differential(plan.targets, VOTERS, disabled, plan.narrowed)
    plan = plan.alone(target or plan.target)
    if kind in (*OWN, *JUDGED) or kind not in (*CHECKS, TRANSFORMS):
        made = campaign_oracles()[kind]
        assert made.make is not None  # those of `campaign_oracles` have one
        return made.make(made.options(), replace(oracle_context(plan), disabled=disabled))
    if kind == TRANSFORMS:
        return _optimisation(plan, (), (tuple((one,) for one in plan.chosen_transforms),), disabled)
    return _optimisation(plan, (kind,), families((kind,), parse_target(plan.target).about), disabled)


def _optimisation(
    plan: Plan, checks: Sequence[str], drawn: tuple[Family, ...], disabled: Mapping[str, frozenset[str]]
) -> Optimisation:
    """Return the oracle of `checks` that hold builds of the plan's target against each other."""
    about, target, plain = parse_target(plan.target).about, plan.target, "levels" in checks
    return Optimisation(
        target,
        () if about.forced or not plain else about.passes,
        tuple(level for level in about.levels if plain and level not in ("off", "full")),
        lesser_chance=0.8 if plain else 1.0,
        rule=plan.compare,
        disabled=disabled.get(target, frozenset()),
        narrowed=about.narrowed,
        sequences=about.sequences if "sequences" in checks else (),
        families=drawn,
        device=plan.device,
        settle=partial(settled_transform, target),
    )


def _special_oracles(plan: Plan, disabled: Mapping[str, frozenset[str]]) -> dict[str, Oracle]:
    """Return the oracles that recipes can name: those of the plan's producers, and those of its `--check` options."""
    context = replace(oracle_context(plan), disabled=disabled)
    named = {name for name, _ in plan.producer_specs()} | set(plan.chosen_checks)
    found: dict[str, Oracle] = {}
    for name, kind in campaign_oracles().items():
        if name in named and kind.make is not None:
            found[name] = kind.make(kind.options(), context)
    return found


def make_pool(plan: Plan, window: int = 3, workers: int = 1) -> Pool:
    """Return a pool for the plan's targets, which applies the transforms of runs; open it with `with`."""
    if plan.others or second_executor(plan.target) or not VOTED.isdisjoint(plan.chosen_checks):
        return TransformingRunner(
            MultiTargetPool(plan.targets, lambda target: LocalPool(target, workers, plan.limits, window))
        )
    return TransformingRunner(LocalPool(plan.target, workers, plan.limits, window))


def oracle_context(plan: Plan) -> OracleContext:
    """Return the facts of a campaign that the oracles of single findings need."""
    return OracleContext(plan.targets, plan.compare)


def triage_settings(plan: Plan, seconds: float | None = None) -> TriageSettings:
    """Return the settings of triage for a campaign; `seconds` limits the reduction of each finding (None: default)."""
    patience = max(60.0, 4 * plan.limit_seconds)
    return TriageSettings(plan.out, plan.targets, plan.seed, plan.compare, plan.limits, seconds, patience)
