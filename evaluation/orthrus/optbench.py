"""OptBench: how many of ten planted optimisation bugs does a resistant twin show, and which class does it blame?

The ten root causes are those of ORTHRUS, Table II. The toy compiler has a planted fault for each (`optbench` in its
table of faults); the models here trigger them, within a few operators that have nothing to do with it. A model and its
twin are both built with full optimisation and held against each other; nothing else is looked at.

Precision is measured on the toy without faults, over generated graphs. A fault is blamed on the class whose barriers,
alone, make it go away; of several such classes on the narrowest. The second root cause, a scale moved through a
product, counts as either fusion (as the pass of ONNX Runtime that had it is called) or algebra.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from miscompile.base.errors import RejectedDraft
from miscompile.base.rng import stream
from miscompile.core.case import Case
from miscompile.core.outcome import Outcome, Raised, Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Array, tensor
from miscompile.core.verdict import Violated
from miscompile.graph.emit import emit, to_program
from miscompile.graph.model import Graph, Model, ValueInfo
from miscompile.graph.read import read
from miscompile.graph.text.parser import parse_model
from miscompile.graph.typing import value_types
from miscompile.ops.support import Support
from miscompile.oracles.judge import judge_pair
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.strict import Strict
from miscompile.targets.toy.adapter import ToyAdapter
from miscompile.targets.toy.bugs import BUGS
from miscompile.targets.toy.ir import ToyError
from miscompile.targets.toy.kernels.table import OPERATORS
from miscompile.transforms.kinds import Transform
from miscompile.transforms.resist.attribution import attribute
from miscompile.transforms.resist.transform import Resistant

PAPER_RECALL, PAPER_PRECISION, PAPER_MISSED = 0.9, 1.0, (4,)
"""ORTHRUS, section IV-B: nine of ten, and no false alarm. The tenth happens inside one operator; so does ours."""

BARRIERS = "where+gather"
"""The strategies that the toy can take: it has no control flow."""


@dataclass(frozen=True, slots=True)
class PlantedCase:
    """A model that shows the fault of a case of OptBench, and the classes that may rightly be blamed for it."""

    number: int
    blame: tuple[str, ...]
    text: str
    feed: Mapping[str, Array]

    @property
    def bug(self) -> str:
        """Name of the toy's fault for this case."""
        return next(name for name, bug in BUGS.items() if bug.optbench == self.number)


def _floats(*shape: int, start: float = -4) -> Array:
    return (np.arange(int(np.prod(shape)), dtype=np.float32) + np.float32(start)).reshape(shape)


