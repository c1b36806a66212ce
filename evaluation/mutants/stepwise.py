"""The optimisation of a program step by step, so that a mutant repeats only the steps that it may have changed.

A step is one sweep of one pass. The sound optimiser leaves the program before and after each step, and the probes say
in which of them a mutant is infected. Where the mutant makes of all these programs what the sound passes make of them,
to the last name and type, it makes the same program in the end, and nothing has to be run.
"""

from dataclasses import dataclass, field
from typing import Any

from evaluation.mutants.infection import Infection
from miscompile.targets.toy.ir import Code, ToyCall
from miscompile.targets.toy.mutants import Optimiser
from miscompile.targets.toy.passes import cleanup
from miscompile.targets.toy.passes.pipeline import ROUNDS
from miscompile.targets.toy.passes.rewriting import Pass

ELSEWHERE = -1
"""The step of what happens in the bodies of a program, or while it runs."""


@dataclass(frozen=True, slots=True)
class Step:
    """A sweep of pass number `entry` in a round (`last`: after the rounds), with the program before and after."""

    entry: int
    round: int
    before: Code
    after: Code
    changed: bool


@dataclass(slots=True)
class Trace:
    """The steps of a program, and the steps in which each mutant is infected."""

    steps: list[Step] = field(default_factory=list)
    infected: dict[str, set[int]] = field(default_factory=dict)

    def note(self, infection: Infection, step: int) -> None:
        """Record what the probes have seen since the last step."""
        for name in infection.names:
            self.infected.setdefault(name, set()).add(step)
        infection.clear()


def _order(passes: tuple[Pass, ...], level: str, disabled: frozenset[str], *, last: bool) -> list[int]:
    return [
        place for place, entry in enumerate(passes)
        if entry.last == last and entry.name not in disabled and (entry.basic or level == "full")
    ]  # fmt: skip


def trace_of(code: Code, level: str, disabled: frozenset[str], infection: Infection) -> Trace:
    """Optimise `code` in place with the instrumented sound passes."""
    trace, passes = Trace(), infection.optimiser.passes
    infection.clear()
    if level == "off":
        return trace
    bodies = [call for call in code.calls if call.op == "If"]
    if bodies:
        infection.optimiser.optimise(code, level, disabled, frozenset())
        trace.note(infection, ELSEWHERE)
        return trace
    for number in range(ROUNDS):
        begin = len(trace.steps)
        for entry in _order(passes, level, disabled, last=False):
            _step(code, passes, entry, number, trace, infection)
        if not any(step.changed for step in trace.steps[begin:]):
            break
    for entry in _order(passes, level, disabled, last=True):
        _step(code, passes, entry, ROUNDS, trace, infection)
    return trace


def _step(code: Code, passes: tuple[Pass, ...], entry: int, number: int, trace: Trace, infection: Infection) -> None:
    before = code.copy()
    changed = passes[entry].sweep(code, frozenset())
    if infection.names:
        trace.note(infection, len(trace.steps))
        trace.steps.append(Step(entry, number, before, code.copy(), changed))
    else:
        trace.steps.append(Step(entry, number, before, before, changed))


def mutated(trace: Trace, name: str, optimiser: Optimiser, level: str, disabled: frozenset[str]) -> Code | None:
    """Return the program that a mutant makes; None when it is that of the sound passes."""
    for number in sorted(trace.infected.get(name, ())):
        step = trace.steps[number]
        code = step.before.copy()
        changed = optimiser.passes[step.entry].sweep(code, frozenset())
        if changed != step.changed or not _identical(code, step.after):
            _finish(code, trace, number, optimiser, (level, disabled), changed=changed)
            return code
    return None


def _finish(
    code: Code, trace: Trace, number: int, optimiser: Optimiser, build: tuple[str, frozenset[str]], *, changed: bool
) -> None:
    """Run the remaining steps after step `number` with the passes of the mutant."""
    step, passes = trace.steps[number], optimiser.passes
    rounds, last = (_order(passes, *build, last=late) for late in (False, True))
    if step.round < ROUNDS:
        earlier = [one for one in trace.steps[:number] if one.round == step.round]
        changed = changed or any(one.changed for one in earlier)
        changed = _swept(code, passes, rounds[rounds.index(step.entry) + 1 :]) or changed
        for _ in range(step.round + 1, ROUNDS):
            if not changed:
                break
            changed = _swept(code, passes, rounds)
        rest = last
    else:
        rest = last[last.index(step.entry) + 1 :]
    _swept(code, passes, rest)


def _swept(code: Code, passes: tuple[Pass, ...], entries: list[int]) -> bool:
    """Run passes, all of them, and tell whether one changed the program."""
    changed = False
    for entry in entries:
        changed = passes[entry].sweep(code, frozenset()) or changed
    return changed


def _identical(one: Code, other: Code) -> bool:
    """Tell whether two programs are the same to the last name and type."""
    if one.outputs != other.outputs or len(one.calls) != len(other.calls) or one.types != other.types:
        return False
    if not all(a is b or _same_call(a, b) for a, b in zip(one.calls, other.calls, strict=True)):
        return False
    return one.constants.keys() == other.constants.keys() and all(
        value is other.constants[name] or _frozen_array(value) == _frozen_array(other.constants[name])
        for name, value in one.constants.items()
    )


def _same_call(one: ToyCall, other: ToyCall) -> bool:
    same = (one.op, one.inputs, one.outputs) == (other.op, other.inputs, other.outputs)
    return same and cleanup.frozen(one) == cleanup.frozen(other)


def _frozen_array(value: Any) -> tuple[str, tuple[int, ...], bytes]:  # noqa: ANN401 - an array
    return value.dtype.str, value.shape, value.tobytes()
