"""The page of bugs found says what the data say, and the data name targets and documents that exist."""

import tomllib

import pytest

from evaluation.bugs.page import CLASSES, DATA, PAGE, ROOT, Bug, described, page, reported
from miscompile.targets.registry import CATALOGUE

ENTRIES = tomllib.loads(DATA.read_text("utf-8"))["bug"]


def test_the_page_is_current() -> None:
    assert PAGE.read_text("utf-8") == page([*described(), *reported()]), "run `python -m evaluation.bugs.page`"


def test_every_entry_is_whole() -> None:
    keys = {"target", "version", "culprit", "cause", "class", "link", "looked_up", "source", "fixed_in"}
    for entry in ENTRIES:
        assert set(entry) <= keys
        assert entry["target"] in CATALOGUE.built_in
        assert entry["class"] in CLASSES
        assert entry["cause"].endswith((".", ".)"))
        assert entry.get("link", "https://").startswith("https://")


def test_a_cause_is_listed_once() -> None:
    causes = [(entry["target"], entry.get("version"), entry.get("culprit"), entry["cause"]) for entry in ENTRIES]
    assert len(causes) == len(set(causes))
    links = [entry["link"] for entry in ENTRIES if "link" in entry]
    issues = [link for link in links if "/issues/" in link]  # a pull request may mend several causes
    assert len(issues) == len(set(issues))
    assert not any(link in bug.upstream for link in links for bug in reported())


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"{entry['target']}-{entry.get('culprit', '')}")
def test_the_document_that_an_entry_comes_from_tells_of_it(entry: dict[str, str]) -> None:
    text = (ROOT / entry["source"]).read_text("utf-8")
    words = entry.get("culprit", "").replace("::", " ").split(", ") if "culprit" in entry else []
    words = words or [word for word in entry["cause"].split() if len(word) > 8][:1]
    assert [word for word in words if word.lower() not in text.lower()] == []
    assert entry.get("version", "").split(" ")[-1] in text


def test_reported_bugs_are_one_for_each_link() -> None:
    links = [bug.upstream for bug in reported()]
    assert len(links) == len(set(links)) > 20
    assert all(bug.target not in ("toy", "float16converter") for bug in reported())
    one = next(bug for bug in reported() if "MNN#4057" in bug.upstream)
    assert (one.target, one.kind) == ("mnn", "crash")


def test_the_worst_comes_first() -> None:
    bugs = [Bug("a", "", "B", "c | d.", "crash", "none found"), Bug("a", "1", "", "e.", "wrong values", "")]
    lines = [line for line in page(bugs).splitlines() if line.startswith("| ") and "class" not in line]
    assert lines == ["| wrong values | - | e. | 1 | - |", "| crash | `B` | c \\| d. | - | none found |"]
    assert "2 causes: 1 wrong values, 1 crash." in page(bugs)