TRIGGERS = (
    PlantedCase(
        1,
        ("algebraic",),
        """ir 10 opset 21 graph g(%x: float32[2,4]) -> (%y, %z) {
        init %hi: float32[] = [2.0]
        %s = Sin(%x) %z = Abs(%s) %r = Relu(%x) %c = Clip(%r, _, %hi) %y = Neg(%c) }""",
        {"x": _floats(2, 4)},
    ),
    PlantedCase(
        2,
        ("fusion", "algebraic"),
        """ir 10 opset 21 graph g(%x: float32[3,2], %w: float32[2,2]) -> (%y, %z) {
        init %c: float32[1,2] = [2.0, 3.0]
        %m = Mul(%x, %c) %p = MatMul(%m, %w) %y = Neg(%p) %z = Abs(%w) }""",
        {"x": _floats(3, 2), "w": _floats(2, 2)},
    ),
    PlantedCase(
        3,
        ("casts",),
        """ir 10 opset 21 graph g(%x: int64[3]) -> (%y, %z) {
        %b = Cast(%x) {to=9} %i = Cast(%b) {to=6} %y = Abs(%i) %z = Sign(%x) }""",
        {"x": np.array([-1, 0, 5], np.int64)},
    ),
    PlantedCase(
        4,
        (),
        """ir 10 opset 17 graph g(%x: int32[2,3]) -> (%y, %z) {
        %a = Abs(%x) %y = ReduceMean(%a) {axes=[1], keepdims=0} %z = Sign(%x) }""",
        {"x": np.array([[3, 3, 3], [5, 5, 5]], np.int32)},
    ),
    PlantedCase(
        5,
        ("algebraic",),
        """ir 10 opset 21 graph g(%x: int32[3]) -> (%y, %z) {
        init %c: int32[] = [4]
        %a = Abs(%x) %z = Sign(%a) %y = Mod(%x, %c) {fmod=1} }""",
        {"x": np.array([-3, 7, -8], np.int32)},
    ),
    PlantedCase(
        6,
        ("fusion",),
        """ir 10 opset 21 graph g(%x: int8[3]) -> (%y, %z) {
        %n = Neg(%x) %y = ArgMin(%n) {axis=0} %z = Sign(%x) }""",
        {"x": np.array([-128, 3, 5], np.int8)},
    ),
    PlantedCase(
        7,
        ("casts",),
        """ir 10 opset 21 graph g(%x: int8[2], %w: int8[2]) -> (%y, %z) {
        %a = Add(%x, %w) %c = Cast(%a) {to=6} %y = Neg(%c) %z = Sign(%x) }""",
        {"x": np.array([100, 1], np.int8), "w": np.array([100, 2], np.int8)},
    ),
    PlantedCase(
        8,
        ("algebraic",),
        """ir 10 opset 21 graph g(%x: int32[3]) -> (%y, %z) {
        init %c: int32[] = [2]
        %a = Abs(%x) %z = Sign(%a) %y = Div(%x, %c) }""",
        {"x": np.array([-3, 7, -8], np.int32)},
    ),
    PlantedCase(
        9,
        ("operand-order",),
        """ir 10 opset 21 graph g(%x: float32[3], %w: float32[3]) -> (%y, %z) {
        %d = Sub(%w, %x) %y = Abs(%x) %z = Neg(%d) }""",
        {"x": _floats(3), "w": _floats(3, start=2)},
    ),
    PlantedCase(
        10,
        ("fusion",),
        """ir 10 opset 21 graph g(%x: float32[1,1,3,3]) -> (%y, %z) {
        init %w: float32[2,1,2,2] = [1.0, -2.0, 3.0, 4.0, 5.0, -6.0, 7.0, 8.0]
        init %c: float32[2] = [1.0, 2.0]
        %v = Conv(%x, %w) %a = Add(%v, %c) %y = Neg(%a) %z = Neg(%x) }""",
        {"x": _floats(1, 1, 3, 3)},
    ),
)


def case_of(trigger: PlantedCase) -> Case:
    """Return the trigger as a case with one feed."""
    model = typed(parse_model(trigger.text))
    return Case(to_program(model), (tuple(tensor(trigger.feed[info.name]) for info in model.graph.inputs),))


def typed(model: Model) -> Model:
    """Return `model` with the types of its outputs."""
    types = value_types(model)
    outputs = tuple(ValueInfo(info.name, types[info.name]) for info in model.graph.outputs)
    graph = model.graph
    return replace(model, graph=Graph(graph.name, graph.inputs, outputs, graph.nodes, graph.initializers))


def execute(case: Case, bugs: str, transform: Transform | None = None, level: str = "full") -> Outcome:
    """Build and run `case` on the toy in this process; under `transform` where there is one."""
    program = case.program
    if transform is not None:
        program = replace(program, payload=emit(transform.apply(read(program.payload))))
    try:
        session = ToyAdapter(bugs).build(program, Build(level))
        kept = len(case.program.outputs)
        return Values(tuple(session.run(feed)[:kept] for feed in case.feeds))
    except (ValueError, IndexError, KeyError, TypeError) as error:
        return Raised("compile", type(error).__name__, str(error))


def differ(case: Case, first: Outcome, second: Outcome) -> bool:
    """Tell whether two builds disagree, beyond the fixed threshold of 1e-3 where rounding is allowed."""
    runs = (Run(case, "toy", Build("full")), Run(case, "toy", Build("full")))
    return isinstance(judge_pair(runs, (first, second), "fixed"), Violated)


