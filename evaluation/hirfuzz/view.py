"""The tables of HIRFUZZ, for people."""

from collections.abc import Iterator

from rich.console import Group
from rich.table import Table
from rich.text import Text

from evaluation.hirfuzz.diversity import Diversity
from evaluation.hirfuzz.experiments import HirfuzzFigures
from evaluation.hirfuzz.failures import PAPERS_BUGS as PAPERS_FAILURES
from evaluation.hirfuzz.failures import FailureSeries
from evaluation.hirfuzz.invalid import ENDINGS, PAPERS_BUGS, PAPERS_GRAPHS, InvalidSeries
from evaluation.measures import SampleStatistics

_GUIDANCE = {
    "gate": "guided",
    "off": "not guided",
    "steer": "steered",
    "released": "as released",
}


def hirfuzz_view(results: HirfuzzFigures) -> Group:
    """Return the tables of what was measured, each with the paper's figures."""
    return Group(*_tables(results))


def _tables(results: HirfuzzFigures) -> Iterator[Table | Text]:
    settings = results.settings
    if results.diversity is not None:
        repetitions = results.diversity.modes[0].score.count
        yield _diversity(results.diversity)
        yield Text(
            f"Over {repetitions} repetitions of {settings.graphs} graphs of {settings.nodes} operators. The paper: "
            "more than 5 times the score without guidance (figure 6: 200 graphs of 100 operators). guided: a node "
            "enters only if it adds coverage; steered: as this tool's own generator, what was used least is preferred; "
            "first, last: items that a graph of the first and of the last tenth adds.\n"
        )
    if results.invalid:
        yield _invalid(results.invalid)
        yield Text(
            f"The paper: {PAPERS_GRAPHS} graphs that all killed TVM 0.9, {PAPERS_BUGS} bugs behind them; how many "
            "invalid graphs it took is not said.\n"
        )
    if results.failures:
        yield _failures(results.failures)
        yield Text(
            "texts, traces: different bug texts, and pairs of text and trace, which is how the paper tells failures "
            "apart; bugs: different signatures after triage; left out: unstable, unconfirmed or untriaged; seconds: of "
            "the tests and of triage."
        )
        (bugs, failing), (free_bugs, free_failing) = PAPERS_FAILURES["gate"], PAPERS_FAILURES["off"]
        yield Text(
            f"The paper, two days of TVM 0.9: guided {bugs} bugs of {failing} failing tests, not guided {free_bugs} of "
            f"{free_failing}.\n"
        )
    yield Text(f"seed {settings.seed}, {results.seconds:.0f} s")


def plain_table(title: str, *columns: str) -> Table:
    """Return an empty table without rules; all columns but the first hold numbers."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for number, name in enumerate(columns):
        table.add_column(name, justify="right" if number else "left")
    return table


def _diversity(found: Diversity) -> Table:
    table = plain_table(
        "Diversity score", "generation", "score", "ratio", "dtypes", "shapes", "edges", "first", "last", "seconds",
    )  # fmt: skip
    measured = {mode.mode for mode in found.modes}
    for mode in found.modes:
        data = mode.as_json()
        ratio = _ratio(found.ratio(mode.mode)) if "off" in measured else ""
        first, last = mode.gained()
        items = [f"{data['items'][name]['mean']:,.0f}" for name in ("dtypes", "shapes", "edges")]
        cells = (str(mode.score), ratio, *items, f"{first:.0f}", f"{last:.0f}", f"{data['seconds']:.0f}")
        table.add_row(_GUIDANCE[mode.mode], *cells)
    return table


def _ratio(found: SampleStatistics) -> str:
    return f"{found.mean:.2f} ± {found.deviation:.2f}" if found.deviation else f"{found.mean:.2f}"


def _invalid(found: tuple[InvalidSeries, ...]) -> Table:
    table = plain_table("Invalid programs", "target", "programs", *ENDINGS, "findings", "seconds")
    for series in found:
        endings = [str(series.endings.get(ending, 0)) for ending in ENDINGS]
        findings = str(series.unique.by_signature)
        table.add_row(series.target, str(series.programs), *endings, findings, f"{series.seconds:.0f}")
    return table


def _failures(found: tuple[FailureSeries, ...]) -> Table:
    table = plain_table(
        "Failing tests", "target", "guidance", "tests", "failing", "texts", "traces", "bugs", "left out", "undecided",
        "seconds",
    )  # fmt: skip
    for series in found:
        counts, settled = series.unique, series.settled
        left_out = settled.unstable + len(settled.unconfirmed) + settled.untriaged
        seconds = " + ".join(f"{part:.0f}" for part in series.seconds)
        table.add_row(
            series.target, series.mode, str(series.tests), str(counts.failures), str(counts.by_message),
            str(counts.by_trace), str(counts.by_signature), str(left_out),
            str(sum(settled.undecided.values())), seconds,
        )  # fmt: skip
    return table
