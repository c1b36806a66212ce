"""The files that are made from the commands are those of today's commands."""

import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from miscompile.cli.main import VERBS
from miscompile.cli.reference.__main__ import made
from miscompile.cli.reference.man import man_page
from miscompile.cli.reference.markdown import markdown
from miscompile.cli.reference.pages import Block, CommandPage, command_pages, walk

ROOT = Path(__file__).parents[2]
MADE = made()
BLOCKS = (Block(".dots and <b> `a_b` c_d", verbatim=False), Block("Example:\n  a\\b 'c'", verbatim=True))
OPTIONS = (("Options", (("--x", "'x' or -y."), ("--empty", ""))),)
ODD = CommandPage("miscompile odd", "miscompile odd [X]", "Odd.", BLOCKS, OPTIONS, ())


@pytest.mark.parametrize("name", MADE)
def test_a_made_file_is_current(name: str) -> None:
    assert (ROOT / name).read_text("utf-8") == MADE[name], "run `python -m miscompile.cli.reference`"


def test_every_verb_has_its_part() -> None:
    paths = {page.path for page in walk(command_pages())}
    assert {f"miscompile {verb}" for verb in VERBS} <= paths
    assert "miscompile bugs close" in paths
    assert all(f"# {path}\n" in MADE["docs/commands.md"] for path in paths)


def test_signs_of_markdown_are_text() -> None:
    text = markdown(ODD)
    assert r".dots and \<b\> `a_b` c\_d" in text
    assert "Example:\n\n    a\\b 'c'" in text


def test_signs_of_roff_are_text() -> None:
    text = man_page(ODD)
    assert "\\&.dots" in text
    assert "a\\eb \\(aqc\\(aq" in text
    assert not [line for line in text.splitlines() if line.startswith("'")]


@pytest.mark.parametrize("page", [MADE["man/miscompile.1"], man_page(ODD)], ids=["page", "odd"])
@pytest.mark.skipif(shutil.which("groff") is None, reason="needs groff")
def test_groff_has_no_warning(page: str) -> None:
    run = ["groff", "-man", "-ww", "-Tutf8"]
    done = subprocess.run(run, input=page, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_wheel_has_the_manual_page() -> None:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]["targets"]["wheel"]
    for source, place in wheel["shared-data"].items():
        assert (ROOT / source).is_file()
        assert place == "share/man/man1/miscompile.1"
