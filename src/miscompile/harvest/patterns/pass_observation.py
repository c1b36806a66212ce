"""Observation of the passes that change a program. A rule inside a pass is observed with all other rules off."""

from collections.abc import Collection, Mapping, Sequence

from miscompile.core.case import Case
from miscompile.core.outcome import Outcome, Values
from miscompile.core.ports import Runner
from miscompile.core.run import Build, Run
from miscompile.targets.registry import parse_target


def fired(
    cases: Sequence[Case],
    target: str,
    runner: Runner,
    level: str = "full",
    wanted: Collection[str] | None = None,
) -> list[frozenset[str] | None]:
    """Return for each case the names of the passes that changed it on `target`; None if it was not built.

    Passes that contain rewrite rules (`About.rules`) are replaced by their rules; of these, only those in `wanted`
    (None: all) are observed, because each costs a build.
    """
    runs = [_run(case, target, Build(level, observe=True)) for case in cases]
    seen = [observed(outcome) for outcome in runner.run(runs)]
    rules = {
        frame: tuple(rule for rule in inner if wanted is None or rule in wanted)
        for frame, inner in parse_target(target).about.rules.items()
    }
    return [
        None if names is None else _with_rules(case, names, target, runner, level, rules)
        for case, names in zip(cases, seen, strict=True)
    ]


def observed(outcome: Outcome) -> frozenset[str] | None:
    """Return the passes that changed the program in an observed run; None unless it ran."""
    return frozenset(outcome.observations.passes) if isinstance(outcome, Values) else None


def _run(case: Case, target: str, build: Build) -> Run:
    return Run(case, target, build, "probe")


def _with_rules(
    case: Case, names: frozenset[str], target: str, runner: Runner, level: str, rules: Mapping[str, tuple[str, ...]]
) -> frozenset[str]:
    """Replace the passes that contain rules by the rules that fire."""
    frames = [frame for frame in rules if frame in names]
    if not frames:
        return names
    everything = frozenset(rule for inner in parse_target(target).about.rules.values() for rule in inner)
    asked = [(frame, rule) for frame in frames for rule in rules[frame]]
    runs = [_run(case, target, Build(level, everything - {rule}, observe=True)) for _, rule in asked]
    found = set(names.difference(rules))
    for (frame, rule), outcome in zip(asked, runner.run(runs), strict=True):
        if frame in (observed(outcome) or ()):
            found.add(rule)
    return frozenset(found)
