"""Reports by name, those of other packages among them."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner, Result

from miscompile.base import plugins
from miscompile.base.plugins import Offer
from miscompile.cli.main import program
from miscompile.findings.store import Campaign, Store
from miscompile.reports.registry import Report


def call(*words: str | Path) -> Result:
    return CliRunner().invoke(program, [str(word) for word in words])


@pytest.fixture
def out(tmp_path: Path) -> Path:
    with Store.open(tmp_path) as store:
        store.begin(Campaign("toy", 7, {}, {}, 0.0))
    return tmp_path


def test_the_summary_is_written_again(out: Path) -> None:
    result = call("report", out, "summary", "issues")
    assert (result.exit_code, result.stdout) == (0, f"{out / 'summary.json'}\n")
    assert json.loads((out / "summary.json").read_text())["seed"] == 7


def test_another_packages_report_is_listed_and_written(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(store: Store, folder: Path) -> Sequence[Path]:
        campaign = store.campaign()
        assert campaign is not None
        (folder / "seed.txt").write_text(str(campaign.seed))
        return (folder / "seed.txt",)

    module = ModuleType("seed_report")
    module.__dict__["SEED"] = Report("seed", "the seed alone", write)
    monkeypatch.setitem(sys.modules, "seed_report", module)
    offers = (Offer("seed", "seed_report:SEED", "seed-report"), Offer("gone", "seed_report:GONE", "gone-report"))
    monkeypatch.setattr(plugins, "added", lambda group: offers if group == "miscompile.reports" else ())
    listed = call("report", out)
    assert listed.exit_code == 0
    assert "seed  the seed alone\n" in listed.stdout
    assert "the report 'gone' of the package gone-report is broken" in listed.stdout
    assert json.loads(call("report", out, "seed", "--json").stdout) == {"seed": [str(out / "seed.txt")]}
    assert (out / "seed.txt").read_text() == "7"
    for name, says in (
        ("gone", "is broken"),
        ("none", "there is no report 'none'; there are: summary, issues, site, seed"),
    ):
        refused = call("report", out, name)
        assert refused.exit_code == 2
        assert says in refused.stderr
