"""Wiring: the one module that knows all the parts."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from miscompile.base.errors import UsageError
from miscompile.core.pool import Pool
from miscompile.core.ports import Oracle, Producer
from miscompile.engine.checks import families
from miscompile.engine.plan import AnyOptions, Plan
from miscompile.engine.seeds import seeds_of, wants_seeds
from miscompile.execution.multi_target import MultiTargetPool
from miscompile.execution.pool import LocalPool
from miscompile.ops.seed import Seed
from miscompile.ops.support import Support, joint
from miscompile.oracles.differential import VOTERS, Differential
from miscompile.oracles.disruptive import Disruptive as DisruptiveOracle
from miscompile.oracles.dynamic import Dynamic as DynamicOracle
from miscompile.oracles.optimisation import Optimisation
from miscompile.oracles.per_case import Chosen
from miscompile.oracles.registry import OracleContext
from miscompile.producers.around import Around
from miscompile.producers.choosing import Choosing
from miscompile.producers.disruptive.producer import DisruptiveOptions, DisruptiveProducer
from miscompile.producers.dynamic.producer import DynamicProducer
from miscompile.producers.hirfuzz.producer import Hirfuzz, HirfuzzOptions
from miscompile.producers.mixture import Mixture
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.seeded import Seeded
from miscompile.producers.strict import Strict
from miscompile.producers.sweep import Sweep
from miscompile.producers.synthesis.corpus import Corpus
from miscompile.producers.synthesis.options import OatestOptions, patterns_for
from miscompile.producers.synthesis.producer import Synthesised
from miscompile.targets.registry import parse_target, settled_transform
from miscompile.transforms.runner import TransformingRunner
from miscompile.triage.settings import TriageSettings


def make_producer(plan: Plan, *supports: Support, corpus: Path | None = None, name: str = "") -> Producer:
    """Return the plan's producers as one; `supports` are the support tables of the plan's targets.

    Seeds that lead to something new are kept in the folder `corpus`, in a file called `name`, and those that are there
    are used (None: they are forgotten). Raises UsageError when nothing is left to generate, or the user's model is
    broken.
    """
    seeds = seeds_of(plan).seeds if wants_seeds(plan) else ()
    tables = dict(zip(plan.targets, supports, strict=True))

    def make(chosen: tuple[str, ...]) -> Producer:
        support = joint([tables[target] for target in chosen]) if plan.others else supports[0]
        if plan.model is not None:
            return Seeded(seeds, plan.generator_options({}, ""), support)
        return _mixture(plan, support, seeds, None if corpus is None else _corpus_of(corpus, name, chosen))

    if plan.model is not None:
        return _around(plan, make if seeds else None)
    return Choosing(plan.targets, make) if plan.others else make(plan.targets)


def _around(plan: Plan, make: Callable[[tuple[str, ...]], Producer] | None) -> Producer:
    """Return the producer around the user's model, and around its slices, where a target takes any."""
    around = Around(Path(plan.model or ""))
    if make is None:
        return around
    try:
        sliced = Choosing(plan.targets, make) if plan.others else make(plan.targets)
    except UsageError:
        return around
    return Mixture(((around, 1.0), (sliced, 1.0)))


def _corpus_of(folder: Path, name: str, chosen: Sequence[str]) -> Corpus:
    """Return the corpus of what is generated for the targets `chosen`; each choice has a folder of its own."""
    targets = [parse_target(target).about.name for target in chosen]
    return Corpus(folder / "-".join(targets), name, targets[0])


def _mixture(plan: Plan, support: Support, seeds: Sequence[Seed], corpus: Corpus | None) -> Producer:
    parts: list[tuple[Producer, float]] = []
    lowered = any(parse_target(target).about.lowered for target in plan.targets)
    for name, generator_options in plan.producer_specs():
        try:
            parts.append(
                (_producer(plan, name, generator_options, support, seeds, lowered, corpus), generator_options.share)
            )
        except UsageError:
            usual = name == "oatest" and not plan.producers and not plan.patterns
            if not usual and (name != "seeded" or not plan.others):
                raise  # of several targets, others may take the slices; nobody has asked for patterns
    if not parts:
        raise UsageError("the targets take none of the slices alike")
    return parts[0][0] if len(parts) == 1 else Mixture(tuple(parts))


