"""The joints between the command line and the campaign. Imports are late, so that `--help` costs nothing.

Everything a verb does with a compiler goes through here; verbs themselves only parse and print.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from miscompile.core.ports import Listener
from miscompile.engine.plan import Plan
from miscompile.producers.slices.table import SupportTable
from miscompile.targets.registry import load_attribute

_LEAD = "miscompile.engine.coordinator"
_SINGLE = "miscompile.engine.single"


def validate(plan: Plan) -> None:
    """Raise UsageError when a plan cannot be meant: an unknown check, transform or producer, or an option that it
    lacks.

    Raises StoreError when its file of patterns is damaged.
    """
    _ = plan.chosen_checks, plan.chosen_transforms
    for name, generator_options in plan.producer_specs():
        if name == "oatest":
            load_attribute("miscompile.producers.synthesis.options:patterns_for")(generator_options)


def fuzz(plan: Plan, listeners: Sequence[Listener]) -> None:
    """Run a campaign to its limits, or until it is interrupted; what it finds lies in OUT afterwards."""
    load_attribute(f"{_LEAD}:fuzz")(plan, listeners)


def check(model: Path, plan: Plan, listeners: Sequence[Listener]) -> None:
    """Run a campaign around the model at `model`."""
    load_attribute(f"{_LEAD}:fuzz")(replace(plan, model=str(model)), listeners)


def reduce(out: Path, identifier: str, seconds: float) -> None:
    """Reduce a stored finding for at most `seconds` and store the smaller one."""
    load_attribute(f"{_SINGLE}:reduce")(out, identifier, seconds)


def bisect(out: Path, identifier: str) -> None:
    """Find the culprit passes of a stored finding and store them."""
    load_attribute(f"{_SINGLE}:bisect")(out, identifier)


def releases(out: Path, identifier: str, *, keep: bool, say: Callable[[str], None]) -> Mapping[str, Any]:
    """Find the first release of the compiler that shows a stored finding; return the search as JSON values."""
    found: Mapping[str, Any] = load_attribute(f"{_SINGLE}:releases")(out, identifier, keep, say).as_json()
    return found


def replay(out: Path, identifier: str) -> tuple[bool, str]:
    """Run a stored finding's case through the tool again; return whether it shows, and what was seen in a line."""
    shows, message = load_attribute(f"{_SINGLE}:replay")(out, identifier)
    return bool(shows), str(message)


def matrix(target: str) -> Mapping[str, Mapping[str, bool]]:
    """Probe which operator takes which dtype on `target`; operator to dtype to answer."""
    found: Mapping[str, Mapping[str, bool]] = load_attribute(f"{_SINGLE}:matrix")(target)
    return found


def devices(target: str) -> Mapping[str, str]:
    """Ask `target` which of its devices are here; device to what it lacks, an empty text when it is there."""
    found: Mapping[str, str] = load_attribute("miscompile.engine.devices:present")(target)
    return found


def rules(
    words: str, file: Path | None, trials: int, graphs: int, seed: int
) -> tuple[list[Mapping[str, Any]], Mapping[str, int]]:
    """Return the rewrite rules with certificates and counts, and the totals, as JSON values."""
    entries = load_attribute("miscompile.engine.rulebook:rulebook")(words, file, trials, graphs, seed)
    totals: Mapping[str, int] = load_attribute("miscompile.engine.rulebook:totals")(entries)
    return [entry.as_json() for entry in entries], totals


def plain_plan(target: str) -> Plan:
    """Return the plan that has everything of `target` asked, as a campaign does."""
    return Plan(target)


def counted_passes(folder: Path) -> list[Any]:
    """Return the tables of passes of the campaign in `folder`."""
    targets, counts = load_attribute("miscompile.engine.passes:counted")(folder)
    return [load_attribute("miscompile.engine.passes:table_of")(target, counts) for target in targets]


def measured_passes(
    target: str,
    seconds: float,
    programs: int | None,
    seed: int,
    patterns: str | None,
    say: Callable[[int], None],
) -> Any:  # noqa: ANN401 - a table whose module is loaded late
    """Measure which passes of `target` patterns wake, and return the table; `say` is told how many programs ran."""
    counts = load_attribute("miscompile.engine.passes:measured")(target, seconds, programs, seed, say, patterns)
    return load_attribute("miscompile.engine.passes:table_of")(target, counts)


def survey(
    target: str, level: str, ops: Sequence[str], workers: int, seconds: float, say: Callable[[int, int], None]
) -> SupportTable:
    """Run onnx's node cases (of `ops`, if there are any) on `target`; `say` is told how many of how many are done."""
    table: SupportTable = load_attribute("miscompile.engine.survey:table_of")(target, level, ops, workers, seconds, say)
    return table
