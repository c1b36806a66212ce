"""The live display: a picture on a terminal, lines elsewhere."""

import io
import time

import pytest
from rich.console import Console

from miscompile.cli.live import LiveDisplay
from miscompile.cli.verbosity import Verbosity
from miscompile.core.case import Case, Program
from miscompile.core.events import Found, Notice, Progress, WorkPhase
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
    assert len(figures) == 3
    assert figures[0].startswith("0:05/1:00  350 tests  70/s  86% valid")
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
    assert progress_line(Progress(0.0, {}), 0.0, 0) == "0:00  no test has ended yet"
    assert valid_share({"tests": 10, "invalid": 1, "unsupported": 1}) == 0.8


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0, "0:00"), (61.9, "1:01"), (3600.0, "1:00:00"), (86400.0, "24:00:00")]
)
def test_clock(seconds: float, text: str) -> None:
    assert clock(seconds) == text


def staged(monkeypatch: pytest.MonkeyPatch, *, terminal: bool, level: Verbosity = Verbosity.NORMAL) -> str:
    now = iter(range(0, 1000, 2))
    monkeypatch.setattr("miscompile.cli.live.time.monotonic", lambda: float(next(now)))
    sink = io.StringIO()
    console = Console(file=sink, force_terminal=terminal, width=80, color_system=None)
    with LiveDisplay(console, level=level) as live:
        for done in range(8):
            live.on(WorkPhase("probing", done * 10, 100))
    return sink.getvalue()


def test_a_long_phase_is_told_with_its_count_and_an_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = staged(monkeypatch, terminal=False).splitlines()
    assert lines[0].startswith("probing: 10 of 100, about 0:")
    assert 1 < len(lines) < 8, "a line every few seconds, not one for each step"


def test_a_phase_is_one_changing_line_of_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "probing: 70 of 100, about 0:" in staged(monkeypatch, terminal=True)


def test_a_quiet_display_prints_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert staged(monkeypatch, terminal=True, level=Verbosity.QUIET) == ""


def test_the_step_of_a_phase_changes_within_it(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(range(0, 1000, 2))
    monkeypatch.setattr("miscompile.cli.live.time.monotonic", lambda: float(next(now)))
    sink = io.StringIO()
    with LiveDisplay(Console(file=sink, width=80)) as live:
        for done in range(6):
            live.on(WorkPhase("programs watched", done, detail=f"step {done}"))
    assert sink.getvalue().splitlines()[0] == "programs watched: 1; step 1"


def test_a_short_phase_is_not_told() -> None:
    sink = io.StringIO()
    with LiveDisplay(Console(file=sink, width=80)) as live:
        live.on(WorkPhase("probing", 1, 2))
        live.on(WorkPhase("probing", 2, 2))
    assert sink.getvalue() == ""


def test_a_phase_without_an_end_tells_its_count_and_what_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(range(0, 1000, 2))
    monkeypatch.setattr("miscompile.cli.live.time.monotonic", lambda: float(next(now)))
    sink = io.StringIO()
    with LiveDisplay(Console(file=sink, width=80)) as live:
        for done in range(8):
            live.on(WorkPhase("programs watched", 100 * done, 0, 61.0, f"batch {done}"))
    assert "programs watched: 100, at most 1:01 left; batch 1\n" in sink.getvalue()


def test_a_phase_that_ends_at_a_time_says_when() -> None:
    sink = io.StringIO()
    with LiveDisplay(Console(file=sink, force_terminal=True, width=80, color_system=None)) as live:
        live.on(Progress(1.0, {"tests": 1}))
        live.on(WorkPhase("reducing findings", 0, 3, 61.0))
        live.on(WorkPhase("reducing findings", 0, 3, 61.0))
        monotonic = time.monotonic()
        while time.monotonic() < monotonic + 0.25:
            live.on(WorkPhase("reducing findings", 0, 3, 61.0))
    assert "reducing findings: 0 of 3, at most 1:01 left" in sink.getvalue()


def test_the_count_of_a_class_survives_a_long_name() -> None:
    sink = io.StringIO()
    with LiveDisplay(Console(file=sink, force_terminal=True, width=80, color_system=None)) as live:
        live.on(Found(a_finding("AdaptivePoolingTransformer" * 4), fresh=True))
        live.on(Progress(1.0, {"tests": 1}))
    assert any(line.rstrip().endswith("  1") for line in sink.getvalue().splitlines() if "…" in line)
