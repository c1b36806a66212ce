"""Whatever is killed in mid-campaign, what was found stays found, the campaign can go on, and no process is left."""

import os
import pty
import resource
import shutil
import signal
from pathlib import Path

import psutil
import pytest
from campaigns import Campaign, Start, all_gone, counters

from miscompile.findings import folder
from miscompile.findings.store import Store
from miscompile.triage.attribution import MOST_UNATTRIBUTED

pytestmark = pytest.mark.process

TARGET = "toy{bugs=sub_commutes+checked_gather+sub_self_dtype+rank0_key_error}"
"""Bugs that show within a few tests and are triaged within seconds."""


def running(out: Path, start: Start, *words: str) -> Campaign:
    """A campaign that has found something, and would go on for long; longer ones prepare library tests first."""
    campaign = start(out, TARGET, "--seed", "1", "--workers", "2", *(words or ("--time", "1500")))
    campaign.until(lambda: bool(folder.identifiers(out)))
    campaign.until(lambda: campaign.tests() > 0)
    return campaign


def killed(worker: psutil.Process) -> bool:
    """Kill a worker; False when it has ended by itself, as those that confirm a violation do."""
    try:
        worker.kill()
    except psutil.NoSuchProcess:
        return False
    return True


def whole(out: Path) -> dict[str, str]:
    """Load every finding; return the status of each, by identifier."""
    with Store.open(out, create=False) as store:
        records: dict[str, str] = {record.identifier: record.status for record in store.findings()}
        for identifier in folder.identifiers(out):
            assert store.load(identifier).finding.case.program.payload
    return records


@pytest.mark.slow  # the pool tests see a replaced worker in a second
def test_a_killed_worker_is_replaced(tmp_path: Path, start: Start) -> None:
    campaign = running(tmp_path, start, "--tests", "500")
    family = campaign.family
    campaign.until(lambda: any(killed(worker) for worker in campaign.workers))
    code, _, stderr = campaign.end()
    assert code == 1, stderr
    assert counters(tmp_path)["tests"] == 500
    all_gone(family)


@pytest.mark.slow
def test_a_killed_lane_is_restarted_where_it_had_got_to(tmp_path: Path, start: Start) -> None:
    campaign = running(tmp_path, start, "--tests", "700")
    family = campaign.family
    campaign.lanes[0].kill()
    code, _, stderr = campaign.end()
    assert code == 1, stderr
    assert "died (status -9) and was restarted" in stderr
    assert 650 <= counters(tmp_path)["tests"] <= 800  # what was ahead of the last report is done again
    all_gone(family)


@pytest.mark.slow  # two campaigns
def test_a_killed_coordinator_leaves_its_findings_and_no_processes(tmp_path: Path, start: Start) -> None:
    campaign = running(tmp_path, start)
    family = campaign.family
    campaign.process.kill()
    campaign.end()
    all_gone(family)
    before, tests = whole_after_recovery(tmp_path), counters(tmp_path)["tests"]
    assert before
    resumed = start(tmp_path, TARGET, "--resume", "--tests", "50", "--workers", "1")
    code, _, stderr = resumed.end(150)
    assert code == 1, stderr
    assert counters(tmp_path)["tests"] == tests + 50
    after = whole(tmp_path)
    assert "pending" not in after.values()
    with Store.open(tmp_path, create=False) as store:
        assert [ending for _, _, _, ending in store.sessions()] == ["", "done"]
        duplicates = sum(record.duplicates for record in store.findings())
    assert len(before) <= len(after) + duplicates


def whole_after_recovery(out: Path) -> dict[str, str]:
    """What a writer finds when it opens OUT again."""
    Store.open(out).close()
    return whole(out)


@pytest.mark.parametrize(
    "how", ["SIGINT", pytest.param("SIGTERM", marks=pytest.mark.slow), pytest.param("SIGHUP", marks=pytest.mark.slow)]
)
def test_an_interrupt_ends_the_campaign_and_keeps_everything(how: str, tmp_path: Path, start: Start) -> None:
    campaign = running(tmp_path, start)
    family = campaign.family
    if how == "SIGINT":
        os.killpg(campaign.process.pid, signal.SIGINT)  # as a terminal does
    else:
        campaign.process.send_signal(signal.Signals[how])
    code, stdout, stderr = campaign.end()
    all_gone(family)
    assert code == 1, stderr
    assert "continue with --resume" in stderr
    assert "Traceback" not in stderr
    assert "Traceback" not in (tmp_path / "lanes.log").read_text()
    assert (tmp_path / "summary.json").exists()
    assert stdout
    found = whole(tmp_path)
    assert set(folder.identifiers(tmp_path)) == set(found)
    with Store.open(tmp_path, create=False) as store:
        assert store.sessions()[-1][3] == "interrupted"


