"""Two commits in turns: the ratio of every part of a test's CPU time, with its spread. Run as a script in a checkout.

Each commit is checked out into a temporary folder and runs its own `throughput.py`, under the Python of this script.
Turns even out what other work on the machine does to both.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[1]
WHOLE = ("tests_per_second", "cpu_us_per_test", "compiler_share_of_testing")


@dataclass(frozen=True, slots=True)
class Row:
    """One measure: the medians of both commits, and the ratio new / old with the lowest and highest of a round."""

    measure: str
    old: float
    new: float
    ratio: float
    lowest: float
    highest: float


@contextmanager
def checkout(commit: str, place: Path) -> Iterator[Path]:
    """Check out `commit` into `place` for as long as the context lasts."""
    subprocess.run(["git", "-C", str(ROOT), "worktree", "add", "--detach", "--quiet", str(place), commit], check=True)
    try:
        yield place
    finally:
        subprocess.run(["git", "-C", str(ROOT), "worktree", "remove", "--force", str(place)], check=True)


def throughput(place: Path, arguments: Sequence[str]) -> Mapping[str, Any]:
    """Run the `throughput.py` of a checkout and return its figures."""
    command = [sys.executable, str(place / "benchmarks" / "throughput.py"), "--json", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(place / "src")}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"compare: throughput.py of {place.name} failed with exit status {done.returncode}")
    figures: Mapping[str, Any] = json.loads(done.stdout)
    return figures


def measures(figures: Mapping[str, Any]) -> dict[str, float]:
    """Return the figures that are compared, by name."""
    return {**{name: figures[name] for name in WHOLE}, **{f"us of {part}": us for part, us in figures["us"].items()}}


def rows(old: Sequence[Mapping[str, float]], new: Sequence[Mapping[str, float]]) -> list[Row]:
    """Compare the rounds of both commits; a measure that one of them lacks or that is 0 is left out."""
    found = []
    for name in old[0]:
        before, after = [one[name] for one in old], [one.get(name, 0.0) for one in new]
        if not all(before) or not all(after):
            continue
        ratios = [b / a for a, b in zip(before, after, strict=True)]
        a, b = statistics.median(before), statistics.median(after)
        found.append(Row(name, a, b, b / a, min(ratios), max(ratios)))
    return found


def main() -> None:
    """Measure in turns and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", help="a commit")
    parser.add_argument("new", nargs="?", default="HEAD", help="another one (default: HEAD)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", default="onnxruntime")
    parser.add_argument("--producer", action="append", default=[], help="spec of a producer instead")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    arguments = ["--target", given.target, "--seconds", str(given.seconds), "--seed", str(given.seed)]
    for producer in given.producer:
        arguments += ["--producer", producer]
    olds, news = [], []
    with (
        TemporaryDirectory() as name,
        checkout(given.old, Path(name) / "old") as old,
        checkout(given.new, Path(name) / "new") as new,
    ):
        for _ in range(given.rounds):
            olds.append(measures(throughput(old, arguments)))
            news.append(measures(throughput(new, arguments)))
    found = rows(olds, news)
    if given.json:
        print(json.dumps([asdict(row) for row in found], indent=2))
        return
    print(f"{given.old} -> {given.new}, medians of {given.rounds} rounds; ratio new / old (lowest to highest round)")
    for row in found:
        print(
            f"{row.measure:<28}{row.old:12.2f}{row.new:12.2f}{row.ratio:8.2f}  ({row.lowest:.2f} to {row.highest:.2f})"
        )


if __name__ == "__main__":
    main()
