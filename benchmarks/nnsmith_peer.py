"""NNSmith 0.1.0 on the same machine: makes an environment for it once, runs it, and counts its tests."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

PYTHON = (3, 11)
"""The newest Python for which all of these packages exist."""

TORCH = "torch==2.13.0"
PACKAGES = ("nnsmith[onnx,onnxruntime]==0.1.0", "onnxruntime==1.16.3", "onnx==1.14.1", "numpy==1.26.4", "protobuf<5")
"""NNSmith calls `onnx._serialize`, which went away with onnx 1.15; ONNX Runtime 1.16 needs numpy 1."""

_WRAPPER = Path(__file__).with_name("nnsmith_fuzz.py")
_PATIENCE = 300.0
"""Seconds that a process may take beyond its fuzzing time: imports, and one model that is hard to solve."""


@dataclass(frozen=True, slots=True)
class PeerFigures:
    """The counts of a run of NNSmith for `seconds` with `processes` processes.

    `tests` counts every model that was generated, exported, and handed to ONNX Runtime, whatever came of it;
    `reported` those that NNSmith calls bugs, `failed` the models that it could not make (not among `tests`).
    """

    processes: int
    seconds: float
    tests: int
    reported: int
    failed: int
    tests_per_second: float
    exit_codes: tuple[int, ...]

    def as_json(self) -> dict[str, object]:
        """Return the figures as a JSON object."""
        return asdict(self)


def python_of(venv: Path) -> Path:
    """Return the Python of NNSmith's environment in `venv`, making the environment when it is not there.

    Raises SystemExit with an explanation when it cannot be made.
    """
    python, marker = venv / "bin" / "python", venv / "complete.json"
    wanted = json.dumps([TORCH, *PACKAGES])
    if marker.exists() and marker.read_text("utf-8") == wanted:
        return python
    print(f"making an environment for NNSmith in {venv} (once; about 1 GB)", file=sys.stderr)
    marker.unlink(missing_ok=True)
    _call([_base_python(), "-m", "venv", "--clear", str(venv)])
    _call([str(python), "-m", "pip", "install", "-q", TORCH])
    _call([str(python), "-m", "pip", "install", "-q", TORCH, *PACKAGES])
    marker.write_text(wanted, "utf-8")
    return python


def measure(venv: Path, folder: Path, seconds: int, nodes: int, processes: int) -> PeerFigures:
    """Fuzz ONNX Runtime with `processes` crash-safe NNSmith loops side by side for `seconds` seconds each.

    `folder` gets logs and reports. The operator table, which NNSmith keeps as a cache, is made beforehand.
    """
    python = python_of(venv)
    _finish([_start(python, venv, folder / "warm-up", 1, nodes)], 1)
    folders = [folder / f"process-{number}" for number in range(processes)]
    codes = _finish([_start(python, venv, one, seconds, nodes) for one in folders], seconds)
    logs = [_log(one) for one in folders]
    tests = sum(log.count("Timing: ") for log in logs)
    if not tests:
        raise SystemExit(f"NNSmith ran no test; its output:\n{(folders[0] / 'output.txt').read_text('utf-8')[-3000:]}")
    reported = sum(_total(log, r"Total (\d+) bugs found") for log in logs)
    failed = sum(log.count("`make_testcase` failed") for log in logs)
    return PeerFigures(processes, seconds, tests, reported, failed, tests / seconds, tuple(codes))


def _base_python() -> str:
    if sys.version_info[:2] == PYTHON:
        return sys.executable
    found = shutil.which(f"python{PYTHON[0]}.{PYTHON[1]}")
    if found is None:
        raise SystemExit(
            f"--nnsmith needs a Python {PYTHON[0]}.{PYTHON[1]} on the PATH: its packages exist for that one"
        )
    return found


def _call(command: list[str]) -> None:
    done = subprocess.run(command, stdout=sys.stderr, check=False)
    if done.returncode:
        raise SystemExit(f"NNSmith's environment cannot be made: '{' '.join(command)}' failed, see above")


def _start(python: Path, venv: Path, folder: Path, seconds: int, nodes: int) -> "subprocess.Popen[bytes]":
    folder.mkdir(parents=True)
    options = {
        "model.type": "onnx",
        "backend.type": "onnxruntime",
        "mgen.max_nodes": nodes,
        "fuzz.time": f"{seconds}s",
        "fuzz.crash_safe": "true",
        "fuzz.root": folder / "reports",
        "hydra.run.dir": folder / "log",
    }
    command = [str(python), str(_WRAPPER), *(f"{name}={value}" for name, value in options.items())]
    environment = {**os.environ, "XDG_CACHE_HOME": str(venv / "cache"), "OMP_NUM_THREADS": "1"}
    with (folder / "output.txt").open("wb") as output:
        return subprocess.Popen(command, stdout=output, stderr=output, cwd=folder, env=environment)


def _finish(processes: list["subprocess.Popen[bytes]"], seconds: float) -> list[int]:
    deadline = time.monotonic() + seconds + _PATIENCE
    try:
        return [process.wait(max(0.0, deadline - time.monotonic())) for process in processes]
    except subprocess.TimeoutExpired:
        raise SystemExit(f"NNSmith did not end within {seconds + _PATIENCE:.0f} s") from None
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()


def _log(folder: Path) -> str:
    path = folder / "log" / "fuzz.log"
    return path.read_text("utf-8", "replace") if path.exists() else ""


def _total(log: str, pattern: str) -> int:
    found = re.search(pattern, log)
    return int(found.group(1)) if found else 0
