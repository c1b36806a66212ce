"""The runs of the scripts, for people."""

from rich.console import Group
from rich.text import Text

from evaluation.bugs.scripts import ScriptRuns
from miscompile.reports.tables import plain_table


def bugs_view(figures: ScriptRuns) -> Group:
    """Return a line for each script, how many bugs show, what is not as noted, and the targets without a compiler."""
    runs = figures.runs
    table = plain_table("script", "bug", numbers=("seconds",))
    for run in runs:
        table.add_row(run.script, run.status, f"{run.seconds:.1f}")
    versions = dict.fromkeys(f"{run.target} {run.version}" for run in runs)
    shows = sum(run.status == "shows" for run in runs)
    lines = [Text(f"{shows} of {len(runs)} bugs show" + (f" in {', '.join(versions)}" if runs else ""))]
    lines += [Text(f"not as noted: {run.script}: {run.status}: {run.said}") for run in runs if not run.expected]
    if figures.without_compiler:
        lines.append(Text(f"not installed: {', '.join(figures.without_compiler)}"))
    return Group(table, *lines)
