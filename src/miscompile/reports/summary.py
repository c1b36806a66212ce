"""The summary of a campaign: one value, shown as JSON and as a table for people."""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from textwrap import shorten
from typing import Any

from rich.console import Group
from rich.text import Text

from miscompile.base.wording import counted
from miscompile.core.arms import ArmYield, arms_json, arms_rows
from miscompile.core.events import MODEL_JUDGED, MODEL_TESTS, MODEL_UNDECIDED, UNDECIDED
from miscompile.core.outcome import DEFECTS
from miscompile.findings.folder import ANNOUNCED, REPEATED, FindingStatus, writing
from miscompile.findings.store import Record, Store, own_folder
from miscompile.findings.tasks import TASKS, TaskCounts, TaskLog
from miscompile.reports.registry import Report
from miscompile.reports.tables import PlainTable, plain_table
from miscompile.triage.clusters import CauseCluster, clusters_of

COUNTERS = ("tests", "invalid", "unsupported", "deaths", "timeouts", "mismatches_judged_benign")
"""Counters that every summary shows, zero when nothing was counted; all others follow under `counters`."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The results of a campaign so far, over all its sessions; or of all campaigns that share a store.

    `seconds` are wall-clock seconds of sessions, `seed` is that of the first campaign, and `campaigns` are objects with
    `target` and `seed`.
    """

    target: str
    seed: int
    tests: int
    seconds: float
    tests_per_second: float
    invalid: int
    unsupported: int
    deaths: int
    timeouts: int
    mismatches_judged_benign: int
    findings: tuple[Record, ...]
    versions: Mapping[str, str] = field(default_factory=dict)
    counters: Mapping[str, int] = field(default_factory=dict)
    sessions: int = 1
    campaigns: tuple[Mapping[str, Any], ...] = ()
    arms: Mapping[str, ArmYield] = field(default_factory=dict)
    """The yields of the arms by name; empty when the producers had fixed shares."""
    model: str = ""
    """The user's model that the first campaign is about; empty for generated programs."""
    clusters: tuple[CauseCluster, ...] = ()
    """Findings that seem to have one cause."""
    tasks: TaskCounts | None = None
    """How far the campaigns are that have a fixed list of tasks; None when there is none."""

    @property
    def judged(self) -> int:
        """The tests that could have failed: those whose runs gave something to compare."""
        undecided = sum(value for name, value in self.counters.items() if name.startswith(UNDECIDED))
        return max(0, self.tests - self.invalid - self.unsupported - undecided)

    @property
    def untested(self) -> str:
        """The reason why this campaign proves nothing; an empty text when it tested something."""
        if not self.tests:
            return "no test ended; give it more time"
        if self.judged:
            return ""
        reasons = {"unsupported": self.unsupported, "refused as invalid": self.invalid}
        reasons |= {name: value for name, value in self.counters.items() if name.startswith(UNDECIDED)}
        told = ", ".join(f"{value:,} {name}" for name, value in reasons.items() if value)
        return f"none of {counted(self.tests, 'test')} could be judged: {told}"

    @property
    def only_slices(self) -> str:
        """The reason why a campaign around a model says nothing about the model as a whole; empty if it does.

        Its slices were tested then.
        """
        if not self.model or self.untested or self.counters.get(MODEL_JUDGED):
            return ""
        tried = self.counters.get(MODEL_TESTS, 0)
        if not tried:
            return "no test of the model as a whole ended; give it more tests or time"
        told = _reasons(self.counters, MODEL_UNDECIDED)
        return f"none of {counted(tried, 'test')} of the model as a whole could be judged: {told}"

    def announced(self) -> tuple[Record, ...]:
        """Return the findings that make a campaign's exit code 1: confirmed ones and ones still to be examined.

        A bug that no default build shows is not among them.
        """
        return tuple(record for record in self.findings if record.status in ANNOUNCED)

    def as_json(self) -> dict[str, Any]:
        """Return the summary as a JSON object; each finding has id, signature, kind, culprits, nodes, reproduced."""
        data = asdict(self)
        data["findings"] = [record_json(record) for record in self.findings]
        data["arms"] = arms_json(self.arms)
        data["judged"], data["untested"], data["only_slices"] = self.judged, self.untested, self.only_slices
        return data


