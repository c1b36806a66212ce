"""The table of the self-mutation score."""

from collections import Counter
from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from evaluation.mutants.campaign import Kill, Score
from evaluation.mutants.measure import MutationFigures

_GOAL = 120.0
"""CPU seconds within which a mutant should be killed."""


def view(figures: MutationFigures) -> RenderableType:
    """Return the table of all arms, and the mutants that none of them killed."""
    broken = {name for score in figures.scores.values() for name in score.broken}
    killable = set(figures.mutants) - set(figures.equivalent) - broken
    table = Table(title=f"{len(killable)} killable mutants of {len(figures.mutants)}")
    for heading in ("arm", "tests", "CPU s", "killed", "within 2 min", "median s", "false", "by 1e-3", "false by 1e-3"):
        table.add_column(heading, justify="left" if heading == "arm" else "right")
    for score in figures.scores.values():
        table.add_row(*_row(score, killable))
    killed = {name for score in figures.scores.values() for name in score.kills}
    wrong = sorted(killed.intersection(figures.equivalent))
    said = f"killed, although equivalent.toml names them: {', '.join(wrong)}"
    notes = [Text(said, style="bold red")] if wrong else []
    return Group(table, _by_rule(figures, killable), *_survivors(figures, killable - killed), *notes)


def _by_rule(figures: MutationFigures, killable: set[str]) -> Table:
    """Return how many mutants each arm killed by each comparison rule, or by the kind of a failure without values."""
    counts = {
        arm: Counter(kill.rule or kill.kind for name, kill in score.kills.items() if name in killable)
        for arm, score in figures.scores.items()
    }
    rules = sorted({rule for count in counts.values() for rule in count})
    table = Table(title="kills by comparison rule, or by the kind of failure")
    table.add_column("arm")
    for rule in rules:
        table.add_column(rule, justify="right")
    for arm, count in counts.items():
        table.add_row(arm, *(str(count[rule]) for rule in rules))
    return table


def _survivors(figures: MutationFigures, rest: set[str]) -> list[Text]:
    """List the mutants that no arm killed, by what was seen of them."""
    changed = {name for score in figures.scores.values() for name in score.changed}
    visible = {name for score in figures.scores.values() for name in score.visible}
    groups = {
        "never changed a program": rest - changed,
        "changed programs, and no bit of a result": (rest & changed) - visible,
        "changed results, and no rule of comparison minded": rest & visible,
    }
    return [
        Text(f"{len(names)} survivors {what}: {', '.join(sorted(names))}") for what, names in groups.items() if names
    ]


def _row(score: Score, killable: set[str]) -> tuple[str, ...]:
    kills = {name: kill for name, kill in score.kills.items() if name in killable}
    fixed = {name: kill for name, kill in score.fixed.items() if name in killable}
    return (
        score.arm, f"{score.tests:,}", f"{score.seconds:.0f}", _share(len(kills), killable),
        _share(sum(kill.seconds <= _GOAL for kill in kills.values()), killable), _median(kills),
        str(len(score.false_alarms)), _share(len(fixed), killable), str(score.misled),
    )  # fmt: skip


def _share(count: int, killable: set[str]) -> str:
    return f"{count} ({count / len(killable):.1%})" if killable else "-"


def _median(kills: Mapping[str, Kill]) -> str:
    times = sorted(kill.seconds for kill in kills.values())
    return f"{times[len(times) // 2]:.1f}" if times else "-"
