"""Observation of the passes that each motif of the catalogue triggers on a target, planted alone in many settings.

A motif's name does not prove which pass it triggers. Every motif is therefore planted in an empty graph, in several
opsets and in each of its dtypes, and the passes that change the programs are observed. Earlier passes may consume the
pattern of a later one, so the passes that fired can be disabled one by one.

    python -m miscompile.harvest.patterns.verify onnxruntime /tmp/triggers.json --siblings

writes the table of a target for the installed version. If a compiler needs seconds for a program, `--tries 1 --opset
17` tries one program in each dtype, and `--dtypes 1` tries only the first dtype.
"""

import argparse
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from onnx.defs import onnx_opset_version

from miscompile.base.errors import RejectedDraft
from miscompile.base.rng import stream
from miscompile.core.case import Case
from miscompile.core.outcome import Outcome
from miscompile.core.ports import Runner
from miscompile.core.run import Run
from miscompile.environments.resolve import versions_of
from miscompile.execution.pool import LocalPool
from miscompile.harvest.patterns.pass_observation import fired
from miscompile.ops.spec import Operand, OperatorLimits
from miscompile.ops.support import Support
from miscompile.ops.values import Style, choose_range
from miscompile.patterns.language import Motif
from miscompile.patterns.shipped import catalogue
from miscompile.patterns.triggers import Hidden, ObservedTriggers, print_triggers
from miscompile.producers.finish import finish, leaves
from miscompile.producers.motifs.plant import NONE, Planted, plant
from miscompile.producers.scope import Scope
from miscompile.targets.registry import parse_target

OPSETS = (12, 13, 17, 21)
"""Opsets at which many operators change their signature, or optimisers change how they write the result: axes as
attributes (12) and as inputs (13), LayerNormalization (17), Gelu and blocked quantisation (21)."""

TRIES = 3
"""Programs per motif, opset and dtype: enough for a majority, although some sizes happen to be one."""


class MotifSetting(NamedTuple):
    """The key of programs of one motif that differ only in sizes and elements."""

    opset: int
    dtype: str


@dataclass(frozen=True, slots=True)
class Without:
    """A runner that wraps another one and disables the passes `off` in every build."""

    runner: Runner
    off: frozenset[str]

    def run(self, runs: Sequence[Run]) -> list[Outcome]:
        """Run with the passes off."""
        return self.runner.run(
            [replace(run, build=replace(run.build, disabled=run.build.disabled | self.off)) for run in runs]
        )


def verify(
    motifs: Iterable[Motif],
    target: str,
    runner: Runner,
    version: str,
    tries: int = TRIES,
    *,
    opsets: Sequence[int] | None = None,
    dtypes: int | None = None,
    siblings: Collection[str] = (),
) -> ObservedTriggers:
    """Return the passes that `motifs` trigger on `version` of `target`; deterministic.

    A pass counts when it fires in at least half of the programs of some opset and dtype that the target builds.
    `opsets` are the opsets to try (None: `OPSETS` and the newest one), `dtypes` is the number of a motif's dtypes to
    try (None: all). The passes of `siblings` that fire are then disabled one by one, and with their twins
    (`About.twins`), to observe the passes that fire without them.
    """
    name = parse_target(target).about.name
    tried = opsets_of(target) if opsets is None else opsets
    seen: dict[str, tuple[str, ...]] = {}
    behind: dict[str, tuple[Hidden, ...]] = {}
    for motif in motifs:
        groups = programs(motif, tried, tries, dtypes)
        found = _fired(groups, target, runner)
        names = _usual(found)
        if names:
            seen[motif.name] = tuple(sorted(names))
        hidden = tuple(_hidden(groups, found, names, target, runner, siblings))
        if hidden:
            behind[motif.name] = hidden
    return ObservedTriggers(name, version, seen, behind)


def write(triggers: ObservedTriggers, path: Path) -> None:
    """Write `triggers` to the file `path`; the shipped ones are in `patterns/data/triggers/<target>.json`."""
    path.write_text(print_triggers(triggers), "utf-8")


def opsets_of(target: str) -> tuple[int, ...]:
    """Return the opsets to try on `target`, in order, with the newest one that it and onnx know."""
    newest = min(parse_target(target).about.max_opset, onnx_opset_version())
    return (*(opset for opset in OPSETS if opset < newest), newest)


