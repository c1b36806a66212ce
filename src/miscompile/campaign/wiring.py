"""Wiring: the one module that knows all the parts."""

from dataclasses import replace
from pathlib import Path

from miscompile.campaign.plan import Plan
from miscompile.core.case import Feed, Port, Program
from miscompile.core.ports import Producer
from miscompile.execution.pool import LocalPool
from miscompile.generation.around import Around
from miscompile.generation.knobs import Knobs
from miscompile.generation.mixture import Mixture
from miscompile.generation.strict import Strict
from miscompile.generation.sweep import Sweep
from miscompile.graph.model import Model
from miscompile.graph.program import to_program
from miscompile.ops.analysis import analyse, require_well_formed
from miscompile.ops.spec import Operand
from miscompile.ops.support import Support
from miscompile.oracles.optimisation import Optimisation
from miscompile.targets.registry import parse_target


def make_producer(plan: Plan, support: Support) -> Producer:
    """Return the plan's producers as one. Raises UsageError when nothing is left to generate, or the
    user's model is broken."""
    if plan.model is not None:
        return Around(Path(plan.model))
    parts = [(_producer(name, knobs, support), knobs.share) for name, knobs in plan.producer_specs()]
    return parts[0][0] if len(parts) == 1 else Mixture(tuple(parts))


def _producer(name: str, knobs: Knobs, support: Support) -> Producer:
    return Strict(knobs, support) if name == "strict" else Sweep(knobs, support)


def make_oracle(plan: Plan, disabled: frozenset[str]) -> Optimisation:
    """Return the plan's oracle, with the passes in `disabled` off."""
    about = parse_target(plan.target).about
    return Optimisation(plan.target, about.passes, rule=plan.compare, disabled=disabled)


def make_pool(plan: Plan, window: int = 3, workers: int = 1) -> LocalPool:
    """Return a pool for the plan's target; open it with `with`."""
    return LocalPool(plan.target, workers, plan.limits, window)


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
    return port if known is None or known.dtype != port.dtype else replace(port, shape=known.shape)
