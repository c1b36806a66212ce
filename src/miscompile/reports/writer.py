"""Writing issue texts into findings folders: while a campaign runs, and afterwards for findings that lack one."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from miscompile.base.errors import MiscompileError
from miscompile.core.case import Program
from miscompile.core.events import Event, Found
from miscompile.findings.folder import add_file, identifiers, load, place
from miscompile.findings.store import Store
from miscompile.graph.read import read
from miscompile.graph.text.printer import print_model
from miscompile.reports.issue import render_issue
from miscompile.reports.registry import Report
from miscompile.reports.wording import title_of
from miscompile.triage.clusters import CauseCluster, clusters_of


def model_text(program: Program) -> str:
    """Return the text form of a program; for one that cannot be read, a line with the reason."""
    if program.kind != "onnx":
        return f"(a program of kind {program.kind} has no text form)"
    try:
        return print_model(read(program.payload))
    except MiscompileError as error:
        return f"({error})"


def write_issue(out: Path, identifier: str, alike: Sequence[str] = ()) -> str:
    """Render the issue of a stored finding, put it into its folder as `issue.md`, and return the text.

    `alike` are the identifiers of findings that seem to have the same cause. Raises StoreError when there is no such
    finding or its folder cannot be read or written.
    """
    stored = load(out, identifier)
    lines = [f"`{other}`: {title_of(load(out, other))}" for other in alike]
    text = render_issue(stored, model_text(stored.finding.case.program), lines)
    add_file(out, identifier, "issue.md", text)
    return text


def write_issue_of_cluster(out: Path, identifier: str) -> str:
    """Write the issue of a stored finding as `write_issue` does, with the findings that seem to have the same cause.

    Raises StoreError when there is no campaign or no such finding, or a folder cannot be read or written.
    """
    with Store.open(out, create=False) as store:
        found = clusters_of(store)
    cluster = next((one.identifiers for one in found if identifier in one.identifiers), ())
    return write_issue(out, identifier, [other for other in cluster if other != identifier])


def write_clustered_issues(out: Path, clusters: Iterable[CauseCluster]) -> list[str]:
    """Write the issues of all clustered findings anew, so that each names the others of its cluster.

    Returns a line for each finding whose folder is damaged or cannot be written.
    """
    problems = []
    for cluster in clusters:
        for identifier in cluster.identifiers:
            try:
                write_issue(out, identifier, [other for other in cluster.identifiers if other != identifier])
            except MiscompileError as error:
                problems.append(str(error))
    return problems


def write_missing_issues(out: Path) -> list[str]:
    """Write the issue of every finding that has none: because a process can be killed between finding and issue.

    Returns a line for each finding whose folder is damaged or cannot be written.
    """
    problems = []
    for identifier in identifiers(out):
        try:
            if not load(out, identifier).issue:
                write_issue(out, identifier)
        except MiscompileError as error:
            problems.append(str(error))
    return problems


def _write_issues(store: Store, out: Path) -> list[Path]:
    """Write the issue of every finding anew. Raises StoreError for a folder that is damaged or cannot be written."""
    found = list(identifiers(out))
    for identifier in found:
        write_issue(out, identifier)
    write_clustered_issues(out, clusters_of(store))
    return [place(out, identifier) / "issue.md" for identifier in found]


ISSUES = Report("issues", "the issue text of each finding, as issue.md in its folder", _write_issues)


class IssueWriter:
    """Listener that writes `issue.md` as soon as a finding is announced."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self.problems: list[str] = []

    def on(self, event: Event) -> None:
        """Write the issue of a fresh finding; errors are recorded in `problems`, because listeners must not raise."""
        if isinstance(event, Found) and event.fresh:
            try:
                write_issue(self._out, event.finding.identifier)
            except MiscompileError as error:
                self.problems.append(str(error))
