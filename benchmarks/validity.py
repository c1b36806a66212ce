"""How many generated programs are valid? Counts those that are not, by cause. Run as a script.

Each program of the default producers (graphs of ten operators, and a quarter as many of the sweep) is held against
onnx's checker with full type inference, then built and run without optimisation, twice: as it is, and with every inner
value as an output. Counted are refusals, errors and deaths by operator and message, and values that are not finite.
"""

import argparse
import json
import re
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import onnx

from miscompile.base.dtypes import is_float
from miscompile.base.errors import ModelError
from miscompile.base.rng import stream
from miscompile.core.case import Case, Port
from miscompile.core.outcome import (
    Crashed,
    Outcome,
    OutOfMemory,
    Raised,
    Rejected,
    TimedOut,
    Unsupported,
    Values,
    status_of,
)
from miscompile.core.ports import Producer
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Tensor
from miscompile.engine.coordinator import probe_support
from miscompile.engine.plan import Plan
from miscompile.engine.wiring import make_pool, make_producer
from miscompile.execution.pool import LocalPool
from miscompile.graph.emit import to_program
from miscompile.graph.model import TensorType, ValueInfo
from miscompile.graph.read import read
from miscompile.graph.typing import value_types
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.strict import Strict
from miscompile.producers.sweep import Sweep

AHEAD = 6
_OPERATOR = re.compile(r"running (\w+) node|Op \((\w+)\)|Node:\S* ?\(?(?:Op:)?(\w+)")
_PLACES = re.compile(r"/\S+\.(?:cc|h|cpp):\d+ ?|Name:'[^']*'|\(node_\S*\)|\b[vcxp]\d+\b")


@dataclass(slots=True)
class Tally:
    """Counts by cause; of each cause the first few programs are kept, as (producer, index)."""

    programs: Counter[str] = field(default_factory=Counter)
    causes: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    cases: dict[str, tuple[Case, str]] = field(default_factory=dict)

    def note(self, cause: str, producer: str, index: int, case: Case, message: str = "") -> None:
        """Count one program under `cause`; `message` is the whole one."""
        self.causes[cause] += 1
        self.cases.setdefault(cause, (case, message))
        known = self.examples.setdefault(cause, [])
        if len(known) < 5:
            known.append((producer, index))


@dataclass(frozen=True, slots=True)
class Asked:
    """A program that is out with the worker."""

    producer: str
    index: int
    case: Case


def exposed(case: Case) -> Case | None:
    """Return `case` with every inner tensor as an output as well; None when there is none."""
    model = read(case.program.payload)
    types = value_types(model)
    have = {info.name for info in model.graph.outputs}
    more = tuple(
        ValueInfo(name, types[name])
        for node in model.graph.nodes
        for name in node.outputs
        if name and name not in have and isinstance(types.get(name), TensorType)
    )
    if not more:
        return None
    graph = replace(model.graph, outputs=(*model.graph.outputs, *more))
    return replace(case, program=to_program(replace(model, graph=graph)))


def cause_of(outcome: Outcome) -> str | None:
    """Return operator and message of a failure without the parts that vary, None for values."""
    match outcome:
        case Values():
            return None
        case Crashed(stage, signal):
            return f"died of signal {signal} at {stage}"
        case TimedOut(stage):
            return f"no end of {stage}"
        case OutOfMemory(stage) | Rejected(stage) | Unsupported(stage) | Raised(stage):
            message = getattr(outcome, "message", "")
    operator = _OPERATOR.search(message)
    name = next((group for group in operator.groups() if group), "?") if operator else "?"
    brief = re.sub(r"-?\d+", "#", _PLACES.sub("", message.partition("Status Message: ")[2] or message))
    return f"{status_of(outcome)} at {stage}: {name}: {' '.join(brief.split())[:160]}"


def faults(ports: tuple[Port, ...], values: Values) -> Iterator[str]:
    """Yield what is wrong with the values of a run: missing, of another type than declared, or not finite."""
    for row in values.results:
        for port, value in zip(ports, row, strict=True):
            if value is None:
                yield "an output is missing"
            elif not agrees(port, value):
                yield "an output has another type than declared"
            elif not _finite(value):
                yield "not finite"


def agrees(port: Port, value: Tensor) -> bool:
    """Tell whether `value` has the declared type, as far as that is declared."""
    if port.dtype != value.dtype or (port.shape is not None and len(port.shape) != len(value.shape)):
        return False
    return port.shape is None or all(
        want == have or not isinstance(want, int) for want, have in zip(port.shape, value.shape, strict=True)
    )