def _reasons(counters: Mapping[str, int], begin: str) -> str:
    """Return the counters whose names begin with `begin`, as text without that beginning."""
    return ", ".join(
        f"{value:,} {name.removeprefix(begin)}" for name, value in counters.items() if value and name.startswith(begin)
    )


def record_json(record: Record) -> dict[str, Any]:
    """Return one finding as a JSON object for `summary.json`."""
    data = asdict(record)
    return {"id": data.pop("identifier"), **data, "culprits": list(record.culprits)}


def summarise(store: Store) -> Summary:
    """Return the summary of what `store` holds."""
    campaigns, sessions, counters = tuple(store.campaigns().values()), store.sessions(), store.counters()
    first = campaigns[0] if campaigns else None
    seconds = sum(session[2] for session in sessions)
    shown = {name: counters.get(name, 0) for name in COUNTERS}
    return Summary(
        target=", ".join(dict.fromkeys(campaign.target for campaign in campaigns)),
        seed=first.seed if first else 0,
        seconds=round(seconds, 3),
        tests_per_second=round(shown["tests"] / seconds, 3) if seconds else 0.0,
        findings=tuple(store.findings()),
        versions={name: version for campaign in campaigns for name, version in campaign.versions.items()},
        counters={name: value for name, value in counters.items() if name not in COUNTERS},
        sessions=len(sessions),
        campaigns=tuple({"target": campaign.target, "seed": campaign.seed} for campaign in campaigns),
        arms=store.arms(),
        model=str(first.options.get("model") or "") if first else "",
        clusters=tuple(clusters_of(store)),
        tasks=_tasks_of(store),
        **shown,
    )


def _tasks_of(store: Store) -> TaskCounts | None:
    """Return how far all campaigns with a list of tasks are together."""
    logs = (TaskLog(own_folder(store.path, number) / TASKS).counts() for number in store.campaigns())
    known = [counts for counts in logs if counts is not None]
    return sum(known[1:], known[0]) if known else None


def _tasks_line(tasks: TaskCounts) -> str:
    """Return the line that says how far a campaign with a list of tasks is."""
    rest = f"{tasks.left:,} left" if tasks.left else "none left"
    return f"{counted(tasks.total, 'task')}: {tasks.made:,} made, {tasks.not_drawn:,} cannot be drawn, {rest}"


def write_summary(out: Path, summary: Summary) -> Path:
    """Write OUT/summary.json atomically; return its path. Raises StoreError when it cannot be written."""
    path = out / "summary.json"
    with writing(path):
        fresh = path.with_name(f".new-summary-{os.getpid()}.json")
        fresh.write_text(json.dumps(summary.as_json(), indent=2) + "\n", "utf-8")
        fresh.replace(path)
    return path


SUMMARY = Report(
    "summary", "counters and findings, as summary.json", lambda store, out: (write_summary(out, summarise(store)),)
)

_ARMS = 10
_NAMED = 4
"""Findings of a cluster that a terminal names."""

"""Arms in the table for people; `summary.json` has all."""

_STYLES: dict[FindingStatus, str] = {"confirmed": "red", "pending": "yellow"}
"""Colours of the statuses that are announced."""


def findings_table(records: Iterable[Record]) -> PlainTable:
    """Return the table of findings for a terminal; the kind begins each identifier."""
    table = plain_table("finding", "status", "culprit passes, or message", numbers=("nodes", "seen"))
    for record in records:
        table.add_row(
            record.identifier,
            Text(_status(record), style=_STYLES.get(record.status, "dim")),
            Text(" + ".join(record.culprits) or shorten(record.message, 160, placeholder=" ...")),
            str(record.nodes or "?"),
            str(record.duplicates + 1),
        )
    return table


def _status(record: Record) -> str:
    return "regression" if record.regression else record.status


def arms_table(arms: Mapping[str, ArmYield]) -> PlainTable:
    """Return the table of the arms that took most of the time."""
    table = plain_table("arm", numbers=("share", "tests", "new", "confirmed", "pairs"))
    for row in arms_rows(arms, _ARMS):
        table.add_row(*row)
    return table


