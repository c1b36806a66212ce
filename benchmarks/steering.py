"""What a campaign does about the bugs that it knows already, by halves of its time. Run as a script.

A campaign that steers past known bugs finds new signatures in its second half, spends little CPU time on bugs that it
knows, and still tests every pass in at least a quarter of the tests.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from miscompile.base.errors import StoreError
from miscompile.engine.lane import WITHOUT
from miscompile.findings.store import Store

_COMMAND = (sys.executable, "-c", "import sys; from miscompile.cli.main import main; sys.exit(main())", "fuzz")
"""What the installed `miscompile fuzz` does, under the Python that runs this script."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The counters of a campaign so far, and the signatures of its confirmed findings and of all its findings."""

    counters: Mapping[str, int]
    confirmed: frozenset[str]
    findings: frozenset[str]

    @classmethod
    def of(cls, out: Path) -> "Reading":
        """Read the store at `out`. Raises StoreError when there is none."""
        with Store.open(out, create=False) as store:
            records = store.findings()
            confirmed = frozenset(one.signature for one in records if one.status == "confirmed")
            return cls(store.counters(), confirmed, frozenset(one.signature for one in records))


@dataclass(frozen=True, slots=True)
class Half:
    """One half of a campaign.

    `new` are signatures that were not there before, `searched_again` violations whose culprits were searched for and
    whose signature was known then, `recognised` violations that a bug predicate recognised without a search.
    `known_share` is the share of the CPU time of tests and triage that went into known bugs, and `least_on` the pass
    that was on in the smallest share of the tests, with that share.
    """

    tests: int
    violations: int
    recognised: int
    searched_again: int
    new: int
    confirmed: int
    new_share: float
    known_share: float
    least_on: tuple[str, float]


def half(before: Reading, after: Reading) -> Half:
    """Return what happened between two readings."""
    spent = {name: value - before.counters.get(name, 0) for name, value in after.counters.items()}
    tests, again = spent.get("tests", 0), spent.get("duplicates", 0)
    new = len(after.findings - before.findings)
    cpu = spent.get("test_us", 0) + spent.get("triage_us", 0)
    off = {name.removeprefix(WITHOUT): value for name, value in spent.items() if name.startswith(WITHOUT)}
    name = max(off, key=off.__getitem__, default="")
    return Half(
        tests=tests,
        violations=spent.get("violations", 0),
        recognised=spent.get("recognised", 0),
        searched_again=again,
        new=new,
        confirmed=len(after.confirmed - before.confirmed),
        new_share=round(new / (new + again), 3) if new + again else 1.0,
        known_share=round(spent.get("known_us", 0) / cpu, 4) if cpu else 0.0,
        least_on=(name, round(1 - off[name] / tests, 3) if name and tests else 1.0),
    )


def run(words: list[str], seconds: float, out: Path) -> tuple[Half, Half]:
    """Run a campaign and return its halves; the second one includes the triage at the end.

    The halves of a campaign that is resumed are those of the new session.
    """
    start = Reading.of(out) if "--resume" in words else Reading({}, frozenset(), frozenset())
    command = [*_COMMAND, *words, "--time", f"{seconds:.0f}", "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        begin = _first_test(process, out, start.counters.get("tests", 0))
        while process.poll() is None and time.monotonic() - begin < seconds / 2:
            time.sleep(0.5)
        middle = Reading.of(out)
        process.wait()
    return half(start, middle), half(middle, Reading.of(out))


def _first_test(process: "subprocess.Popen[bytes]", out: Path, tests: int) -> float:
    while process.poll() is None:
        try:
            if Reading.of(out).counters.get("tests", 0) > tests:
                break
        except StoreError:
            pass  # the campaign still asks the compiler what it supports, and has no store yet
        time.sleep(0.5)
    return time.monotonic()


def main() -> int:
    """Run a campaign, and print one JSON object a half."""
    parser = argparse.ArgumentParser(description=__doc__, epilog="All other options are those of `miscompile fuzz`.")
    parser.add_argument("target")
    parser.add_argument("--seconds", type=float, default=3600.0, help="time of the campaign")
    parser.add_argument("--out", type=Path, help="folder of the campaign; a temporary one by default")
    options, words = parser.parse_known_args()
    with TemporaryDirectory() as scratch:
        for part in run([options.target, *words], options.seconds, options.out or Path(scratch) / "out"):
            print(json.dumps(asdict(part)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
