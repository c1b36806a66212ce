"""A scheduled campaign in processes: what it writes about its arms, and that a plan file repeats it."""

import json
from pathlib import Path

import pytest
from campaigns import Start

from miscompile.engine.arms import arms_of
from miscompile.engine.plan import Plan

pytestmark = pytest.mark.process

TARGET = "toy{bugs=sub_commutes+checked_gather+rank0_key_error}"


@pytest.mark.slow  # a campaign of many arms
def test_arms_share_the_time_and_get_the_credit(tmp_path: Path, start: Start) -> None:
    """The scheduler sends weights while the campaign runs, because it is bounded by time."""
    out = tmp_path / "out"
    code, stdout, stderr = start(out, TARGET, "--time", "20", "--workers", "1", "--seed", "3", "--json").end(240)
    assert code == 1, stderr
    summary = json.loads((out / "summary.json").read_text())
    assert json.loads(stdout) == summary
    arms = {arm["name"]: arm for arm in summary["arms"]}
    assert arms.keys() <= {arm.name for arm in arms_of(Plan(TARGET, schedule=True))}
    assert sum(arm["tests"] for arm in arms.values()) == summary["tests"]
    assert sum(arm["share"] for arm in arms.values()) == pytest.approx(1, abs=0.01)
    confirmed = [finding for finding in summary["findings"] if finding["status"] == "confirmed"]
    assert 1 <= sum(arm["confirmed"] for arm in arms.values()) <= len(confirmed)
    assert sum(arm["new_signatures"] for arm in arms.values()) >= len(confirmed)


@pytest.mark.slow  # two campaigns
def test_a_plan_file_with_a_number_of_tests_repeats_itself(tmp_path: Path, start: Start) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(f'targets = "{TARGET}"\ntests = 60\nseed = 11\nworkers = 1\ncheck = ["levels", "exact"]\n')
    found = []
    for name in ("one", "two"):
        code, stdout, stderr = start(tmp_path / name, "--plan", str(plan), "--json").end(240)
        assert code in (0, 1), stderr
        summary = json.loads(stdout)
        assert summary["tests"] == 60
        tests = {arm["name"]: (arm["tests"], arm["violations"], arm["new_pass_pairs"]) for arm in summary["arms"]}
        found.append((tests, {finding["signature"] for finding in summary["findings"]}))
    assert found[0] == found[1]
