"""What a harvest keeps: each instance once, a limit for each operator, and every line that a dead child has written."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miscompile.base.errors import UsageError
from miscompile.harvest.libraries.children import Harvested
from miscompile.harvest.libraries.hooks.recording import PATIENCE, Collector, has
from miscompile.harvest.processes import home_of, need
from miscompile.instances.instance import Instance


def instance(number: int, api: str = "torch.add", origin: str = "") -> Instance:
    return Instance("torch", api, "function", (number,), origin=origin)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 5))), st.integers(1, 4))
def test_each_once_and_no_more_than_the_limit(calls: list[tuple[str, int]], limit: int) -> None:
    found: list[Instance] = []
    into = Collector(found.append, "tests", limit)
    for api, number in calls:
        if into.wants(api):
            into.take(instance(number, api))
    counts = Counter(api for api, _ in set(calls))
    assert Counter(one.api for one in found) == {api: min(limit, counts[api]) for api in counts}
    assert into.kept == Counter(one.api for one in found)
    assert len({(one.api, one.args) for one in found}) == len(found)


def test_where_an_instance_is_from_is_what_runs() -> None:
    found: list[Instance] = []
    into = Collector(found.append, "database")
    for test in ("one", "two"):
        into.test = test
        into.take(instance(1))
        into.take(instance(2 if test == "two" else 1))
    assert [(one.args, one.source, one.origin) for one in found] == [
        ((1,), "database", "one"),
        ((2,), "database", "two"),
    ]


def test_an_operator_that_only_repeats_itself_is_looked_at_no_more() -> None:
    into = Collector(lambda _: None, "tests", 2)
    asked = 0
    while into.wants("torch.add"):
        asked += 1
        into.take(instance(0))
    assert asked == 2 * PATIENCE
    assert into.wants("torch.mul")


def test_reasons_are_counted() -> None:
    into = Collector(lambda _: None, "tests")
    for _ in range(3):
        into.leave("a Generator", "torch.rand")
    assert into.left == {"a Generator": 3}


def test_a_result_is_searched_for_what_it_holds() -> None:
    assert has((1, [{"a": 2.5}]), float)
    assert not has((1, [{"a": 2}], "x"), float)


def test_figures_speak_of_what_is_distinct() -> None:
    harvested = Harvested([instance(1, origin="a"), instance(1, origin="b"), instance(2, "torch.mul")])
    harvested.tests["passed"] += 3
    archive = harvested.archive("torch", ("numpy", "no-such-distribution"))
    assert [one.origin for one in archive.instances] == ["a", ""]
    assert archive.figures["instances"] == 2
    assert archive.figures["operators"] == 2
    assert archive.figures["tests"] == {"passed": 3}
    assert list(archive.versions) == ["numpy"]


def test_a_package_that_is_missing_is_named_with_what_installs_it() -> None:
    need({"numpy": "numpy"}, "this")
    with pytest.raises(UsageError, match="the database needs some-package: pip install some-package"):
        need({"no_such_module": "some-package"}, "the database")


def test_tests_run_where_their_project_begins(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "tests" / "more").mkdir(parents=True)
    assert home_of(tmp_path / "tests" / "more" / "test_a.py") == tmp_path
