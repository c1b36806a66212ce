"""The exit codes of the command, in one place: `docs/ci.md` has the same table for users.

A job that reads exit code 0 as "no bug" must be able to rely on it, so a run that tested nothing has a code of its own.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # importing it takes longer than the bare command does
    from miscompile.reports.summary import Summary

NOTHING = 0
"""Something was tested, and nothing was found."""

FINDINGS = 1
"""There are findings; for `repro` and `replay`: the bug shows."""

USAGE = 2
"""Another command line helps; one line on standard error says which."""

FAILED = 3
"""The tool or the machine failed."""

UNTESTED = 4
"""No test ended, the compiler took none of the programs, or of a model slices only: nothing is known."""

STOPPED = 130
"""The verb was interrupted before it had a result."""


def code_of_all(summaries: "Sequence[Summary | None]") -> int:
    """Return the exit code of campaigns on several targets, of which those without a summary could not run.

    It is 0 only if one of them has tested something.
    """
    codes = {code_of(summary) for summary in summaries if summary is not None}
    return FINDINGS if FINDINGS in codes else NOTHING if NOTHING in codes else UNTESTED


def code_of(summary: "Summary") -> int:
    """Return the exit code of a campaign with this summary."""
    if summary.announced():
        return FINDINGS
    return UNTESTED if summary.untested or summary.only_slices else NOTHING
