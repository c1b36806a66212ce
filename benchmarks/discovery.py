"""What a CPU second teaches: behaviour of the compiler that tests reach, and bugs that campaigns find. Run as a script.

    python benchmarks/discovery.py pairs onnxruntime --tests 2000
    python benchmarks/discovery.py bugs toy --seconds 60 --seed 1 --seed 2 --seed 3

`pairs` draws the first tests of a campaign, runs them with observation, and counts the distinct pairs of a pass that
changed a program and the form of an operator in that program: its name, and the element types and ranks of its inputs.
`bugs` runs whole campaigns and counts the signatures that triage confirmed, the known ones included. Both divide by the
CPU time of all their processes. A test that teaches nothing makes these figures worse, and tests per second better.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from miscompile.base.errors import ModelError
from miscompile.base.rng import stream
from miscompile.core.case import Case
from miscompile.engine.coordinator import probe_support
from miscompile.engine.plan import Plan
from miscompile.engine.wiring import make_oracle, make_pool, make_producer
from miscompile.findings.folder import REPEATED
from miscompile.graph.model import TensorType
from miscompile.graph.read import read
from miscompile.graph.typing import value_types

Form = tuple[str, tuple[str, ...]]
"""An operator, and the element type and rank of each input; "-" for an input that is no tensor of known rank."""

_COMMAND = (sys.executable, "-c", "import sys; from miscompile.cli.main import main; sys.exit(main())", "fuzz")
"""What the installed `miscompile fuzz` does, under the Python that runs this script."""


@dataclass(frozen=True, slots=True)
class Yield:
    """`found` distinct things in `tests` tests that took `cpu_seconds` in all processes; `rate` is per CPU second for
    pairs, per CPU minute for bugs."""

    target: str
    seed: int
    tests: int
    found: int
    cpu_seconds: float
    rate: float


def forms(case: Case) -> set[Form]:
    """Return the forms of the operators in the main graph of an ONNX case; none for a program that has no types."""
    if case.program.kind != "onnx":
        return set()
    try:
        model = read(case.program.payload)
        types = value_types(model, strict=False)
    except ModelError:
        return set()

    def told(name: str) -> str:
        found = types.get(name)
        if not isinstance(found, TensorType) or found.shape is None:
            return "-"
        return f"{found.dtype}:{len(found.shape)}"

    return {(node.op, tuple(map(told, node.inputs))) for node in model.graph.nodes}


def pairs(target: str, seed: int, tests: int, nodes: int) -> Yield:
    """Count the distinct pairs that the first tests of a campaign reach."""
    plan = Plan(target, seed=seed, nodes=nodes)
    producer, oracle = make_producer(plan, probe_support(plan, target)), make_oracle(plan, {})
    found, seen, begin = set[tuple[str, Form]](), [], _cpu()
    with make_pool(plan) as pool:
        for index in range(tests):
            rng = stream(seed, "lane", 0, 1, index)
            case = producer.propose(rng)
            watched = Case(case.program, case.feeds, {**case.recipe, "observe": True})
            runs = oracle.plan(watched, rng)
            outcomes = pool.run(runs)
            seen.append((case, {name for one in outcomes for name in one.observations.passes}))
    spent = _cpu() - begin  # the forms are not worked out yet, because no campaign does that
    for case, passes in seen:
        if passes:
            found.update((name, form) for name in passes for form in forms(case))
    return Yield(target, seed, tests, len(found), round(spent, 1), round(len(found) / spent, 2))


def bugs(target: str, seed: int, seconds: float, words: list[str]) -> Yield:
    """Run a campaign and count its confirmed signatures; the CPU time includes the triage at the end."""
    begin = _cpu()
    with TemporaryDirectory() as scratch:
        out = Path(scratch) / "out"
        command = [*_COMMAND, target, "--seed", str(seed), "--time", f"{seconds:.0f}", "--out", str(out), *words]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode > 1:
            raise SystemExit(f"discovery: the campaign ended with exit status {done.returncode}: {done.stderr[-500:]}")
        summary = json.loads((out / "summary.json").read_text("utf-8"))
    spent = _cpu() - begin
    found = {one["signature"] for one in summary["findings"] if one["status"] in REPEATED}
    return Yield(target, seed, summary["tests"], len(found), round(spent, 1), round(60 * len(found) / spent, 2))


def _cpu() -> float:
    """Return the CPU seconds of this process and of all its descendants that have ended."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in spent)


def measured(given: argparse.Namespace, words: list[str]) -> Iterator[Yield]:
    """Measure with each seed in turn."""
    for seed in given.seed or [1]:
        if given.what == "pairs":
            yield pairs(given.target, seed, given.tests, given.nodes)
        else:
            yield bugs(given.target, seed, given.seconds, words)


def main() -> None:
    """Measure and print one line a seed, and the median rate."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="All other options are those of `miscompile fuzz`, for bugs.",
    )
    parser.add_argument("what", choices=("pairs", "bugs"))
    parser.add_argument("target")
    parser.add_argument("--seed", type=int, action="append", help="may be given several times (default: 1)")
    parser.add_argument("--tests", type=int, default=2000, help="tests, for pairs")
    parser.add_argument("--nodes", type=int, default=10, help="operators aimed at in a graph, for pairs")
    parser.add_argument("--seconds", type=float, default=60.0, help="time of a campaign, for bugs")
    given, words = parser.parse_known_args()
    rates = []
    for one in measured(given, words):
        print(json.dumps(asdict(one)), flush=True)
        rates.append(one.rate)
    unit = "pairs a CPU second" if given.what == "pairs" else "bugs a CPU minute"
    print(f"median: {statistics.median(rates)} {unit}")


if __name__ == "__main__":
    main()
