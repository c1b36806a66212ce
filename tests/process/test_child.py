"""Children are heard to their end, and nothing that they have started outlives them."""

import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from miscompile.base.child import Conversation, attend, collect, start

pytestmark = pytest.mark.process

ECHO = ["sh", "-c", 'while read line; do echo "$line!"; done; exit 3']


def gone(pid: int, seconds: float = 5.0) -> bool:
    """Tell whether a process ends within `seconds`; one that nobody waits for counts as ended."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def test_what_a_child_prints_is_collected(tmp_path: Path) -> None:
    ended = collect(
        ["sh", "-c", "cat; pwd; echo $WORD >&2; exit 7"], given=b"in\n", folder=tmp_path, environment={"WORD": "w"}
    )
    assert (ended.status, ended.output(), ended.errors()) == (7, f"in\n{tmp_path}\n", "w\n")
    assert ended.output(3) == f"{tmp_path}\n"[-3:]


def test_a_child_without_input_reads_nothing() -> None:
    assert collect(["cat"], seconds=10).status == 0


def test_bytes_that_are_no_text_are_kept_and_replaced() -> None:
    ended = collect(["printf", r"a\377"])
    assert ended.stdout == b"a\xff"
    assert ended.output() == "a\ufffd"


def test_a_signal_is_a_negative_status() -> None:
    assert collect(["sh", "-c", "kill -SEGV $$"]).status == -signal.SIGSEGV


def test_time_that_is_over_leaves_what_was_printed_and_no_process() -> None:
    began = time.monotonic()
    ended = collect(["sh", "-c", "sleep 60 & echo $!; echo half >&2; wait"], seconds=1.0)
    assert ended.status is None
    assert ended.errors() == "half\n"
    assert gone(int(ended.stdout))
    assert 1.0 <= ended.seconds <= time.monotonic() - began < 30


def test_what_a_child_leaves_behind_is_killed() -> None:
    ended = collect(["sh", "-c", "sleep 60 >&- 2>&- & echo $!"])
    assert ended.status == 0
    assert gone(int(ended.stdout))


def test_a_command_that_does_not_exist_raises() -> None:
    with pytest.raises(FileNotFoundError):
        collect(["/no/such/program"])


def test_a_bound_child_dies_with_its_parent_and_another_does_not() -> None:
    code = (
        "import os; from miscompile.base.child import start\n"
        "print(*(start(['sleep', '60'], bound=bound).pid for bound in (True, False)), flush=True)\n"
        "os._exit(0)"
    )
    bound, free = map(int, collect([sys.executable, "-c", code]).output().split())
    assert gone(bound)
    assert not gone(free, 0.3)
    os.kill(free, signal.SIGKILL)


def test_a_child_that_writes_to_a_file_is_looked_at_until_its_time_is_over(tmp_path: Path) -> None:
    seen: list[str] = []
    log = tmp_path / "log"
    with log.open("wb") as out:
        process = start(["sh", "-c", "echo one; sleep 60"], stdout=out, stderr=out)
    assert attend(process, 1.0, 0.2, lambda: seen.append(log.read_text())) is None
    assert seen[-1] == "one\n"
    assert len(seen) >= 3
    assert process.poll() == -signal.SIGKILL
    assert attend(start(["sh", "-c", "exit 4"])) == 4
    assert attend(start(["sh", "-c", "exit 4"]), 30.0) == 4


def test_a_conversation_goes_line_by_line_to_its_end() -> None:
    child = Conversation(ECHO)
    child.write(b"one\ntwo\n")
    assert child.read_line(10) == b"one!"
    assert child.read_line(10) == b"two!"
    assert child.read_line(0.1) is None
    assert child.end() == 3
    assert child.end() == 3


def test_lines_cut_in_pieces_are_heard_whole_and_the_last_words_count() -> None:
    child = Conversation(["sh", "-c", "printf on; sleep 0.2; printf 'e\\ntwo\\nthr'"])
    heard = []
    with selectors.DefaultSelector() as selector:
        selector.register(child, selectors.EVENT_READ)
        while selector.select(10) and (lines := child.lines()) is not None:
            heard += lines
    assert heard == [b"one", b"two"]
    assert child.end() == 0


def test_a_dead_child_is_noticed_where_one_listens() -> None:
    child = Conversation(["sh", "-c", "kill -9 $$"])
    child.write(b"x" * (1 << 20))
    assert child.read_line() is None
    assert child.end() == -signal.SIGKILL


def test_a_child_that_does_not_hang_up_is_killed_after_our_patience() -> None:
    child = Conversation(["sleep", "60"])
    assert child.end(0.2) == -signal.SIGKILL


def test_offers_do_not_wait_for_a_child_that_does_not_read() -> None:
    child = Conversation(["sh", "-c", "read begin; wc -c"])
    assert child.offer(b"begin\n") or child.offer(b"")
    size = 1 << 20
    os.kill(child._process.pid, signal.SIGSTOP)
    assert not child.offer(bytes(size))
    assert not child.offer(b"more")
    os.kill(child._process.pid, signal.SIGCONT)
    end = time.monotonic() + 30
    while not child.offer(b"") and time.monotonic() < end:
        time.sleep(0.01)
    child.close_input()
    assert child.read_line(30) == str(size + 4).encode()
    assert child.end() == 0


def test_an_offer_to_a_dead_child_is_lost() -> None:
    child = Conversation(["sleep", "60"])
    child.kill()
    assert child.read_line() is None
    assert child.offer(b"x")
    assert child.end() == -signal.SIGKILL


def test_another_thread_ends_the_wait_for_an_answer() -> None:
    child = Conversation(["sleep", "60"])
    timer = threading.Timer(0.2, child.kill)
    timer.start()
    assert child.read_line() is None
    timer.join()
    assert child.end() == -signal.SIGKILL


def test_memory_runs_out_at_the_limit_and_no_further() -> None:
    code = (
        "from miscompile.base.child import lift_memory_limit, limit_memory\n"
        "limit_memory(64 << 20)\n"
        "try: bytearray(128 << 20)\n"
        "except MemoryError: print('out')\n"
        "bytearray(16 << 20)\n"
        "lift_memory_limit()\n"
        "bytearray(128 << 20)"
    )
    ended = collect([sys.executable, "-c", code])
    assert (ended.status, ended.output()) == (0, "out\n"), ended.errors()


def test_an_interrupt_leaves_no_process(tmp_path: Path) -> None:
    code = (
        "import signal; from miscompile.base.child import collect\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored where tests run in the background\n"
        "collect(['sh', '-c', 'echo $$ > pid.new; mv pid.new pid; sleep 60'])"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    end = time.monotonic() + 20
    while not (tmp_path / "pid").exists() and time.monotonic() < end:
        time.sleep(0.02)
    parent.send_signal(signal.SIGINT)
    assert b"KeyboardInterrupt" in parent.communicate(timeout=20)[1]
    assert gone(int((tmp_path / "pid").read_text()))
