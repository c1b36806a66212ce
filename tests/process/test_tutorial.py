"""The commands of the tutorial and of the README work: they are run on something small, and their exit codes compared.

Every command line of the tutorial is in one of the tables here, so that a new one cannot be forgotten. Campaigns run on
the toy compiler, or make a few tests of ONNX Runtime. The last section lists commands with what they are for. The cheap
ones of them are run; of the others the options are parsed.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from miscompile.cli.main import VERBS, program

pytestmark = [pytest.mark.process, pytest.mark.slow]

DOCS = Path(__file__).parents[2] / "docs"
README = DOCS.parent / "README.md"
TOY, ONE = "'toy{bugs=all}'", "'toy{bugs=sub_commutes}'"
SMALL = "--tests 20 --check levels --workers 1"

STEPS: dict[str, tuple[str, set[int]]] = {
    "fuzz 'toy{bugs=all}' --time 1m --out toy-out": (
        f"fuzz {TOY} --time 1m {SMALL} --triage-time 1s --seed 1 --out toy-out",
        {0, 1},
    ),
    "fuzz onnxruntime --time 1h --out ort-out": (
        f"fuzz {ONE} {SMALL} --ops Sub,Add,Mul --nodes 4 --seed 5 --out ort-out",
        {1},
    ),
    "fuzz onnxruntime --ops Conv,Relu,Add,BatchNormalization --dtypes float32": (
        f"fuzz onnxruntime --ops Conv,Relu,Add,BatchNormalization --dtypes float32 {SMALL}",
        {0, 1},
    ),
    "fuzz onnxruntime --nodes 4 --max-rank 3 --motifs 0.5": (
        f"fuzz onnxruntime --nodes 4 --max-rank 3 --motifs 0.5 {SMALL}",
        {0, 1},
    ),
    "findings ort-out": ("findings ort-out", {1}),
    "findings ort-out wrong-0a1b2c3d4e": ("findings ort-out ID", {0}),
    "reduce ort-out ID": ("reduce ort-out ID", {0}),
    "bisect ort-out ID": ("bisect ort-out ID", {0}),
    "replay ort-out ID": ("replay ort-out ID", {1}),
    "repro ort-out wrong-0a1b2c3d4e": ("repro ort-out ID", {1}),
    "ready ort-out": ("ready ort-out", {0, 1}),
    "bugs link wrong-0a1b https://github.com/microsoft/onnxruntime/issues/1 --out ort-out": (
        "bugs link ID https://github.com/microsoft/onnxruntime/issues/1 --out ort-out",
        {0},
    ),
    "recheck ort-out --target onnxruntime==1.33.0": (f"recheck ort-out --target {ONE}", {1}),  # the bug is still there
    "bugs close wrong-0a1b --fixed-in 1.33.0 --out ort-out": ("bugs close ID --fixed-in 1.33.0 --out ort-out", {0}),
    "ci onnxruntime --baseline ledger.toml --update-baseline": (
        f"ci {ONE} {SMALL} --baseline ledger.toml --update-baseline",
        {0},
    ),
    "ci onnxruntime --baseline ledger.toml --junit junit.xml --sarif miscompile.sarif": (
        f"ci {ONE} {SMALL} --baseline ledger.toml --junit junit.xml --sarif miscompile.sarif",
        {0},
    ),
}
"""The commands of the tutorial before the list of all: what is run in the place of each, and its exit codes."""

CHEAP: dict[str, tuple[str, set[int]]] = {
    "targets": ("targets", {0}),
    "patterns": ("patterns", {0}),
    "rules": ("rules associative --trials 1 --graphs 1", {0}),
    "ready OUT": ("ready ort-out", {0, 1}),
    "bugs list": ("bugs list --out ort-out", {0}),
    "report OUT": ("report ort-out", {0}),
    "report OUT... --out site": ("report ort-out toy-out --out site", {0}),
}
"""The commands of the last section that are run as well."""


def commands(page: Path) -> Iterator[str]:
    """Yield the command lines of the indented blocks of a page, without what is said about them."""
    for line in page.read_text("utf-8").splitlines():
        found = re.match(r" {4}(?:.* && )?miscompile (.*)", line)
        if found:
            yield re.split(r"\s{2,}", found[1])[0].strip()


def tutorial() -> tuple[list[str], list[str]]:
    """Return the commands of the steps, and those of the list of all commands."""
    steps, _, rest = (DOCS / "tutorial.md").read_text("utf-8").partition("\n## All commands\n")
    assert rest
    found = list(commands(DOCS / "tutorial.md"))
    number = len(re.findall(r"^ {4}miscompile ", steps, re.MULTILINE))
    return found[:number], found[number:]


def run(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "miscompile", *shlex.split(line)]
    env = {**os.environ, "COLUMNS": "120"}
    return subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, check=False)


def parse(line: str) -> None:
    """Parse the words of a command without running it; an option that does not exist raises UsageError."""
    verb, *words = shlex.split(line)
    context = click.Context(program)
    command = program.get_command(context, verb)
    assert command is not None, f"there is no verb {verb}"
    while isinstance(command, click.Group) and words and words[0] in command.commands:
        command = command.commands[words.pop(0)]
    command.make_parser(click.Context(command, parent=context)).parse_args(words)


def test_every_command_of_the_tutorial_is_here() -> None:
    steps, others = tutorial()
    assert steps == list(STEPS), "the table has the commands in the order of the tutorial"
    assert set(CHEAP) <= set(others)
    assert {line.split()[0] for line in steps + others} >= set(VERBS) - {"help", "completion", "plan"}


@pytest.mark.parametrize("line", [*tutorial()[1], *commands(README)])
def test_the_options_of_a_listed_command_exist(line: str) -> None:
    parse(line)


def test_an_option_that_does_not_exist_is_seen() -> None:
    with pytest.raises(click.UsageError, match="nonsense"):
        parse("fuzz onnxruntime --nonsense")


def test_the_tutorial_works_step_by_step(tmp_path: Path) -> None:
    identifier = ""
    for line, (small, codes) in (STEPS | CHEAP).items():
        done = run(tmp_path, re.sub(r"\bID\b", identifier, small))
        assert done.returncode in codes, f"miscompile {line}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        if line.startswith("fuzz onnxruntime --time"):
            [folder] = (tmp_path / "ort-out" / "findings").glob("wrong-*")
            identifier = folder.name
    for name in ("junit.xml", "miscompile.sarif", "ledger.toml", "site/index.html"):
        assert (tmp_path / name).read_text("utf-8").strip()
    assert {"issue.md", "repro.py", "model.onnx", "upstream_test.py"} <= {path.name for path in folder.iterdir()}


def test_the_readme_s_first_command_works(tmp_path: Path) -> None:
    assert list(commands(README)) == ["fuzz onnxruntime"]
    done = run(tmp_path, f"fuzz onnxruntime {SMALL}")
    assert done.returncode in {0, 1}, done.stderr
    assert (tmp_path / "miscompile-out" / "summary.json").is_file()