def _producer(
    plan: Plan,
    name: str,
    generator_options: AnyOptions,
    support: Support,
    seeds: Sequence[Seed],
    lowered: bool,
    corpus: Corpus | None,
) -> Producer:
    if isinstance(generator_options, HirfuzzOptions):
        return Hirfuzz(generator_options, support)
    if isinstance(generator_options, DisruptiveOptions):
        return DisruptiveProducer(generator_options, support, lowered=lowered)
    if isinstance(generator_options, OatestOptions):
        faces = [parse_target(target).about for target in plan.targets]
        functions = all(about.functions for about in faces)
        names = [about.name for about in faces]
        return Synthesised(
            generator_options,
            support,
            patterns_for(generator_options),
            names,
            seeds,
            functions=functions,
            corpus=corpus,
        )
    if name == "seeded":
        return Seeded(seeds, generator_options, support)
    kinds: dict[str, Callable[[GeneratorOptions, Support], Producer]] = {
        "strict": Strict,
        "sweep": Sweep,
        "dynamic": DynamicProducer,
    }
    return kinds[name](generator_options, support)


def make_oracle(plan: Plan, disabled: Mapping[str, frozenset[str]]) -> Oracle:
    """Return the plan's oracle, with the passes in `disabled`, by target, off."""
    if plan.others:
        return differential(plan, disabled)
    about, target = parse_target(plan.target).about, plan.target
    off = disabled.get(target, frozenset())
    checks, asked = plan.chosen_checks, tuple((transform,) for transform in plan.chosen_transforms)
    plain = "levels" in checks
    usual = Optimisation(
        target,
        () if about.forced or not plain else about.passes,
        tuple(level for level in about.levels if plain and level not in ("off", "full")),
        lesser_chance=0.8 if plain else 1.0,
        rule=plan.compare,
        disabled=off,
        narrowed=about.narrowed,
        sequences=about.sequences if "sequences" in checks else (),
        families=(*families(checks, about), *((asked,) if asked else ())),
        device=plan.device,
        settle=partial(settled_transform, target),
    )
    if not {"dynamic", "disruptive"}.intersection(checks, (name for name, _ in plan.producer_specs())):
        return usual
    special: dict[str, Oracle] = {
        "dynamic": DynamicOracle(target, rule=plan.compare, disabled=off, narrowed=about.narrowed),
        "disruptive": DisruptiveOracle(target, disabled=off),
    }
    return Chosen(usual, special)


def differential(plan: Plan, disabled: Mapping[str, frozenset[str]]) -> Differential:
    """Return the oracle that holds the plan's targets against each other."""
    return Differential(plan.targets, VOTERS, disabled, plan.narrowed)


def make_pool(plan: Plan, window: int = 3, workers: int = 1) -> Pool:
    """Return a pool for the plan's targets, which applies the transforms asked for; open it with `with`."""
    if plan.others:
        return TransformingRunner(
            MultiTargetPool(plan.targets, lambda target: LocalPool(target, workers, plan.limits, window))
        )
    return TransformingRunner(LocalPool(plan.target, workers, plan.limits, window))


def oracle_context(plan: Plan) -> OracleContext:
    """Return what the oracles of single findings must know of a campaign."""
    return OracleContext(plan.targets, plan.compare)


def triage_settings(plan: Plan, seconds: float | None = None) -> TriageSettings:
    """Return the settings of triage for a campaign; `seconds` limits the reduction of each finding (None: usual)."""
    patience = max(60.0, 4 * plan.limit_seconds)
    return TriageSettings(plan.out, plan.targets, plan.seed, plan.compare, plan.limits, seconds, patience)
