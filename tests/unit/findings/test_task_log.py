"""The finished tasks of a campaign: every task falls to one lane, and none that an earlier session finished."""

from pathlib import Path

import pytest

from miscompile.base.errors import StoreError
from miscompile.findings.tasks import MADE, NOT_DRAWN, TaskCounts, TaskLog

TASKS = tuple(f"Add Op{number} 0" for number in range(10))


def a_log(tmp_path: Path) -> TaskLog:
    log = TaskLog(tmp_path / "tasks")
    log.expect(TASKS)
    return log


def test_the_lanes_of_a_session_divide_all_tasks(tmp_path: Path) -> None:
    log = a_log(tmp_path)
    shares = [log.share(TASKS, 1, lane, 3) for lane in range(3)]
    assert sorted(name for share in shares for name in share) == sorted(TASKS)


def test_another_session_divides_what_is_left_whatever_its_number_of_lanes(tmp_path: Path) -> None:
    log = a_log(tmp_path)
    shares = [log.share(TASKS, 1, lane, 3) for lane in range(3)]
    log.note([(MADE, name) for name in shares[0]], 1, 0)
    log.note([(NOT_DRAWN, shares[2][0])], 1, 2)
    done = {*shares[0], shares[2][0]}
    later = [log.share(TASKS, 2, lane, 2) for lane in range(2)]
    assert sorted(name for share in later for name in share) == sorted(set(TASKS) - done)
    assert log.left(TASKS) == tuple(name for name in TASKS if name not in done)
    assert log.counts() == TaskCounts(len(TASKS), len(shares[0]), 1)


def test_what_a_lane_has_finished_does_not_move_the_shares_of_its_session(tmp_path: Path) -> None:
    log = a_log(tmp_path)
    before = [log.share(TASKS, 1, lane, 2) for lane in range(2)]
    log.note([(MADE, before[0][0])], 1, 0)
    assert [log.share(TASKS, 1, lane, 2) for lane in range(2)] == before


def test_a_line_that_a_killed_process_left_does_not_count(tmp_path: Path) -> None:
    log = a_log(tmp_path)
    (log.folder / "1-0").write_text(f"made {TASKS[0]}\nmade {TASKS[1]}")
    assert log.share(TASKS, 2, 0, 1) == TASKS[1:]


def test_counts_of_campaigns_add_up_and_a_folder_without_tasks_has_none(tmp_path: Path) -> None:
    assert TaskLog(tmp_path / "none").counts() is None
    assert TaskCounts(3, 1, 1) + TaskCounts(4, 4, 0) == TaskCounts(7, 5, 1)
    assert TaskCounts(3, 1, 1).left == 1


def test_tasks_of_a_session_with_other_options_count_as_tasks(tmp_path: Path) -> None:
    log = a_log(tmp_path)
    log.note([(MADE, name) for name in TASKS[:4]], 1, 0)
    log.expect((*TASKS[3:6], "Mul Mul 0"))
    assert log.counts() == TaskCounts(7, 4, 0)
    assert len(log.left((*TASKS[3:6], "Mul Mul 0"))) == TaskCounts(7, 4, 0).left


def test_a_damaged_total_and_a_lost_folder_are_store_errors(tmp_path: Path) -> None:
    log = a_log(tmp_path)
    (log.folder / "total").write_text("many")
    with pytest.raises(StoreError, match="cannot read"):
        log.counts()
    (log.folder / "1-0").mkdir()
    with pytest.raises(StoreError, match="cannot read"):
        log.left(TASKS)
    with pytest.raises(StoreError, match="finished tasks"):
        TaskLog(tmp_path / "deleted" / "tasks").note([(MADE, TASKS[0])], 1, 0)
