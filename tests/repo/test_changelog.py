"""The changelog keeps its form (keepachangelog.com), and names the version of the package."""

import re
from pathlib import Path

from miscompile import __version__

TEXT = (Path(__file__).parents[2] / "CHANGELOG.md").read_text("utf-8")
RELEASE = re.compile(r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d{2}-\d{2})$", re.MULTILINE)
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_there_is_a_place_for_what_is_not_released() -> None:
    headings = re.findall(r"^## (.*)$", TEXT, re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    assert len(headings) == 1 + len(RELEASE.findall(TEXT)), "every other heading is `## [1.2.3] - 2000-01-31`"


def test_kinds_of_change_are_the_usual_ones() -> None:
    assert set(re.findall(r"^### (.*)$", TEXT, re.MULTILINE)) <= KINDS


def test_the_version_is_released_or_about_to_be() -> None:
    releases = [version for version, _ in RELEASE.findall(TEXT)]
    assert releases == sorted(releases, key=lambda text: tuple(map(int, text.split("."))), reverse=True)
    unreleased = TEXT.split("## [Unreleased]")[1].split("\n## ")[0]
    assert __version__ in releases or "- " in unreleased