def _finite(value: Tensor) -> bool:
    if not is_float(value.dtype):
        return True
    numbers = value.numbers().astype("float64")
    return bool((abs(numbers) < float("inf")).all())


def blamed(ports: tuple[Port, ...], case: Case, values: Values) -> str:
    """Return the operators whose results are at fault although nothing before them is."""
    model = read(case.program.payload)
    row = dict(zip((port.name for port in ports), values.results[0], strict=True))
    declared = {port.name: port for port in ports}
    bad = {
        name for name, value in row.items() if value is None or not agrees(declared[name], value) or not _finite(value)
    }
    first = {node.op for node in model.graph.nodes if bad & set(node.outputs) and not bad & set(node.inputs)}
    return " ".join(sorted(first))


def examine(asked: Asked, outcomes: list[Outcome], cases: list[Case], tally: Tally) -> None:
    """Count what came of one program and of its twin with everything exposed."""
    for outcome in outcomes:
        cause = cause_of(outcome)
        if cause:
            tally.note(cause, asked.producer, asked.index, cases[0], getattr(outcome, "message", ""))
            return
    for case, outcome in zip(reversed(cases), reversed(outcomes), strict=True):
        assert isinstance(outcome, Values)
        ports = case.program.outputs
        found = next(faults(ports, outcome), None)
        if found:
            tally.note(f"{found}: {blamed(ports, case, outcome)}", asked.producer, asked.index, cases[0])
            return


def check(asked: Asked, tally: Tally) -> Case | None:
    """Hold a program against onnx's checker and inference; return its exposed twin when it passes and has one."""
    try:
        onnx.checker.check_model(asked.case.program.payload, full_check=True)
        return exposed(asked.case)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError, ModelError, ValueError) as error:
        line = re.sub(r"\d+", "#", " ".join(str(error).split()))[:160]
        tally.note(f"onnx's checker: {line}", asked.producer, asked.index, asked.case)
        return None


def survey(producers: list[tuple[str, Producer, int]], plan: Plan, pool: LocalPool) -> Tally:
    """Generate, check and run all programs."""
    tally = Tally()
    out: deque[tuple[Asked, list[Case], int]] = deque()
    done: dict[int, list[Outcome]] = {}

    def settle() -> None:
        asked, cases, ticket = out.popleft()
        while ticket not in done:
            done.update(pool.poll(plan.limit_seconds))
        examine(asked, done.pop(ticket), cases, tally)

    for name, producer, count in producers:
        for index in range(count):
            asked = Asked(name, index, producer.propose(stream(plan.seed, name, index)))
            tally.programs[name] += 1
            twin = check(asked, tally)
            cases = [asked.case] if twin is None else [asked.case, twin]
            out.append((asked, cases, pool.submit([Run(case, plan.target, Build("off")) for case in cases])))
            if len(out) > AHEAD:
                settle()
    while out:
        settle()
    return tally


def main() -> None:
    """Survey and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="onnxruntime", help="target spec")
    parser.add_argument("--graphs", type=int, default=10_000, help="number of ten-operator graphs")
    parser.add_argument("--producer", action="append", default=[], help="spec of a producer instead; can be repeated")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--save", type=Path, help="folder for one model of each cause")
    options = parser.parse_args()
    plan = Plan(options.target, seed=options.seed, producers=tuple(options.producer))
    support = probe_support(plan, plan.target)
    producers: list[tuple[str, Producer, int]] = [
        (spec, make_producer(replace(plan, producers=(spec,)), support), options.graphs) for spec in plan.producers
    ] or [
        ("strict", Strict(GeneratorOptions(opsets=plan.opsets), support), options.graphs),
        ("sweep", Sweep(GeneratorOptions(opsets=plan.opsets), support), options.graphs // 4),
    ]
    with make_pool(plan, AHEAD) as pool:
        tally = survey(producers, plan, pool)
    if options.save:
        options.save.mkdir(parents=True, exist_ok=True)
        for number, (cause, (case, message)) in enumerate(tally.cases.items()):
            (options.save / f"{number}.onnx").write_bytes(case.program.payload)
            (options.save / f"{number}.txt").write_text(f"{cause}\n{message}\n", "utf-8")
    if options.json:
        print(json.dumps({"programs": tally.programs, "causes": tally.causes, "examples": tally.examples}))
        return
    print(", ".join(f"{count} {name}" for name, count in tally.programs.items()), "programs")
    print(f"{tally.causes.total()} of them are at fault")
    for cause, count in tally.causes.most_common():
        print(f"{count:6} {cause}  e.g. {tally.examples[cause][:3]}")


if __name__ == "__main__":
    main()
