"""Wiring: the one module that knows all the parts."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from miscompile.campaign.plan import Plan
from miscompile.campaign.presenting import Presenting
from miscompile.core.case import Feed, Port, Program
from miscompile.core.ports import Oracle, Producer
from miscompile.execution.fleet import Fleet, Pool
from miscompile.execution.pool import LocalPool
from miscompile.generation.around import Around
from miscompile.generation.choosing import Choosing
from miscompile.generation.knobs import Knobs
from miscompile.generation.mixture import Mixture
from miscompile.generation.strict import Strict
from miscompile.generation.sweep import Sweep
from miscompile.graph.model import Model
from miscompile.graph.program import to_program
from miscompile.ops.analysis import analyse, require_well_formed
from miscompile.ops.joint import joint
from miscompile.ops.spec import Operand
from miscompile.ops.support import Support
from miscompile.oracles.differential import Differential
from miscompile.oracles.optimisation import Optimisation
from miscompile.targets.registry import parse_target

VOTERS = ("reference",)
"""Targets that are asked in the second round of a differential judgement only."""


def make_producer(plan: Plan, *supports: Support) -> Producer:
    """Return the plan's producers as one; `supports` are the support tables of the plan's targets.

    Raises UsageError when nothing is left to generate, or the user's model is broken.
    """
    if plan.model is not None:
        return Around(Path(plan.model))
    tables = dict(zip(plan.targets, supports, strict=True))
    if not plan.others:
        return _mixture(plan, supports[0])
    return Choosing(plan.targets, lambda chosen: _mixture(plan, joint([tables[target] for target in chosen])))


def _mixture(plan: Plan, support: Support) -> Producer:
    parts = [(_producer(name, knobs, support), knobs.share) for name, knobs in plan.producer_specs()]
    return parts[0][0] if len(parts) == 1 else Mixture(tuple(parts))


def _producer(name: str, knobs: Knobs, support: Support) -> Producer:
    return Strict(knobs, support) if name == "strict" else Sweep(knobs, support)


def make_oracle(plan: Plan, disabled: Mapping[str, frozenset[str]]) -> Oracle:
    """Return the plan's oracle, with the passes in `disabled`, by target, off."""
    if plan.others:
        return differential(plan, disabled)
    about = parse_target(plan.target).about
    off = disabled.get(plan.target, frozenset())
    passes = () if about.forced else about.passes
    levels = tuple(level for level in about.levels if level not in ("off", "full"))
    return Optimisation(plan.target, passes, levels, rule=plan.compare, disabled=off, narrowed=about.narrowed)


def differential(plan: Plan, disabled: Mapping[str, frozenset[str]]) -> Differential:
    """Return the oracle that holds the plan's targets against each other."""
    return Differential(plan.targets, VOTERS, disabled, plan.narrowed)


def make_pool(plan: Plan, window: int = 3, workers: int = 1) -> Pool:
    """Return a pool for the plan's targets, which presents programs in the forms asked for; open it with `with`."""
    if plan.others:
        return Presenting(Fleet(plan.targets, lambda target: LocalPool(target, workers, plan.limits, window)))
    return Presenting(LocalPool(plan.target, workers, plan.limits, window))


def reprogram(model: Model, feed: Feed) -> Program:
    """Return `model` as a program whose exact outputs are worked out anew from `feed`.

    Raises RejectedDraft when an edit has made a node that breaks its operator's rules.
    """
    names = [info.name for info in model.graph.inputs if info.name not in model.graph.initializers]
    operands = analyse(model, dict(zip(names, feed, strict=True)))
    require_well_formed(model, operands)
    names = [info.name for info in model.graph.outputs]
    program = to_program(model, [name for name in names if name in operands and operands[name].facts.exact])
    return replace(program, outputs=tuple(_sized(port, operands.get(port.name)) for port in program.outputs))


def _sized(port: Port, known: Operand | None) -> Port:
    """Fill in the sizes that follow from what is fed, which inference on the graph alone does not see."""
    return port if known is None or known.dtype != port.dtype else port._replace(shape=known.shape)