def settings_of(motif: Motif, opsets: Sequence[int], dtypes: int | None = None) -> tuple[MotifSetting, ...]:
    """Return the settings to try: every opset in the first dtype, and every other dtype in the middle opset.

    `dtypes` is the number of the motif's dtypes to try (None: all). A rewrite rule that depends on the opset seldom
    depends on the dtype as well, and the full product costs twice as much.
    """
    first, *others = motif.dtypes[:dtypes]
    middle = opsets[len(opsets) // 2]
    return (*(MotifSetting(opset, first) for opset in opsets), *(MotifSetting(middle, dtype) for dtype in others))


def programs(
    motif: Motif, opsets: Sequence[int], tries: int, dtypes: int | None = None
) -> dict[MotifSetting, list[Case]]:
    """Return programs that contain only `motif`, by setting, without settings in which it cannot be planted.

    A motif that is an identity is planted between two operators, because optimisers keep a node whose result is a
    graph output.
    """
    made = {
        setting: [_program(motif, setting, turn) for turn in range(tries)]
        for setting in settings_of(motif, opsets, dtypes)
    }
    found = {setting: [case for case in cases if case is not None] for setting, cases in made.items()}
    return {setting: cases for setting, cases in found.items() if cases}


def _program(motif: Motif, setting: MotifSetting, turn: int) -> Case | None:
    scope = _scope(motif, setting, turn)
    try:
        planted = _between(scope, motif, setting, turn) if motif.noop else _alone(scope, motif, setting)
        return None if planted is None else finish(scope, leaves(scope), 1, {})
    except RejectedDraft:
        return None


def _scope(motif: Motif, setting: MotifSetting, turn: int) -> Scope:
    rng = stream(0, "verify", motif.name, *setting, turn)
    return Scope(rng, setting.opset, OperatorLimits(zero_size=0.0), Style(), Support(open=True))


def _alone(scope: Scope, motif: Motif, setting: MotifSetting) -> Planted | None:
    return plant(scope, motif, NONE, dtypes=(setting.dtype,))


def _between(scope: Scope, motif: Motif, setting: MotifSetting, turn: int) -> Planted | None:
    """Plant `motif` on the result of one call and use its result in another; these calls match no optimisation."""
    first, last = ("And", "Or") if setting.dtype == "bool" else ("Max", "Min")
    trial = _scope(motif, setting, turn)
    if _alone(trial, motif, setting) is None:
        return None
    shape = next(trial.operands[name] for name in trial.inputs).shape
    planted = plant(scope, motif, NONE, onto=scope.call(first, *_inputs(scope, setting.dtype, shape, 2)))
    if planted is not None:
        result = planted.results[-1]
        scope.call(last, result, *_inputs(scope, result.dtype, result.shape, 1))
    return planted


def _inputs(scope: Scope, dtype: str, shape: tuple[int, ...], count: int) -> list[Operand]:
    return [scope.new_input(dtype, shape, choose_range(dtype, scope.style)) for _ in range(count)]


PassesBySetting = Mapping[MotifSetting, Sequence[frozenset[str] | None]]
"""For each program of a setting the passes that fired; None if it was not built."""


def _fired(groups: Mapping[MotifSetting, Sequence[Case]], target: str, runner: Runner) -> PassesBySetting:
    every = iter(fired([case for cases in groups.values() for case in cases], target, runner))
    return {setting: [next(every) for _ in cases] for setting, cases in groups.items()}


def _usual(found: PassesBySetting) -> frozenset[str]:
    """Return the passes that fire in at least half of the built programs of some setting."""
    names: set[str] = set()
    for outcomes in found.values():
        built = [one for one in outcomes if one is not None]
        counted = Counter(name for one in built for name in one)
        names.update(name for name, count in counted.items() if 2 * count >= len(built))
    return frozenset(names)


def _hidden(
    groups: Mapping[MotifSetting, Sequence[Case]],
    found: PassesBySetting,
    names: frozenset[str],
    target: str,
    runner: Runner,
    siblings: Collection[str],
) -> Iterator[Hidden]:
    """Yield the passes that fire only with others off, in order of name, with the smallest set of passes to disable."""
    hidden: dict[str, tuple[str, ...]] = {}
    for off in _choices(names.intersection(siblings), parse_target(target).about.twins):
        touched = {
            setting: [case for case, one in zip(groups[setting], outcomes, strict=True) if one and one & off]
            for setting, outcomes in found.items()
        }
        left = {setting: cases for setting, cases in touched.items() if cases}
        for name in _usual(_fired(left, target, Without(runner, off))) - names:
            hidden.setdefault(name, tuple(sorted(off)))
    for name in sorted(hidden):
        yield Hidden(name, hidden[name])


def _choices(siblings: Collection[str], twins: Sequence[Sequence[str]]) -> Iterator[frozenset[str]]:
    """Yield the sets of passes to switch off: each sibling alone, then with its twins."""
    for one in sorted(siblings):
        yield frozenset((one,))
    for group in twins:
        if any(one in siblings for one in group):
            yield frozenset(group)


def main(words: Sequence[str] | None = None) -> None:
    """Verify the whole catalogue on a target, and write the observations to a file."""
    parser = argparse.ArgumentParser(prog="python -m miscompile.harvest.patterns.verify", description=main.__doc__)
    parser.add_argument("target", help="a target spec")
    parser.add_argument("path", type=Path, help="the table to write")
    parser.add_argument("--siblings", action="store_true", help="switch the passes that fire off one by one")
    parser.add_argument("--tries", type=int, default=TRIES, help=f"programs for each opset and dtype ({TRIES})")
    parser.add_argument("--opset", type=int, action="append", help="an opset to try, can be repeated (several)")
    parser.add_argument("--dtypes", type=int, help="element types of each motif (all)")
    given = parser.parse_args(words)
    face = parse_target(given.target).about
    version = versions_of(given.target)[face.distributions[0]]
    siblings = face.passes if given.siblings else ()
    with LocalPool(given.target) as pool:
        table = verify(
            catalogue(),
            given.target,
            pool,
            version,
            given.tries,
            opsets=given.opset,
            dtypes=given.dtypes,
            siblings=siblings,
        )
    write(table, given.path)


if __name__ == "__main__":
    main()
