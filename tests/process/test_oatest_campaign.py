"""Campaigns that put patterns into seeds: bugs are found, pass activity is counted, wrong libraries are refused."""

import json
import signal
import subprocess
from pathlib import Path

import pytest
from campaigns import COMMAND, Start

from miscompile.findings import folder
from miscompile.findings.store import Store

pytestmark = pytest.mark.process

TARGET = "toy{bugs=relu_clip_missing_min+fusion_drops_inner_output+softmax_axis+where_constant_no_expand}"
WORDS = ("--preset", "oatest", "--tests", "120", "--workers", "1", "--opset", "21")


def run(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([*COMMAND, *words], capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.slow
def test_a_campaign_finds_planted_bugs_and_counts_what_fired(tmp_path: Path, start: Start) -> None:
    out = tmp_path / "out"
    code, _, stderr = start(out, TARGET, *WORDS, "--seed", "1").end(300)
    assert code == 1, stderr
    stored = [folder.load(out, identifier) for identifier in folder.identifiers(out)]
    recipes = [(one.original or one.finding.case).recipe for one in stored]
    assert all(recipe["motifs"] and recipe["producer"].startswith("oatest{") for recipe in recipes)
    with Store.open(out, create=False) as store:
        counted = {(kind, one): count for kind, _, one, _, count in store.pass_activity()}
    assert counted["programs", ""] > 5
    assert any(kind == "fired" for kind, _ in counted)
    shown = run("passes", "--out", str(out), "--json")
    assert shown.returncode == 0, shown.stderr
    (table,) = json.loads(shown.stdout)
    assert table["programs"] == counted["programs", ""]
    fired = {row["name"]: row["fired"] for row in table["passes"] if row["fired"]}
    assert fired == {one: count for (kind, one), count in counted.items() if kind == "fired"}


@pytest.mark.slow
def test_passes_can_be_measured_without_a_campaign() -> None:
    shown = run("passes", "toy", "--programs", "40", "--json")
    assert shown.returncode == 0, shown.stderr
    (table,) = json.loads(shown.stdout)
    assert table["programs"] > 30
    assert sum(row["fired"] > 0 for row in table["passes"]) > 5
    assert any(row["combined"] for row in table["passes"])


@pytest.mark.slow
def test_an_interruption_shows_what_was_counted() -> None:
    words = [*COMMAND, "passes", "toy", "--time", "10m"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        told = b""
        while b"programs" not in told:
            told += process.stderr.read(1)
        process.send_signal(signal.SIGINT)
        shown, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert shown.startswith(b"toy: ")
    assert b"programs watched" in shown.splitlines()[0]


@pytest.mark.slow
def test_no_more_programs_are_measured_than_asked_for() -> None:
    shown = run("passes", "toy", "--programs", "3")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith("toy: 3 programs watched\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("passes",), "name a TARGET"),
        (("passes", "toy", "--time", "0"), "give --time more than 0"),
        (("passes", "toy", "--out", "."), "name a TARGET"),
        (("fuzz", "toy", "--preset", "oatest", "--patterns", "nowhere.patterns"), "does not exist"),
        (("fuzz", "toy", "--producer", "oatest{nodes=0}"), "at least 1"),
        (("fuzz", "toy", "--producer", "oatest{shipped=no}"), "file of patterns is needed"),
    ],
)
def test_what_cannot_be_meant_is_said_in_one_line(words: tuple[str, ...], said: str) -> None:
    done = run(*words)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.slow
def test_a_broken_library_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    broken = tmp_path / "broken.patterns"
    broken.write_text("no patterns at all")
    done = run("fuzz", "toy", "--patterns", str(broken), "--preset", "oatest", "--out", str(tmp_path / "out"))
    assert done.returncode == 2, done.stderr
    assert "broken.patterns" in done.stderr
