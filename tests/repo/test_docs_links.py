"""Links between the documents, and to files of the repository, lead somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("docs", "src", "evaluation", "benchmarks")
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(path for name in FOLDERS for path in (ROOT / name).rglob("*.md"))], key=str)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6}\s+(.*)$", re.MULTILINE)
FENCE = re.compile(r"^(`{3,}).*?^\1`*\s*$", re.MULTILINE | re.DOTALL)


def prose(path: Path) -> str:
    return FENCE.sub("", path.read_text("utf-8"))


def anchors(path: Path) -> set[str]:
    """Return the anchors that a renderer makes of the headings."""
    titles = (re.sub(r"[`*]", "", title).strip().lower() for title in HEADING.findall(prose(path)))
    return {re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in titles}


def broken(path: Path) -> list[str]:
    found = []
    for link in LINK.findall(prose(path)):
        if re.match(r"[a-z]+:", link):
            continue
        file, _, anchor = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            found.append(link)
    return found


def test_there_are_documents() -> None:
    assert {"README.md", "CHANGELOG.md", "CONTRIBUTING.md"} <= {path.name for path in DOCUMENTS}
    assert len(list((ROOT / "docs" / "decisions").glob("*.md"))) >= 1


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    assert broken(path) == []


def test_every_page_is_reached_from_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text("utf-8")
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").as_posix()
        assert name == "index.md" or f"({name})" in index, f"docs/index.md does not link {name}"


def test_a_broken_link_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A `b` title\n[a](page.md#a-b-title) [b](none.md) [c](#nope) [d](https://example.org/x)\n```\n[e](no)\n```\n"
    )
    assert broken(page) == ["none.md", "#nope"]


GUIDES = sorted([*(ROOT / "docs").glob("adding-*.md"), ROOT / "docs" / "extending.md"])
FILE = re.compile(r"(?<![\w./<>-])((?:[a-z_]+/)+[a-z_*]+\.(?:py|toml|motif))")
HOMES = (ROOT, ROOT / "src" / "miscompile", ROOT / "src" / "miscompile" / "transforms")
"""Folders that the guides shorten paths from."""


def absent(text: str) -> list[str]:
    """Return the files that `text` names and that do not exist."""
    return [name for name in FILE.findall(text) if not any(any(home.glob(name)) for home in HOMES)]


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.name)
def test_a_guide_names_files_that_exist(path: Path) -> None:
    assert absent(path.read_text("utf-8")) == []


def test_a_file_that_has_moved_is_seen() -> None:
    text = "`transforms/rules/data/*.toml`, `rules/parse.py`, `generation/motifs/plant.py`, tests/unit/gone/x.toml"
    assert absent(text) == ["generation/motifs/plant.py", "tests/unit/gone/x.toml"]
