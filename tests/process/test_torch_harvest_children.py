"""Child processes of a harvest: however one ends, what it had written is kept, and nothing that it started lives on."""

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from miscompile.harvest.libraries.children import Child, Harvested, run_child, run_on
from miscompile.instances.code import encoded
from miscompile.instances.instance import Instance

pytestmark = pytest.mark.process

ONE = Instance("torch", "torch.add", "function", (1, 2))

BEGIN = f"""
import os, subprocess, sys, time
file = open("instances.jsonl", "ab", buffering=0)
file.write(b'{{"instance": ' + {encoded(ONE)!r} + b'}}\\n')
file.write(b'{{"left": {{"a Generator": 2}}}}\\n')
print("first", flush=True)
"""
RAN = """file.write(b'{"ran": "test_it", "outcome": "passed"}\\n')\n"""
END = """file.write(b'{"exit": 0}\\n')\n"""


def run(tmp_path: Path, text: str, seconds: float = 60.0, hear: Callable[[str], None] | None = None) -> Harvested:
    (tmp_path / "child_of_a_harvest.py").write_text(text)
    harvested, out = Harvested(), tmp_path / "out"
    out.mkdir()
    run_child(Child("child_of_a_harvest", (), out, seconds, out, tmp_path), harvested, "it", hear)
    return harvested


def test_one_that_ends(tmp_path: Path) -> None:
    heard: list[str] = []
    harvested = run(tmp_path, f"{BEGIN}{RAN}{END}print('second'); print('half', end='')", hear=heard.append)
    assert harvested.instances == [ONE]
    assert harvested.left == {"a Generator": 2}
    assert (harvested.tests, harvested.files) == ({"passed": 1}, {"ran": 1})
    assert harvested.notes == []
    assert heard == ["first", "second"]


@pytest.mark.parametrize(
    ("text", "ending", "note"),
    [
        (f"{BEGIN}{END}", "empty", "it ran no test: first"),
        (f"{BEGIN}{RAN}file.write(b'{{\"inst')\nraise ValueError('broken')", "died", "it died: ValueError: broken"),
        (f"{BEGIN}{RAN}sys.stdout.flush(); os.abort()", "died", "it died: first"),
    ],
)
def test_one_that_does_not_come_to_its_end(tmp_path: Path, text: str, ending: str, note: str) -> None:
    harvested = run(tmp_path, text)
    assert harvested.files == {ending: 1}
    assert harvested.notes == [note]
    assert harvested.instances == [ONE]


@pytest.mark.slow
def test_one_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    sleeper = "import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
    text = f"{BEGIN}{sleeper}open('pid', 'w').write(str(p.pid))\n{RAN}time.sleep(600)"
    harvested = run(tmp_path, text, seconds=5.0)
    assert harvested.files == {"time": 1}
    assert harvested.notes == ["it ran out of 5 s"]
    assert harvested.instances == [ONE]
    assert gone(int((tmp_path / "out" / "pid").read_text()))


def test_an_interruption_ends_it_and_keeps_what_was_found(tmp_path: Path) -> None:
    def interrupt(line: str) -> None:
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()

    harvested = run(tmp_path, f"{BEGIN}{RAN}time.sleep(600)", hear=interrupt)
    assert harvested.stopped
    assert harvested.files == {"stopped": 1}
    assert harvested.instances == [ONE]


def gone(pid: int) -> bool:
    """Wait until a process has died; its new parent may be slow to bury it."""
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


TASKS = """
import os, sys
file = open(sys.argv[1] + "/instances.jsonl", "ab", buffering=0)
for task in range(int(sys.argv[2]), 5):
    print(f'{{"begin": {task}}}', flush=True)
    if str(task) in sys.argv[3]:
        os.abort()
    file.write(b'{"ran": "%d", "outcome": "passed"}\\n' % task)
file.write(b'{"exit": 0}\\n')
"""


@pytest.mark.parametrize(
    ("deadly", "most", "files", "passed", "begun", "folders"),
    [
        ("none", 9, {"ran": 1}, 5, [1, 2, 3, 4, 5], ["00000"]),
        ("13", 9, {"died": 2, "ran": 1}, 3, [1, 2, 3, 4, 5], ["00000", "00002", "00004"]),
        ("13", 2, {"died": 2}, 2, [1, 2, 3, 4], ["00000", "00002"]),
    ],
)
def test_the_next_child_goes_on_behind_the_task_at_which_one_died(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deadly: str, most: int, files: dict[str, int], passed: int,
    begun: list[int], folders: list[str],
) -> None:  # fmt: skip
    (tmp_path / "tasks_of_a_harvest.py").write_text(TASKS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    harvested, heard = Harvested(), list[int]()

    def words(out: Path, first: int) -> tuple[str, ...]:
        return str(out), str(first), deadly

    made = run_on("tasks_of_a_harvest", words, 60.0, harvested, heard.append, most=most, name="tasks from {}")
    assert [out.name for out in made] == folders
    assert harvested.files == files
    assert harvested.tests == {"passed": passed}
    assert heard == begun
    assert [note.partition(" died")[0] for note in harvested.notes] == ["tasks from 0", "tasks from 2"][
        : files.get("died", 0)
    ]
