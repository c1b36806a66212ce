"""Scripts in forks of an interpreter end as they do in a fresh process, and count only when they show the bug."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from miscompile.triage.confirm import ScriptForks, confirm, confirmed, run_script, shows_once

pytestmark = pytest.mark.process


@pytest.fixture
def forks() -> Iterator[ScriptForks]:
    with ScriptForks() as opened:
        yield opened


def written(folder: Path, text: str) -> Path:
    path = folder / "script.py"
    path.write_text(text, "utf-8")
    return path


@pytest.mark.parametrize(
    "text",
    [
        "print('BUG: here')\nraise SystemExit(1)",
        "import sys\nprint('fine', file=sys.stderr)",
        "import sys\nsys.exit('told')",
        "import sys\nsys.exit(300)",
        "raise ValueError('x')",
        "import os\nprint('DIES: now', flush=True)\nos.kill(os.getpid(), 11)",
        "import no_such_module\nprint('BUG: here')",
        "this is no Python",
        "import sys\nprint(sys.argv[1:], __name__, sys.stdin.read(), sys.flags.isolated)",
    ],
)
def test_a_fork_ends_as_a_fresh_process_does(text: str, tmp_path: Path, forks: ScriptForks) -> None:
    path = written(tmp_path, text)
    forked, fresh = forks.run(path, None, 30), run_script(path, None, 30)
    assert forked is not None
    assert (forked.status, forked.code, forked.stdout) == (fresh.status, fresh.code, fresh.stdout)
    assert forked.stderr.splitlines()[-1:] == fresh.stderr.splitlines()[-1:]
    assert forks.cpu_seconds > 0


def printed(forks: ScriptForks, path: Path) -> str:
    found = forks.run(path, None, 30)
    assert found is not None
    return found.stdout


def test_only_leading_imports_are_done_before_the_fork(
    tmp_path: Path, forks: ScriptForks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEEN", "outside")
    (tmp_path / "later.py").write_text("import os\nprocess, seen = os.getpid(), os.environ['SEEN']", "utf-8")
    leading = "import colorsys, os, sys\n"
    rest = (
        "sys.path.insert(0, os.path.dirname(__file__))\nimport later\nprint(later.process == os.getpid(), later.seen)"
    )
    assert printed(forks, written(tmp_path, f"{leading}os.environ['SEEN'] = 'inside'\n{rest}")) == "True inside\n"
    assert printed(forks, written(tmp_path, f"{leading}{rest}")) == "True outside\n"
    loaded = "import sys\nprint('colorsys' in sys.modules, 'later' in sys.modules)"
    assert printed(forks, written(tmp_path, loaded)) == "True False\n"


def test_a_script_that_hangs_is_killed_with_what_it_has_started(tmp_path: Path, forks: ScriptForks) -> None:
    text = "import subprocess\nprint(subprocess.Popen(['sleep', '300']).pid, flush=True)\nwhile True: pass"
    found = forks.run(written(tmp_path, text), None, 1.0)
    assert found is not None
    assert (found.status, found.code) == ("broken", None)
    end = time.monotonic() + 10
    while psutil.pid_exists(int(found.stdout)) and psutil.Process(int(found.stdout)).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_script_that_kills_its_interpreter_is_told_and_the_next_one_runs(tmp_path: Path, forks: ScriptForks) -> None:
    kill = f"import os\nos.kill(os.getppid(), {signal.SIGKILL:d})"
    assert forks.run(written(tmp_path, kill), None, 30) is None
    again = forks.run(written(tmp_path, "print('BUG: x')\nraise SystemExit(1)"), None, 30)
    assert again is not None
    assert again.status == "shows"


def test_the_last_two_runs_of_a_confirmation_are_fresh_processes(tmp_path: Path, forks: ScriptForks) -> None:
    path = written(tmp_path, "import os\nprint('BUG:', os.getppid())\nraise SystemExit(1)")
    results = confirm(path, forks=forks)
    parents = [int(result.stdout.split()[-1]) for result in results]
    assert confirmed(results)
    assert len(parents) == 3
    assert parents[0] != os.getpid()
    assert parents[1:] == [os.getpid()] * 2
    assert shows_once(path, None, 30, forks)


def test_fresh_processes_decide_when_a_fork_does_not_show_the_bug(tmp_path: Path, forks: ScriptForks) -> None:
    text = f"import os\nif os.getppid() != {os.getpid()}: raise SystemExit(0)\nprint('BUG: x')\nraise SystemExit(1)"
    path = written(tmp_path, text)
    assert [result.status for result in confirm(path, forks=forks)] == ["shows"] * 3
    assert shows_once(path, None, 30, forks)
    absent = written(tmp_path, "print('nothing')")
    assert [result.status for result in confirm(absent, forks=forks)] == ["absent"]
    assert not shows_once(absent, None, 30, forks)
