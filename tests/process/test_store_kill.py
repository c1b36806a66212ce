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
def test_one_writer_at_a_time_and_the_lock_dies_with_its_holder(tmp_path: Path) -> None:
    process = _start(tmp_path)
    try:
        with pytest.raises(StoreError, match="another process is writing"):
            Store.open(tmp_path)
        with Store.open(tmp_path, create=False) as store:
            store.findings()
    finally:
        process.kill()
        process.communicate()
    Store.open(tmp_path).close()
