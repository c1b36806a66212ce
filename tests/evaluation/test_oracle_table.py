"""The table of checks: campaigns are kept, what one check alone finds is counted, verdicts of readers too."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from evaluation.oracles.campaigns import OracleCampaign, OracleFigures, OracleSettings
from evaluation.program import program

TARGET = "toy{bugs=survivable}"


def campaign(check: str, confirmed: set[str], unconfirmed: set[str], target: str = "toy") -> OracleCampaign:
    return OracleCampaign(target, check, 10, 1.0, frozenset(confirmed), frozenset(unconfirmed), 0, 0)


def test_alone_is_what_no_other_check_on_the_target_has_seen() -> None:
    campaigns = (
        campaign("levels", {"a", "b", "c", "d"}, set()),
        campaign("state", {"b"}, {"c"}),
        campaign("state", {"d"}, set(), "other"),
    )
    figures = OracleFigures(OracleSettings(Path(), ("toy", "other"), ("levels", "state"), 1.0, 0, 1), campaigns)
    assert [figures.alone(one) for one in campaigns] == [{"a", "d"}, set(), {"d"}]


def measured(folder: Path, *, code: int = 0) -> Any:
    words = [
        "--targets",
        TARGET,
        "--checks",
        "levels,resist",
        "--seconds",
        "600",
        "--tests",
        "60",
        "--workers",
        "1",
        "--json",
        "-",
    ]
    result = CliRunner().invoke(program, ["oracles", str(folder), *words, "--json", "-"])
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)["campaigns"] if not code else result.output


@pytest.mark.process
@pytest.mark.slow  # two campaigns
def test_campaigns_are_kept_and_read_again_with_their_verdicts(tmp_path: Path) -> None:
    levels, resist = measured(tmp_path)
    assert [levels["check"], resist["check"]] == ["levels", "resist"]
    assert levels["tests"] > 0
    assert levels["confirmed"], levels
    assert levels["unread"] >= len(levels["confirmed"])
    first = next(path for path in (tmp_path / TARGET / "levels" / "findings").iterdir() if _confirmed(path))
    (first / "verdict.toml").write_text('verdict = "false"\n', "utf-8")
    again, _ = measured(tmp_path)
    assert (again["tests"], again["false"], again["unread"]) == (levels["tests"], 1, levels["unread"] - 1)
    (first / "verdict.toml").write_text("verdict = \n", "utf-8")
    assert str(first) in measured(tmp_path, code=2).replace("\n", "")


def _confirmed(path: Path) -> bool:
    return path.is_dir() and json.loads((path / "finding.json").read_text("utf-8"))["status"] == "confirmed"
