"""Resident size of the coordinator, and of the lanes, over a long campaign. Run as a script.

The size of a coordinator that can run for weeks does not depend on how many tests it has seen: compare the quarters.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

_MIB = 1 << 20
_COMMAND = "import sys; from miscompile.cli.main import main; sys.exit(main())"
"""What the installed `miscompile` does, under the Python that runs this script."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Resident sizes in MiB, `seconds` after the first lane was seen: the coordinator's, and the largest lane's."""

    seconds: float
    coordinator: float
    lane: float


@dataclass(frozen=True, slots=True)
class Quarters:
    """Mean sizes in MiB over the first and the last quarter of the samples."""

    first: float
    last: float
    largest: float

    @property
    def growth(self) -> float:
        """Growth from first to last quarter, as a share of the first."""
        return self.last / self.first - 1


def watch(process: "subprocess.Popen[bytes]", every: float) -> list[Sample]:
    """Sample while `process` has lanes: imports before them and triage after them are not the campaign."""
    coordinator, samples, started = psutil.Process(process.pid), list[Sample](), 0.0
    while process.poll() is None:
        lanes = [size for child in _children(coordinator) if (size := _lane_size(child))]
        if lanes:
            started = started or time.monotonic()
            samples.append(Sample(time.monotonic() - started, coordinator.memory_info().rss / _MIB, max(lanes) / _MIB))
        elif samples:
            break
        time.sleep(every)
    return samples


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children()
    except psutil.Error:
        return []


def _lane_size(process: psutil.Process) -> int:
    """Return the resident size in bytes, 0 for what is no lane or has ended."""
    try:
        return process.memory_info().rss if "miscompile.engine.lane" in process.cmdline() else 0
    except psutil.Error:
        return 0


def quarters(sizes: list[float]) -> Quarters:
    """Return the means of the first and the last quarter. Needs four sizes."""
    count = len(sizes) // 4
    return Quarters(statistics.fmean(sizes[:count]), statistics.fmean(sizes[-count:]), max(sizes))


def run(given: argparse.Namespace, out: Path) -> list[Sample]:
    """Run the campaign and return the samples. Raises SystemExit when there are too few."""
    command = [sys.executable, "-c", _COMMAND, "fuzz", given.target, "--tests", str(given.tests)]
    command += ["--workers", str(given.workers), "--seed", str(given.seed), "--out", str(out), "--json"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            samples = watch(process, given.every)
        finally:
            process.terminate()  # the tests are done; what is left is triage
    if len(samples) < 4:
        raise SystemExit(f"only {len(samples)} samples: ask for more --tests, or sample --every fewer seconds")
    return samples


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--target", default="onnxruntime")
    parser.add_argument("--tests", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)), help="lanes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=float, default=2.0, metavar="SECONDS", help="time between samples")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def main() -> None:
    """Measure and print."""
    given = options()
    with TemporaryDirectory() as name:
        samples = run(given, Path(name) / "campaign")
    coordinator, lane = (
        quarters([sample.coordinator for sample in samples]),
        quarters([sample.lane for sample in samples]),
    )
    if given.json:
        found = {
            "coordinator": asdict(coordinator),
            "lane": asdict(lane),
            "samples": [asdict(sample) for sample in samples],
        }
        print(json.dumps({"target": given.target, "tests": given.tests, **found}, indent=2))
        return
    print(
        f"{given.tests} tests in {samples[-1].seconds:.0f} s, {len(samples)} samples; MiB resident, mean of a quarter"
    )
    for title, sizes in (("coordinator", coordinator), ("largest lane", lane)):
        line = f"first {sizes.first:.1f}, last {sizes.last:.1f} ({sizes.growth:+.1%}), largest {sizes.largest:.1f}"
        print(f"{title:<13} {line}")


if __name__ == "__main__":
    main()
