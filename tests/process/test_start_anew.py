"""A target may ask for variables that its compiler's process must be started with."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

PREPARE = """
def wanted():
    return {"MISCOMPILE_PROBE": "here"}

def nothing():
    return {}
"""
PROGRAM = """
import os, sys
from miscompile.execution.zygote import start_anew
print("begin", os.getpid(), os.environ.get("MISCOMPILE_PROBE"))
start_anew({"prepare": sys.argv[1]})
print("end", os.getpid(), os.environ.get("MISCOMPILE_PROBE"))
"""


def lines(tmp_path: Path, prepare: str) -> list[list[str]]:
    (tmp_path / "probe_prepare.py").write_text(PREPARE)
    (tmp_path / "program.py").write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    words = [sys.executable, str(tmp_path / "program.py"), prepare]
    text = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60, env=environment).stdout
    return [line.split() for line in text.splitlines()]


def test_a_process_starts_itself_anew_with_the_variables(tmp_path: Path) -> None:
    first, second, last = lines(tmp_path, "probe_prepare:wanted")
    assert (first[0], first[2]) == ("begin", "None")
    assert (second[0], second[2]) == ("begin", "here")
    assert (last[0], last[2]) == ("end", "here")
    assert first[1] == second[1] == last[1], "the process id stays, so that parents can wait for it"


@pytest.mark.parametrize("prepare", ["probe_prepare:nothing", ""])
def test_a_process_that_needs_nothing_goes_on(tmp_path: Path, prepare: str) -> None:
    assert [line[0] for line in lines(tmp_path, prepare)] == ["begin", "end"]
