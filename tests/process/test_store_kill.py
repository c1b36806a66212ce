"""Kill -9 in the middle of writing: what was announced is there, and nothing is half there."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from miscompile.base.errors import StoreError
from miscompile.findings import folder
from miscompile.findings.store import Store

WRITER = """
import sys
from pathlib import Path
import numpy as np
from miscompile.core.case import Case, Port, Program
from miscompile.core.finding import Finding, Property, Signature
from miscompile.core.tensor import tensor
from miscompile.findings.folder import Stored
from miscompile.findings.store import Store

port = Port("x", "float32", (4096,))
store = Store.open(Path(sys.argv[1]))
store.choose(1 if sys.argv[-1] in (sys.argv[1], "a") else 2)
print("open", flush=True)
for number in range(100000):
    name = f"wrong-{number // 2}"
    case = Case(Program("onnx", name.encode() * 9999, (port,), (port,)), ((tensor(np.zeros(4096, np.float32)),),))
    finding = Finding(name, Property("p", "toy", Signature("toy", "wrong", "", (name,), "")), case, "m", {"n": number})
    if number % 2 == 0:
        store.add_pending(Stored(finding))
    else:
        store.update(Stored(finding, "confirmed", case))
    store.add_counters({"tests": 1})
    print(number, flush=True)
"""


def _start(out: Path) -> "subprocess.Popen[str]":
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(out)], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    assert process.stdout.readline() == "open\n"
    return process


@pytest.mark.process
@pytest.mark.parametrize(("lines", "delay"), [(1, 0.0), (4, 0.001), (7, 0.002), (10, 0.004), (15, 0.007)])
def test_nothing_announced_is_lost(tmp_path: Path, lines: int, delay: float) -> None:
    process = _start(tmp_path)
    assert process.stdout
    said = "".join(process.stdout.readline() for _ in range(lines))
    time.sleep(delay)
    os.kill(process.pid, signal.SIGKILL)
    said += process.communicate()[0]
    announced = [int(line) for line in said.split("\n")[:-1]]
    with Store.open(tmp_path) as store:
        records = {record.identifier: record for record in store.findings()}
        for number in announced:
            stored = store.load(f"wrong-{number // 2}")
            assert stored.finding.facts["n"] >= number
            assert records[f"wrong-{number // 2}"].status == stored.status
        for identifier in folder.identifiers(tmp_path):
            assert store.load(identifier).status == records[identifier].status
        assert store.counters()["tests"] >= len(announced)
    leftovers = [path.name for path in (tmp_path / "findings").iterdir() if path.name.startswith(".")]
    assert leftovers == []


@pytest.mark.process
def test_one_process_runs_a_campaign_and_the_lock_dies_with_its_holder(tmp_path: Path) -> None:
    process = _start(tmp_path)
    try:
        with Store.open(tmp_path) as store:
            with pytest.raises(StoreError, match="another process is running campaign 1"):
                store.choose(1)
            store.choose(2)
        with Store.open(tmp_path, create=False) as store:
            store.findings()
    finally:
        process.kill()
        process.communicate()
    with Store.open(tmp_path) as store:
        store.choose(1)


@pytest.mark.slow
@pytest.mark.process
def test_a_second_writer_mends_nothing_that_the_first_is_about_to_write(tmp_path: Path) -> None:
    process = _start(tmp_path)
    try:
        half_written = tmp_path / "findings" / ".new-wrong-x"
        half_written.mkdir(parents=True)
        Store.open(tmp_path).close()
        assert half_written.exists()
    finally:
        process.kill()
        process.communicate()
    Store.open(tmp_path).close()
    assert not half_written.exists()


@pytest.mark.process
def test_two_writers_never_own_one_signature_twice(tmp_path: Path) -> None:
    """Both write findings of the same signatures, under names of their own."""
    own = WRITER.replace('name = f"wrong-{number // 2}"', 'name = f"wrong-{number // 2}"; own = sys.argv[2] + name')
    own = own.replace("Finding(name,", "Finding(own,").replace("name.encode()", "own.encode()").replace("100000", "60")
    processes = [
        subprocess.Popen([sys.executable, "-c", own, str(tmp_path), name], stdout=subprocess.PIPE, text=True)
        for name in ("a", "b")
    ]
    for one in processes:
        one.communicate(timeout=120)
    assert [one.returncode for one in processes] == [0, 0]
    with Store.open(tmp_path) as store:
        records = store.findings()
        assert sorted(record.signature for record in records) == sorted(f"toy:wrong:wrong-{n}" for n in range(30))
        assert {record.status for record in records} == {"confirmed"}
        assert store.counters() == {"tests": 120}
        assert folder.identifiers(tmp_path) == sorted(record.identifier for record in records)