@pytest.mark.slow  # a campaign; the pool tests see each harm alone
def test_a_campaign_survives_what_harms_processes_and_reports_it(tmp_path: Path, start: Start) -> None:
    names = "segfault_tile+memory_expand+garbage_arg_max+sub_commutes"
    campaign = start(tmp_path, f"toy{{bugs={names}}}", "--tests", "120", "--seed", "4", "--workers", "1")
    code, stdout, stderr = campaign.end(150)
    assert code == 1, stderr
    with Store.open(tmp_path, create=False) as store:
        announced = {(one.kind, one.culprits) for one in store.findings() if one.status in ("confirmed", "non-default")}
        counted = store.counters()
    assert counted["tests"] == 120
    assert counted["deaths"] > 0
    assert {
        ("death", ("NoOpElimination",)),
        ("memory", ("ExpandElimination",)),
        ("wrong", ("OperandOrdering",)),
    } <= announced, stdout


@pytest.mark.slow  # hangs are waited for
def test_a_hang_ends_a_run_and_no_more(tmp_path: Path, start: Start) -> None:
    """The test then kills the coordinator, because a script that hangs takes minutes to confirm."""
    words = ("--tests", "120", "--seed", "1", "--workers", "1", "--producer", "strict")
    campaign = start(tmp_path, "toy{bugs=hang_concat_same}", *words, limit=0.4)
    campaign.until(lambda: bool(folder.identifiers(tmp_path)) and campaign.tests() == 120, seconds=180)
    family = campaign.family
    campaign.process.kill()
    all_gone(family)
    with Store.open(tmp_path) as store:
        found = [(record.kind, record.culprits, record.status) for record in store.findings()]
    assert set(found) == {("hang", (), "pending")}  # triage looks for the culprits
    assert len(found) <= MOST_UNATTRIBUTED
    assert counters(tmp_path)["timeouts"] > 0


@pytest.mark.slow
def test_an_honest_target_ends_with_exit_code_0(tmp_path: Path, start: Start) -> None:
    code, stdout, stderr = start(tmp_path, "toy", "--tests", "300", "--seed", "2", "--workers", "2").end()
    assert code == 0, stderr
    assert "Nothing found" in stdout
    assert folder.identifiers(tmp_path) == []


def test_a_place_that_cannot_be_written_is_a_usage_error(tmp_path: Path, start: Start) -> None:
    (tmp_path / "file").write_text("")
    code, _, stderr = start(tmp_path / "file" / "out", "toy", "--tests", "10").end()
    assert code == 2, stderr
    assert "Traceback" not in stderr
    assert len(stderr.strip().splitlines()) <= 2


def test_a_full_disk_is_a_failure_and_leaves_no_process(tmp_path: Path, start: Start) -> None:
    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))

    campaign = start(tmp_path / "out", TARGET, "--tests", "300", "--workers", "1", before=small_files)
    family = campaign.family
    code, _, stderr = campaign.end()
    assert code == 3, stderr
    assert "Traceback" not in stderr
    assert "make room" in stderr
    all_gone(family)


@pytest.mark.slow  # a campaign
def test_a_folder_that_is_deleted_ends_the_campaign_with_one_line(tmp_path: Path, start: Start) -> None:
    out = tmp_path / "out"
    campaign = running(out, start)
    family = campaign.family
    while out.exists():
        shutil.rmtree(out, ignore_errors=True)  # the campaign may write a file between the listing and the removal
    code, stdout, stderr = campaign.end()
    assert code == 3, stderr
    assert stdout == ""
    assert len([line for line in stderr.splitlines() if "error: " in line]) == 1, stderr
    assert "Traceback" not in stderr
    assert not out.exists()
    all_gone(family)


@pytest.mark.slow  # a campaign; SIGINT is tested by default
def test_a_closed_terminal_ends_the_campaign_and_keeps_everything(tmp_path: Path, start: Start) -> None:
    """The kernel sends SIGHUP and every further write to the terminal fails."""
    lead, terminal = pty.openpty()
    campaign = start(tmp_path, TARGET, "--seed", "1", "--workers", "1", "--time", "1500", terminal=terminal)
    os.close(terminal)
    campaign.until(lambda: campaign.tests() > 0 and bool(folder.identifiers(tmp_path)))
    family = campaign.family
    os.close(lead)
    campaign.process.send_signal(signal.SIGHUP)
    assert campaign.process.wait(60) == 1
    all_gone(family)
    assert set(folder.identifiers(tmp_path)) == set(whole(tmp_path))
    with Store.open(tmp_path, create=False) as store:
        assert store.sessions()[-1][3] == "interrupted"
    assert (tmp_path / "summary.json").exists()


def test_a_limit_of_memory_that_is_too_small_is_said(tmp_path: Path, start: Start) -> None:
    code, _, stderr = start(tmp_path / "out", "toy", "--tests", "10", "--limit-memory", "1M").end()
    assert code == 2, stderr
    assert "--limit-memory" in stderr.splitlines()[-1]
    assert "too small for toy" in stderr
    assert not (tmp_path / "out").exists()
