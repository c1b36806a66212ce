"""The table of checks: campaigns are kept, what one check alone finds is counted, verdicts of readers too."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from evaluation.oracles.campaigns import OracleCampaign, OracleFigures, OracleSettings
from evaluation.program import program
from miscompile.base.errors import UsageError

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
    assert [levels["name"], resist["name"]] == ["levels", "resist"]
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


def test_first_is_who_met_a_signature_no_later_than_any_other() -> None:
    def seen(name: str, after: dict[str, float]) -> OracleCampaign:
        return replace(campaign(name, set(after), set()), seen_after=after)

    campaigns = (seen("motifs", {"a": 1.0, "b": 5.0}), seen("mined", {"b": 2.0, "c": 9.0}), seen("sweep", {"c": 9.0}))
    settings = OracleSettings(Path(), ("toy",), ("levels",), 1.0, 0, 1, techniques=("motifs", "mined", "sweep"))
    figures = OracleFigures(settings, campaigns)
    assert [figures.first(one) for one in campaigns] == [{"a"}, {"b", "c"}, {"c"}]


def test_a_technique_is_its_producer_with_all_checks() -> None:
    settings = OracleSettings(Path(), ("toy",), ("levels", "exact"), 1.0, 0, 1, techniques=("motifs",))
    check, checks, producer, spec = settings.words("motifs")
    assert (check, checks, producer) == ("--check", "levels,exact", "--producer")
    assert spec.startswith("strict{motifs=")
    with pytest.raises(UsageError, match="there is no technique 'dreams'; there are: everyday"):
        settings.words("dreams")
