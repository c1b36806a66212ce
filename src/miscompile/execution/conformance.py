"""The conformance kit for targets: the author of an adapter calls `check_target` in a test.

The kit sees a target through a Runner only, as every other part of the tool does, so that it also checks the worker,
the rules in `known.toml` and the names in `about.py`.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager

from miscompile.base.dtypes import PLAIN, SMALL
from miscompile.core.case import Case, Feed
from miscompile.core.outcome import Defect, Outcome, Raised, Rejected, Unsupported, Values, is_death, status_of
from miscompile.core.ports import Runner
from miscompile.core.run import Build, Run
from miscompile.execution.conformance_models import Exhibit, broken, exhibits, identity, unknown_operator
from miscompile.targets.about import About
from miscompile.targets.registry import parse_target

RunnerFactory = Callable[[str], AbstractContextManager[Runner]]
"""Opens a runner for a target spec; `LocalPool` is one."""

_OFF, _FULL = Build(level="off"), Build(level="full")


ALONE = 24
"""Passes that the kit switches off one by one, unless told otherwise."""


def check_target(target: str, runner_factory: RunnerFactory, *, alone: int = ALONE, empty: bool = True) -> None:
    """Check that the target called `target` keeps the contract of `targets.about`.

    At most `alone` of its passes, evenly spread, are switched off one by one; all are switched off together. Without
    `empty` the target need not run a model whose tensors have no elements, which some formats cannot express. Raises
    AssertionError that lists every broken promise, SpecError for an unknown target.
    """
    about = parse_target(target).about
    with runner_factory(target) as runner:
        found = list(violations(target, about, runner, alone, empty=empty))
    if found:
        raise AssertionError(f"{target} breaks the contract of targets:\n" + "\n".join(f"- {line}" for line in found))


def violations(target: str, about: About, runner: Runner, alone: int = ALONE, *, empty: bool = True) -> Iterable[str]:
    """Yield one line for each broken promise."""
    shown = [item for item in exhibits() if empty or all(one.array.size for feed in item.case.feeds for one in feed)]
    yield from _face(about)
    yield from _values(target, runner, shown)
    yield from _dtypes(target, runner)
    yield from _switches(target, about, runner, alone, shown)
    yield from _observation(target, about, runner, shown)
    yield from _refusals(target, runner)


def _face(about: About) -> Iterable[str]:
    if not {"off", "full"} <= set(about.levels):
        yield f"levels are {about.levels}; off and full must be among them"
    if len(set(about.passes)) < len(about.passes):
        yield "passes names a pass twice"
    for name in (*about.function_transforms, *about.altering):
        if name not in about.transforms:
            yield f"'{name}' makes functions or changes results, but is not among the transforms"
    for group in about.twins:
        if len(group) < 2 or not set(group) <= set(about.passes):
            yield f"twins {group} are not two or more of the passes"


def _run(target: str, runner: Runner, cases: Sequence[Case], *builds: Build) -> list[Outcome]:
    """Run every case under every build, the builds of a case next to each other."""
    return runner.run([Run(case, target, build, "probe") for case in cases for build in builds])


def _values(target: str, runner: Runner, shown: Sequence[Exhibit]) -> Iterable[str]:
    """Both levels give the expected bits, twice; outputs stand in the order of the ports; inputs stay as they were."""
    before = [[tensor.array.tobytes() for feed in item.case.feeds for tensor in feed] for item in shown]
    outcomes = _run(target, runner, [item.case for item in shown], _OFF, _FULL, _FULL)
    for index, item in enumerate(shown):
        for build, outcome in zip(("off", "full", "full again"), outcomes[3 * index : 3 * index + 3], strict=True):
            yield from mismatches(f"{item.name}, {build}", item, outcome)
        if before[index] != [tensor.array.tobytes() for feed in item.case.feeds for tensor in feed]:
            yield f"{item.name}: the run has written to its inputs"


def mismatches(where: str, item: Exhibit, outcome: Outcome) -> Iterable[str]:
    """Yield a line for each error in the `outcome` of an exhibit; `where` begins each line."""
    if not isinstance(outcome, Values):
        yield f"{where}: {_named(outcome)} instead of values"
    elif len(outcome.results) != len(item.expected):
        yield f"{where}: results for {len(outcome.results)} of {len(item.expected)} feeds"
    else:
        for number, (found, wanted) in enumerate(zip(outcome.results, item.expected, strict=True)):
            yield from _differences(f"{where}, feed {number}", found, wanted)


def _differences(where: str, found: Sequence[object], wanted: Feed) -> Iterable[str]:
    if len(found) != len(wanted):
        yield f"{where}: {len(found)} outputs instead of {len(wanted)}"
        return
    for index, expected in enumerate(wanted):
        given = found[index]
        if given is None:
            yield f"{where}: output {index} is missing"
        elif getattr(given, "dtype", "") != expected.dtype or getattr(given, "shape", None) != expected.shape:
            yield f"{where}: output {index} is not {expected.dtype}{list(expected.shape)}"
        elif not expected.same(given):  # type: ignore[arg-type]
            yield f"{where}: output {index} has other elements than expected"


def _dtypes(target: str, runner: Runner) -> Iterable[str]:
    """Each plain element type passes through unchanged, or is refused as unsupported, alike at both levels."""
    shown = [
        identity(dtype) for dtype in PLAIN if dtype not in SMALL
    ]  # small types are newer than the opset of the kit
    outcomes = _run(target, runner, [item.case for item in shown], _OFF, _FULL)
    for index, item in enumerate(shown):
        pair = outcomes[2 * index : 2 * index + 2]
        if isinstance(pair[0], Unsupported) and isinstance(pair[1], Unsupported):
            continue
        for build, outcome in zip(("off", "full"), pair, strict=True):
            yield from mismatches(f"{item.name}, {build}", item, outcome)


def _switches(target: str, about: About, runner: Runner, alone: int, shown: Sequence[Exhibit]) -> Iterable[str]:
    """Passes can be switched off, alone and with all others."""
    names = about.passes[:: max(1, -(-len(about.passes) // max(1, alone)))]
    builds = [Build(disabled=frozenset({name})) for name in names] + [Build(disabled=frozenset(about.passes))]
    labels = [f"without {name}" for name in names] + ["without any pass"]
    outcomes = _run(target, runner, [item.case for item in shown], *builds)
    for index, item in enumerate(shown):
        row = outcomes[index * len(builds) : (index + 1) * len(builds)]
        for label, outcome in zip(labels, row, strict=True):
            yield from mismatches(f"{item.name}, {label}", item, outcome)


def _observation(target: str, about: About, runner: Runner, shown: Sequence[Exhibit]) -> Iterable[str]:
    """Observing changes no result, and reports names of passes only; none that is switched off, none at level off."""
    nothing = Build(disabled=frozenset(about.passes), observe=True)
    builds = (Build(observe=True), nothing, Build(level="off", observe=True))
    outcomes = _run(target, runner, [item.case for item in shown], *builds)
    for index, outcome in enumerate(outcomes):
        item, silent = shown[index // 3], index % 3 > 0
        yield from mismatches(f"{item.name}, observed", item, outcome)
        names = set(outcome.observations.passes)
        if unknown := names.difference(about.passes, about.rules):
            yield f"{item.name}: observed {sorted(unknown)}, which about.py does not name"
        if silent and names and about.passes:
            yield f"{item.name}: observed {sorted(names)} although every pass is off"


def _refusals(target: str, runner: Runner) -> Iterable[str]:
    """An unknown operator is unsupported; a broken model is an error and no death; both leave the worker usable.

    Lowerings refuse a broken model before the compiler sees it, so that the error is the adapter's then.
    """
    for build, outcome in zip(("off", "full"), _run(target, runner, [unknown_operator()], _OFF, _FULL), strict=True):
        if not isinstance(outcome, Unsupported):
            yield f"an unknown operator, {build}: {_named(outcome)} instead of unsupported; add a rule to known.toml"
    wrecks = broken()
    errors = (Raised, Rejected, Unsupported, *((Defect,) if parse_target(target).about.lowered else ()))
    outcomes = _run(target, runner, wrecks, _OFF, _FULL)
    for index, outcome in enumerate(outcomes):
        if is_death(outcome) or not isinstance(outcome, errors):
            yield f"broken model {index // 2}: {_named(outcome)} instead of an error"
    first = exhibits()[0]
    yield from mismatches("after the refusals", first, _run(target, runner, [first.case], _FULL)[0])


def _named(outcome: Outcome) -> str:
    message = getattr(outcome, "message", "") or getattr(outcome, "signal", "")
    return f"{status_of(outcome)} ({message})" if message else status_of(outcome)