def cluster_lines(summary: Summary) -> list[Text]:
    """Return a line for each cluster of findings, and the number of causes that remain."""
    if not summary.clusters:
        return []
    triaged = [record for record in summary.findings if record.status in REPEATED]
    causes = len(triaged) - sum(len(cluster.identifiers) - 1 for cluster in summary.clusters)
    found = f"{counted(len(triaged), 'finding')}, probably {counted(causes, 'cause')}"
    lines = [f"{found}. Each of these lines seems to be one cause:"]
    for cluster in summary.clusters:
        rest = len(cluster.identifiers) - _NAMED
        more = f" and {rest} more" if rest > 0 else ""
        lines.append(f"  {', '.join(cluster.identifiers[:_NAMED])}{more}")
    return [Text("\n".join(lines)), Text("")]


LEGEND: Mapping[str, str] = {
    "confirmed": "repeated in fresh processes, reduced, and its passes found",
    "pending": "seen, not examined yet; `miscompile reduce OUT ID` does that",
    "non-default": "confirmed, but no build with the compiler's defaults shows it; not announced",
    "unconfirmed": "did not repeat; kept, but not counted",
    "known": "a bug that known.toml or the ledger lists",
    "fixed": "of an older release; the ledger has it as fixed in the one under test",
    "regression": "the ledger has this bug as fixed, and it is there again",
}
"""What the words in the column `status` mean, in the order of the legend."""


def legend_of(records: Iterable[Record]) -> list[Text]:
    """Return a line for each status that the table of these findings shows."""
    shown = {_status(record) for record in records}
    return [Text(f"  {word}: {LEGEND[word]}", style="dim") for word in LEGEND if word in shown]


def verdict_of(summary: Summary) -> str:
    """Return the sentence about a campaign without findings."""
    if summary.untested:
        return f"Nothing was tested: {summary.untested}."
    if summary.only_slices:
        return f"Nothing found in slices of the model; {summary.only_slices}."
    return "Nothing found."


def _model_line(summary: Summary) -> str:
    """Return the line that says what of a model was tested."""
    whole, judged = summary.counters.get(MODEL_TESTS, 0), summary.counters.get(MODEL_JUDGED, 0)
    slices = counted(summary.tests - whole, "test")
    line = f"{counted(whole, 'test')} of the model as a whole, {judged:,} of them judged; {slices} of its slices"
    return f"{line}. Only slices were tested: {summary.only_slices}." if summary.only_slices else line


def summary_view(summary: Summary, out: Path, *, full: bool = False, brief: bool = False) -> Group:
    """Return the terminal's view of a summary: one line of figures, the findings, and their folder.

    The `full` view shows the arms as well, the `brief` one the findings alone.
    """
    if brief:
        return Group(findings_table(summary.findings) if summary.findings else Text(verdict_of(summary)))
    share = 1 - (summary.invalid + summary.unsupported) / summary.tests if summary.tests else 0.0
    line = (
        f"{counted(summary.tests, 'test')} in {summary.seconds:.0f} s ({summary.tests_per_second:.0f}/s), "
        f"{share:.0%} taken by the compiler, {counted(summary.deaths, 'death')}, "
        f"{counted(summary.timeouts, 'timeout')}, "
        f"{counted(summary.mismatches_judged_benign, 'difference')} explained by rounding"
    )
    parts: list[Text | PlainTable] = [Text(line)]
    if summary.model and summary.tests:
        parts.append(Text(_model_line(summary)))
    if summary.tasks is not None:
        parts.append(Text(_tasks_line(summary.tasks)))
    if defects := summary.counters.get(DEFECTS):
        parts.append(
            Text(f"{counted(defects, 'run')} failed in this tool's own adapter; {out / 'lanes.log'} says where")
        )
    if summary.arms and full:
        parts += [Text(""), arms_table(summary.arms)]
    if summary.findings:
        parts += [
            Text(""),
            findings_table(summary.findings),
            *legend_of(summary.findings),
            Text(""),
            *cluster_lines(summary),
            Text(f"Issue texts and scripts: {out / 'findings'}"),
        ]
    else:
        parts.append(Text(verdict_of(summary)))
    return Group(*parts)
