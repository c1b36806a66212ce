"""The table of OPERA's prioritisation: figures of orders over results that are known."""

import json
from collections.abc import Sequence
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from evaluation.opera import migrations
from evaluation.opera.orders import ORDERS, CoveredFacts
from evaluation.opera.prioritisation import PAPERS, PAPERS_FRONTS, OrderFigures, OrderSettings, Subject, run, subject_of
from evaluation.opera.view import opera_view
from miscompile.base.errors import UsageError
from miscompile.base.rng import stream
from miscompile.findings.store import Campaign, Store
from miscompile.instances.archive import Archive, write_archive
from miscompile.instances.code import digest_of
from miscompile.instances.instance import Instance
from miscompile.instances.values import Drawn
from miscompile.migration.plan import MigrationPlan
from miscompile.migration.results import ResultRow
from miscompile.targets.front_ends import FrontEnd


def said(results: OrderFigures) -> str:
    """Return what people are shown."""
    console = Console(width=160, file=StringIO())
    console.print(opera_view(results))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


ARGUMENTS = ("stride", "padding", "dilation")


def uses_of(count: int) -> list[Instance]:
    """Return many usual uses of many operators, few unusual ones, in the order of the operators."""
    rng = stream(1, "tests")
    found = []
    for number in range(count):
        given = {name: rng.choice([2, 3, 4, 5, 6, 7]) for name in ARGUMENTS}
        if number % 20 == 7:
            given[rng.choice(ARGUMENTS)] = rng.choice([0, -1])
        found.append(Instance("torch", f"torch.op{number * 12 // count}", "function", (number % 3,), given))
    return found


def rows_of(tests: Sequence[Instance]) -> list[ResultRow]:
    """Let every operator have a bug with strides of zero and one with negative paddings."""
    rows = []
    for test in tests:
        wrong = [name for name in ARGUMENTS if test.kwargs[name] in (0, -1)]
        bug = f"{test.operator}:{wrong[0]}" if wrong else ""
        rows.append(ResultRow(digest_of(test), test.api, "f", "finding" if bug else "pass", bug, seconds=0.5))
    return rows


def subject(count: int = 300, coverage: bool = False) -> Subject:
    tests = uses_of(count)
    covered = {digest_of(test): frozenset[int | str]({test.operator}) for test in tests} if coverage else {}
    return subject_of("torch-tvm", "tvm", "torch", tests, rows_of(tests), CoveredFacts(coverage=covered))


@pytest.mark.quality
def test_diversity_of_parameters_finds_bugs_of_unusual_parameters_early() -> None:
    *_, results = run(OrderSettings(repetitions=3), [subject()])
    rankings = results.fronts[0].rankings
    assert set(rankings) == set(ORDERS) - {"total", "additional"}
    assert rankings["opera"].apfd.mean > rankings["random"].apfd.mean + 0.1
    assert rankings["parameters"].apfd.mean > rankings["operators"].apfd.mean
    assert rankings["opera"].rauc[0.25].mean > rankings["random"].rauc[0.25].mean
    assert rankings["opera"].until.mean < rankings["random"].until.mean


def test_orders_by_coverage_where_it_is_known() -> None:
    *_, results = run(OrderSettings(repetitions=1), [subject(60, coverage=True), subject(60)])
    assert "additional" in results.fronts[0].rankings
    assert "additional" not in results.fronts[1].rankings
    assert set(results.means()) == set(ORDERS) - {"total", "additional"}
    firsts = [front.rankings["random"].apfd.mean for front in results.fronts]
    assert results.means()["random"] == pytest.approx(sum(firsts) / 2)


def test_the_report_has_the_papers_figures() -> None:
    *_, results = run(OrderSettings(repetitions=2, orders=("opera", "random")), [subject(60)])
    data = json.loads(json.dumps(results.as_json()))
    assert data["fronts"][0]["paper"]["opera"] == 0.984
    assert data["paper"]["opera"] == 0.898
    assert set(data["fronts"][0]["orders"][0]["rauc"]) == {"25%", "50%", "75%", "100%"}
    console = Console(width=160, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    with console.file:
        console.print(opera_view(results))
        text = console.export_text()
    assert "torch-tvm" in text
    assert "0.984" in text
    assert "0.898" in text


def test_the_papers_means_are_those_of_its_table() -> None:
    for order in ("opera", "random", "fast", "total", "additional"):
        figures = [row[order] for row in PAPERS_FRONTS.values()]
        assert sum(figures) / len(figures) == pytest.approx(PAPERS[order], abs=6e-4)


def test_without_bugs_there_is_nothing_to_measure() -> None:
    tests = uses_of(5)
    rows = [ResultRow(digest_of(test), test.api, "f", "pass") for test in tests]
    *_, results = run(OrderSettings(), [subject_of("f", "tvm", "torch", tests, rows, CoveredFacts())])
    assert results.fronts[0].rankings == {}
    assert results.means() == {}
    assert "no bug in 5 tests" in said(results)


def test_bugs_without_an_order_are_not_called_none() -> None:
    *_, results = run(OrderSettings(orders=("total",)), [subject(60)])
    assert results.fronts[0].bugs
    assert "none of these orders is known; those by statements need --coverage" in said(results)


def test_tests_that_were_never_run_are_left_out() -> None:
    tests = uses_of(6)
    rows = rows_of(tests)
    rows[0] = ResultRow(rows[0].digest, rows[0].api, "f", "invalid")
    found = subject_of("f", "tvm", "torch", tests, rows[:4], CoveredFacts())
    assert found.instances == tuple(tests[1:4])
    with pytest.raises(UsageError, match="none of the instances"):
        subject_of("f", "tvm", "torch", tests, [], CoveredFacts())
    with pytest.raises(UsageError, match="no order 'best'"):
        list(run(OrderSettings(orders=("best",)), []))


def test_front_ends_with_options_of_their_own_are_told_apart(tmp_path: Path) -> None:
    """A spec may have spaces in it, by which the title of a migration cannot be taken apart."""
    tests = (Instance("onnx", "Relu", "node", inputs=(Drawn("float32", (2,)),), version=14),)
    archive = tmp_path / "onnx.jsonl.gz"
    write_archive(Archive("onnx", tests), archive)
    fronts = (FrontEnd("onnx", "toy{ bugs=none }"), FrontEnd("onnx", "onnxruntime"))
    plan = MigrationPlan(fronts, tmp_path / "out", instances=(archive,))
    with Store.open(plan.out) as store:
        store.begin(Campaign(plan.title, 0, plan.remembered(), {}, 0.0))
    assert [front for front, _, _ in migrations._migrated(plan.out)] == list(fronts)
