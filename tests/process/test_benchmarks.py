"""The throughput benchmark runs a campaign and accounts for its CPU time."""

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