@dataclass(frozen=True, slots=True)
class OptBenchResult:
    """The result of one case: found, the class to blame, the edges that heal it alone, every class that heals it."""

    number: int
    bug: str
    found: bool
    blamed: str
    right: bool
    edges: tuple[str, ...]
    healing: tuple[str, ...]


def twin_of(strategies: str) -> Resistant:
    """Return the transform with these strategies; ORTHRUS's own, the identity matrix, needs leave to round."""
    return Resistant(strategies=strategies, exactness="rounding" if "matmul" in strategies else "bits")


def examine(trigger: PlantedCase, strategies: str = BARRIERS) -> OptBenchResult:
    """Hold the trigger against its twin, and if they differ find the class and the edges that heal it."""
    case, twin = case_of(trigger), twin_of(strategies)
    faulty = execute(case, trigger.bug)

    def heals(one: Resistant) -> bool:
        try:
            return differ(case, faulty, execute(case, trigger.bug, one))
        except RejectedDraft:
            return False

    if not heals(twin):
        return OptBenchResult(trigger.number, trigger.bug, False, "", not trigger.blame, (), ())
    told = attribute(read(case.program.payload), twin, heals)
    edges = tuple(site.edge for site in told.sites)
    return OptBenchResult(
        trigger.number, trigger.bug, True, told.kind, told.kind in trigger.blame, edges, tuple(told.healing)
    )


def false_alarms(count: int, seed: int = 0, strategies: str = BARRIERS) -> tuple[int, int]:
    """Return how many of `count` generated graphs had a twin, and how many differed from it on the honest toy."""
    operators = tuple(op for op in OPERATORS if op != "Constant")
    producer = Strict(GeneratorOptions(ops=operators, opsets=tuple(range(13, 24)),
                            dtypes=("float32", "float64", "int64", "int32", "int8", "uint8", "bool"),
                            control=0.0, containers=0.0), Support(open=True))  # fmt: skip
    pairs = alarms = 0
    for number in range(count):
        case = producer.propose(stream(seed, "optbench", number))
        plain = _lenient(case, None)
        if plain is None:
            continue
        other = _lenient(case, replace(twin_of(strategies), seed=number))
        if other is not None:
            pairs += 1
            alarms += differ(case, plain, other)
    return pairs, alarms


def _lenient(case: Case, transform: Transform | None) -> Outcome | None:
    """Return the outcome on the honest toy; None when it lacks something, or no barrier can stand anywhere."""
    try:
        return execute(case, "none", transform)
    except (ToyError, RejectedDraft):
        return None


def measure(graphs: int, strategies: str = BARRIERS) -> dict[str, Any]:
    """Return all figures."""
    results = [examine(trigger, strategies) for trigger in TRIGGERS]
    pairs, alarms = false_alarms(graphs, strategies=strategies)
    found = sum(result.found for result in results)
    return {
        "recall": found / len(results),
        "precision": found / (found + alarms) if found else 0.0,
        "missed": [result.number for result in results if not result.found],
        "blamed rightly": sum(result.right for result in results if result.found),
        "pairs of generated graphs": pairs,
        "false alarms": alarms,
        "paper": {"recall": PAPER_RECALL, "precision": PAPER_PRECISION, "missed": list(PAPER_MISSED)},
        "cases": [asdict(result) for result in results],
    }


def table(figures: Mapping[str, Any]) -> str:
    """Return a line for every case, and the figures beside those of the paper."""
    lines = []
    for row in figures["cases"]:
        state = "found" if row["found"] else "missed"
        lines.append(f"{row['number']:2}  {state:6} {row['bug']:28} {row['blamed']:14} {' '.join(row['edges'])}")
    lines.append(f"recall {figures['recall']:.0%} (paper {PAPER_RECALL:.0%}), missed {figures['missed']}")
    lines.append(
        f"precision {figures['precision']:.0%} (paper {PAPER_PRECISION:.0%}): {figures['false alarms']} false "
        f"alarms in {figures['pairs of generated graphs']} pairs of generated graphs"
    )
    return "\n".join(lines)
