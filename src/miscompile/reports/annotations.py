"""Annotations of GitHub Actions: lines on standard output that the page of the job shows
(https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands)."""

from miscompile.reports.ci_result import CiResult


def annotations(result: CiResult) -> list[str]:
    """Return an error for each new finding and when nothing was tested, and a notice with the verdict."""
    lines = [
        _command("error", one.title, f"{one.message or one.signature}\n{one.folder}", f"{one.folder}/repro.py")
        for one in result.new
    ]
    if result.untested and not result.new:
        lines.append(_command("error", f"miscompile {result.target}: nothing was tested", result.untested))
    lines.append(_command("notice", f"miscompile {result.target}", result.verdict))
    return lines


def _command(name: str, title: str, message: str, file: str = "") -> str:
    fields = ([f"file={_property(file)}"] if file else []) + [f"title={_property(title)}"]
    return f"::{name} {','.join(fields)}::{_data(message)}"


def _data(text: str) -> str:
    """Return a message with the characters escaped that end a command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
