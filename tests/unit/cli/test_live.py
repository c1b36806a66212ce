"""The live display: a picture on a terminal, lines elsewhere."""

import io

import pytest
from rich.console import Console

from miscompile.cli.live import LiveDisplay
from miscompile.core.case import Case, Program
from miscompile.core.events import Found, Notice, Progress
from miscompile.core.finding import Finding, Property, Signature
from miscompile.reports.progress import clock, progress_line, valid_share

CASE = Case(Program("onnx", b"", (), ()), ())


def a_finding(culprit: str) -> Finding:
    held = Property("pair", "toy", Signature("toy", "wrong", "", (culprit,), ""))
    return Finding("wrong-1", held, CASE, "y [bold]differs[/bold]", {"nodes": 2})


def shown(*, terminal: bool) -> str:
    sink = io.StringIO()
    console = Console(file=sink, force_terminal=terminal, width=110, color_system=None)
    with LiveDisplay(console, 60.0, None) as live:
        for tenth in range(200):
            live.on(Progress(tenth / 10, {"tests": tenth * 7, "unsupported": tenth, "deaths": 1}))
            if tenth in (50, 60):
                live.on(Found(a_finding("FuseAdd"), fresh=tenth == 50))
        live.on(Notice("lane 2 was started anew"))
    return sink.getvalue()


def test_lines_come_every_few_seconds() -> None:
    lines = shown(terminal=False).splitlines()
    figures = [line for line in lines if "tests" in line]
    assert len(figures) == 4
    assert figures[1].startswith("0:05/1:00  350 tests  70/s  86% valid")
    assert [line for line in lines if line.startswith("found")] == [
        "found wrong-1: toy:wrong:FuseAdd (2 nodes): y [bold]differs[/bold]"
    ]
    assert lines[-1] == "lane 2 was started anew"


def test_a_terminal_gets_the_table_of_classes() -> None:
    text = shown(terminal=True)
    assert "toy:wrong:FuseAdd" in text
    assert "class" in text
    assert "\x1b[?25h" in text, "the cursor must be shown again"


def interrupted(live: LiveDisplay) -> None:
    with live:
        live.on(Progress(1.0, {"tests": 1}))
        raise KeyboardInterrupt


def test_the_display_ends_cleanly_on_an_interrupt() -> None:
    sink = io.StringIO()
    live = LiveDisplay(Console(file=sink, force_terminal=True, width=80), None, None)
    with pytest.raises(KeyboardInterrupt):
        interrupted(live)
    assert sink.getvalue().rstrip("\n").endswith(("\x1b[?25h", "\x1b[2K"))


def test_figures_without_a_test_do_not_divide_by_zero() -> None:
    assert progress_line(Progress(0.0, {}), 0.0, 0) == "0:00  0 tests  0/s  0% valid  0 findings  0 deaths"
    assert valid_share({"tests": 10, "invalid": 1, "unsupported": 1}) == 0.8


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0, "0:00"), (61.9, "1:01"), (3600.0, "1:00:00"), (86400.0, "24:00:00")]
)
def test_clock(seconds: float, text: str) -> None:
    assert clock(seconds) == text
