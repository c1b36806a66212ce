"""Detection of devices: a worker builds a small program for the device and runs it.

No cheaper test is reliable, because a driver, the vendor's libraries, a code generator and its assembler must all be
installed and fit each other, and each compiler needs other ones. This module imports no compiler.
"""

from collections.abc import Mapping
from dataclasses import replace

from miscompile.base.errors import UsageError
from miscompile.core.outcome import (
    Crashed,
    Defect,
    Outcome,
    OutOfMemory,
    Raised,
    Rejected,
    TimedOut,
    Unsupported,
    Values,
)
from miscompile.core.run import Build, Run
from miscompile.engine.plan import Plan
from miscompile.execution.conformance_models import exhibits
from miscompile.execution.limits import Limits
from miscompile.execution.pool import LocalPool
from miscompile.targets.registry import parse_target

PATIENCE = 120.0
"""Seconds that the first program may take, because it loads drivers and code generators."""

_LONGEST = 600


def require_device(plan: Plan) -> None:
    """Raise UsageError with the reason unless the plan's target can build for the plan's device on this machine.

    A campaign calls it before it writes anything. The CPU is not tested.
    """
    if plan.device == "cpu":
        return
    problem = lacking(plan.target, plan.device)
    if problem:
        raise UsageError(f"--device {plan.device}: {problem}")


def require_memory(plan: Plan) -> None:
    """Raise UsageError when `--limit-memory` does not suffice for a program of one operator.

    Without this check such a campaign refuses every program, and looks like one whose compiler takes none.
    """
    if plan.limit_memory is None:
        return
    for target in plan.targets:
        limits = plan.limits if plan.limit_seconds > PATIENCE else replace(plan.limits, seconds=PATIENCE)
        with LocalPool(target, 1, limits) as pool:
            outcomes = pool.run([Run(exhibits()[1].case, target, Build("full"), "probe")])
        if isinstance(outcomes[0], OutOfMemory | Crashed):
            raise UsageError(
                f"--limit-memory {plan.limit_memory:,} bytes is too small for {target}: a program of one operator"
                f" {'runs out of memory' if isinstance(outcomes[0], OutOfMemory) else 'kills its worker'}; allow more"
            )


def lacking(target: str, device: str) -> str:
    """Return a line on what `target` lacks to build for `device` on this machine; an empty text when it can.

    Raises UsageError when the target itself cannot be loaded.
    """
    case = exhibits()[1].case
    with LocalPool(target, 1, Limits(seconds=PATIENCE, memory=0)) as pool:
        (outcome,) = pool.run([Run(case, target, Build(device=device), "probe")])
    return " ".join(_reason(target, device, outcome).split())[:_LONGEST]


def present(target: str) -> Mapping[str, str]:
    """Return the result of `lacking` for each device that `target` has builds for."""
    return {device: "" if device == "cpu" else lacking(target, device) for device in parse_target(target).about.devices}


def _reason(target: str, device: str, outcome: Outcome) -> str:
    fails = f"{target} cannot build for {device} here: its first program"
    match outcome:
        case Values():
            return ""
        case Unsupported(_, message) | Rejected(_, message):
            return message
        case Raised(_, kind, message):
            return f"{fails} raises {kind}: {message}"
        case Defect(_, kind, message):
            return f"{fails} meets a defect of the adapter, {kind}: {message}"
        case OutOfMemory(_, message):
            return f"{fails} finds no memory: {message}"
        case TimedOut(_, seconds):
            return f"{fails} does not end within {seconds:g} s"
        case Crashed(stage, signal):
            return f"{fails} kills its process at {stage} ({'signal' if signal > 0 else 'status'} {abs(signal)})"
