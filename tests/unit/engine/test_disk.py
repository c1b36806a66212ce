"""The size of a campaign's folder, and the shortening of logs that other processes append to."""

from pathlib import Path

from miscompile.engine.disk import shorten, size_of


def test_the_size_is_that_of_all_files_below(tmp_path: Path) -> None:
    assert size_of(tmp_path) == 0
    (tmp_path / "a").write_bytes(b"x" * 100_000)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "c").write_bytes(b"x" * 50_000)
    (tmp_path / "d").symlink_to(tmp_path / "nothing")
    assert 150_000 <= size_of(tmp_path) < 200_000
    assert size_of(tmp_path / "none") == 0


def test_a_long_log_keeps_its_last_lines_and_can_be_appended_to(tmp_path: Path) -> None:
    log = tmp_path / "lanes.log"
    with log.open("ab", buffering=0) as child:
        for number in range(2000):
            child.write(b"line %d\n" % number)
        shorten(log, 4000)
        child.write(b"after\n")
    lines = log.read_text().splitlines()
    assert lines[0] == "(earlier lines were removed)"
    assert lines[-2:] == ["line 1999", "after"]
    assert all(line.startswith("line ") for line in lines[1:-1])
    assert 800 < log.stat().st_size < 1100


def test_a_short_log_and_an_absent_one_are_left_alone(tmp_path: Path) -> None:
    log = tmp_path / "lanes.log"
    log.write_text("all\n")
    shorten(log, 4000)
    shorten(tmp_path / "none", 4000)
    assert log.read_text() == "all\n"
