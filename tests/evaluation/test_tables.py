"""The command `python -m evaluation`: every table says which paper it is from, and the small ones run."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from evaluation.program import TABLES, program

ROOT = Path(__file__).parents[2]
PAPERS = ("HIRFUZZ", "POLYJUICE", "ORTHRUS", "OATest", "OPERA")
OURS = ("mutants", "known", "known-operators", "bugs", "oracles")
"""Tables of no paper."""


def command(name: str) -> click.Command:
    found = program.get_command(click.Context(program), name)
    assert found is not None
    return found


@pytest.mark.parametrize("name", [name for name in TABLES if name not in OURS])
def test_a_table_says_its_paper_and_place(name: str) -> None:
    said = command(name)
    assert said.name == name
    assert said.short_help is not None
    assert re.match(rf"({'|'.join(PAPERS)}), (sections?|table) ", said.short_help)


def test_the_page_has_a_row_for_every_table() -> None:
    page = (ROOT / "evaluation" / "README.md").read_text("utf-8")
    assert re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE) == list(TABLES)


@pytest.mark.slow  # an interpreter of its own; the tables are called by default
def test_the_module_is_a_command() -> None:
    run = [sys.executable, "-m", "evaluation"]
    done = subprocess.run([*run, "--help"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert all(f"  {name} " in done.stdout for name in TABLES)
    bare = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=False)
    assert bare.returncode == 2
    assert "hirfuzz-diversity" in bare.stderr


def figures(*words: str) -> dict[str, Any]:
    result = CliRunner().invoke(program, [*words, "--json", "-"])
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_a_table_that_is_measured_in_one_go_prints_text_and_writes_json(tmp_path: Path) -> None:
    file = tmp_path / "new" / "figures.json"
    result = CliRunner().invoke(program, ["orthrus-optbench", "--graphs", "5", "--json", str(file)])
    assert result.exit_code == 0, result.output
    assert "recall 90% (paper 90%), missed [4]" in result.stdout
    assert json.loads(file.read_text("utf-8")) == figures("orthrus-optbench", "--graphs", "5")


def test_a_file_that_cannot_be_written_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = CliRunner().invoke(program, ["opera-cost", "--size", "20", "--json", str(tmp_path / "file" / "x.json")])
    assert result.exit_code == 2
    assert "choose another --json" in result.stderr


@pytest.mark.slow
def test_overheads_have_a_row_for_every_size() -> None:
    rows = json.loads(CliRunner().invoke(program, ["orthrus-overhead", "--graphs", "3", "--json", "-"]).stdout)
    assert [(row["operators"], row["form"]) for row in rows] == [
        (size, form) for size in (5, 10, 15) for form in ("all", "fusion", "algebraic")
    ]
    found = figures("polyjuice-overhead", "--graphs", "3", "--rounds", "1")
    assert set(found["measured"]) == {"5", "10", "15"}
    assert all(row["rewriting"] > 0 for row in found["measured"].values())


def test_the_cost_of_every_order() -> None:
    (row,) = figures("opera-cost", "--size", "60").values()
    assert list(row) == ["opera", "operators", "parameters", "random", "fast", "total", "additional", "first-come"]


@pytest.mark.slow
@pytest.mark.process
def test_passes_on_the_extreme_programs() -> None:
    found = figures("polyjuice-sequences", "--targets", "toy", "--graphs", "4", "--nodes", "5")
    assert found["toy"]["graphs"] == 4
    assert {"lcs", "edit"} <= set(found["toy"])
