"""The throughput benchmark runs a campaign and accounts for its CPU time."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "throughput.py"
PARTS = {"generate", "emit", "transfer", "compare", "compiler", "other"}

pytestmark = [pytest.mark.process, pytest.mark.slow]  # a campaign


@pytest.fixture(scope="module")
def figures() -> dict[str, Any]:
    arguments = ["--target", "toy", "--seconds", "3", "--workers", "1", "--nodes", "5", "--json"]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_it_measures_the_campaign_it_was_asked_for(figures: dict[str, Any]) -> None:
    assert (figures["target"], figures["nodes"], figures["lanes"]) == ("toy", 5, 1)
    assert 3.0 <= figures["seconds"] < 10.0
    assert figures["tests"] == figures["counters"]["tests"] > 10
    assert figures["tests_per_second"] == pytest.approx(figures["tests"] / figures["seconds"])
    assert figures["nnsmith"] is None
    assert figures["ratio"] is None


def test_every_part_has_its_share(figures: dict[str, Any]) -> None:
    shares = figures["shares"]
    assert set(shares) == set(figures["us"]) == PARTS
    assert sum(shares.values()) == pytest.approx(1.0)
    assert all(shares[part] > 0.001 for part in PARTS - {"other"}), shares
    assert shares["other"] > -0.05, "some CPU time was counted twice"


def test_the_parts_are_cpu_time_that_the_machine_has(figures: dict[str, Any]) -> None:
    spent = sum(figures["cpu_seconds"].values())
    assert spent <= 1.1 * figures["seconds"] * len(os.sched_getaffinity(0))
    assert sum(figures["us"].values()) * figures["tests"] / 1e6 == pytest.approx(spent, rel=0.01)
    assert figures["counters"]["compiler_cpu_us"] / 1e6 <= figures["cpu_seconds"]["workers"] + 0.1
    assert figures["counters"]["generate_us"] / 1e6 <= figures["cpu_seconds"]["lanes"] + 0.3


def test_the_limit_is_what_builds_and_runs_cost() -> None:
    arguments = ["--target", "toy", "--tests", "60", "--nodes", "5", "--json"]
    script = [sys.executable, str(SCRIPT.with_name("limit.py")), *arguments]
    done = subprocess.run(script, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["tests"], found["lost"]) == (60, 0)
    assert {"off", "full"} <= found["costs"].keys()
    assert sum(cost["runs"] for cost in found["costs"].values()) >= 120
    spent = sum(cost["build_us"] + cost["run_us"] for cost in found["costs"].values())
    assert spent / 60 == pytest.approx(found["us_per_test"])
    assert found["tests_per_second"] == pytest.approx(1e6 / found["us_per_test"])


def test_two_commits_are_compared_by_medians_and_ratios_of_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    compare = importlib.import_module("compare")
    old = [{"a": 1.0, "b": 0.0}, {"a": 2.0, "b": 1.0}, {"a": 4.0, "b": 1.0}]
    new = [{"a": 2.0, "b": 1.0}, {"a": 2.0, "b": 1.0}, {"a": 2.0, "b": 1.0}]
    (row,) = compare.rows(old, new)
    assert (row.measure, row.old, row.new, row.ratio, row.lowest, row.highest) == ("a", 2.0, 2.0, 1.0, 0.5, 2.0)
