"""Wiring: the one module that knows all the parts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from miscompile.base.errors import UsageError
from miscompile.core.case import Feed, Port, Program
from miscompile.core.ports import Oracle, Producer
from miscompile.engine.checks import families
from miscompile.engine.plan import AnyOptions, Plan
from miscompile.engine.seeds import seeds_of, wants_seeds
from miscompile.engine.transforming import TransformingRunner
from miscompile.execution.multi_target import MultiTargetPool, Pool
from miscompile.execution.pool import LocalPool
from miscompile.graph.model import Model
from miscompile.graph.program import to_program
from miscompile.graph.specialise import folded, is_symbolic, specialised
from miscompile.ops.analysis import analyse, require_well_formed
from miscompile.ops.seed import Seed
from miscompile.ops.spec import Operand
from miscompile.ops.support import Support, joint
from miscompile.oracles.differential import Differential
from miscompile.oracles.disruptive import Disruptive as DisruptiveOracle
from miscompile.oracles.dynamic import Dynamic as DynamicOracle
from miscompile.oracles.optimisation import Optimisation
from miscompile.oracles.per_case import Chosen
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
from miscompile.targets.registry import parse_target, settled_form

VOTERS = ("reference",)
"""Targets that are asked in the second round of a differential judgement only."""


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
    checks = plan.chosen_checks
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
        families=(*families(checks, about), *((forms,) if (forms := plan.chosen_forms) else ())),
        device=plan.device,
        settle=partial(settled_form, target),
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
    """Return a pool for the plan's targets, which presents programs in the forms asked for; open it with `with`."""
    if plan.others:
        return TransformingRunner(
            MultiTargetPool(plan.targets, lambda target: LocalPool(target, workers, plan.limits, window))
        )
    return TransformingRunner(LocalPool(plan.target, workers, plan.limits, window))


def reprogram(model: Model, feed: Feed) -> Program:
    """Return `model` as a program whose exact outputs are worked out anew from `feed`.

    Where sizes are symbolic, the model is analysed at the feed's sizes and keeps its symbols. Raises RejectedDraft when
    an edit has made a node that breaks its operator's rules.
    """
    program = to_program(model)
    names = [port.name for port in program.inputs]
    shapes = {name: value.shape for name, value in zip(names, feed, strict=True)}
    symbolic = is_symbolic(program.inputs)
    concrete = folded(specialised(model, shapes)) if symbolic else model
    operands = analyse(concrete, dict(zip(names, feed, strict=True)))
    require_well_formed(concrete, operands)
    outputs = [
        port._replace(exact=port.name in operands and operands[port.name].facts.exact) for port in program.outputs
    ]
    if not symbolic:
        outputs = [_sized(port, operands.get(port.name)) for port in outputs]
    return replace(program, outputs=tuple(outputs))


def _sized(port: Port, known: Operand | None) -> Port:
    """Fill in the sizes that follow from what is fed, which inference on the graph alone does not see."""
    return port if known is None or known.dtype != port.dtype else port._replace(shape=known.shape)
