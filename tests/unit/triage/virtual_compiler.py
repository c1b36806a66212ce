"""A compiler that exists on paper: a small interpreter, with bugs that are functions of model and build."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from miscompile.core.case import Case, Feed, Program
from miscompile.core.outcome import Crashed, Observations, Outcome, Raised, Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Array, Tensor, tensor
from miscompile.graph.emit import to_program
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.graph.read import read
from miscompile.oracles.pair import BuildPair

PASSES = tuple(f"Pass{number:02}" for number in range(80))
FLOAT = TensorType("float32", (3, 4))

OPERATORS: dict[str, Callable[..., Array]] = {
    "Add": lambda node, a, b: a + b,
    "Sub": lambda node, a, b: a - b,
    "Mul": lambda node, a, b: a * b,
    "Div": lambda node, a, b: a // b if a.dtype.kind in "iu" else a / b,
    "MatMul": lambda node, a, b: a @ b,
    "Relu": lambda node, a: np.maximum(a, 0).astype(a.dtype),
    "Neg": lambda node, a: -a,
    "Abs": lambda node, a: np.abs(a),
    "Identity": lambda node, a: a,
    "Transpose": lambda node, a: np.transpose(a, _ints(node, "perm")),
    "Softmax": lambda node, a: np.exp(a) / np.exp(a).sum(_int(node, "axis", -1), keepdims=True),
    "Reshape": lambda node, a, shape: a.reshape(tuple(shape)),
}


@dataclass(frozen=True)
class Wrong:
    """The node at `place` gives results that are one too large."""

    place: int


@dataclass(frozen=True)
class Missing:
    """The first output is missing."""


Bug = Callable[[Model, Build], Wrong | Missing | Crashed | Raised | None]


@dataclass
class VirtualCompiler:
    """A Runner. `bugs` are asked in order; the first that strikes decides. Counts what it runs.

    `fired` are the passes that it reports when it is observed.
    """

    bugs: Sequence[Bug]
    runs: list[Run] = field(default_factory=list)
    fired: tuple[str, ...] = ()

    def run(self, runs: Sequence[Run]) -> list[Outcome]:
        self.runs += runs
        return [self._outcome(run) for run in runs]

    def _outcome(self, run: Run) -> Outcome:
        model = read(run.case.program.payload)
        struck = next((hit for bug in self.bugs if (hit := bug(model, run.build)) is not None), None)
        if isinstance(struck, Crashed | Raised):
            return struck
        results = []
        for feed in run.case.feeds:
            try:
                row = interpret(model, run.case.program, feed, struck if isinstance(struck, Wrong) else None)
            except ZeroDivisionError:
                return Crashed("run", 8)
            results.append((None, *row[1:]) if isinstance(struck, Missing) else row)
        return Values(tuple(results), Observations(passes=self.fired if run.build.observe else ()))


def interpret(model: Model, program: Program, feed: Feed, wrong: Wrong | None) -> tuple[Tensor | None, ...]:
    known = {name: value.array for name, value in model.graph.initializers.items()}
    known |= {port.name: value.array for port, value in zip(program.inputs, feed, strict=True)}
    for place, node in enumerate(model.graph.nodes):
        operands = [known[name] for name in node.inputs]
        if node.op == "Div" and operands[0].dtype.kind in "iu" and (operands[1] == 0).any():
            raise ZeroDivisionError
        with np.errstate(all="ignore"):
            result = np.asarray(OPERATORS[node.op](node, *operands))
        if wrong and wrong.place == place:
            result = np.asarray(result + result.dtype.type(1))
        known[node.outputs[0]] = result
    return tuple(tensor(known[port.name]) for port in program.outputs)


def exactly(model: Model, feed: Feed) -> Program:
    """A Reprogram that takes every output to be exact."""
    del feed
    return to_program(model, exact=[info.name for info in model.graph.outputs])


def case_of(model: Model, *feeds: dict[str, Array]) -> Case:
    program = exactly(model, ())
    return Case(program, tuple(tuple(tensor(feed[port.name]) for port in program.inputs) for feed in feeds))


def pair(disabled: frozenset[str] = frozenset()) -> BuildPair:
    return BuildPair("toy", Build("off"), Build("full", disabled))


def on(build: Build, *names: str) -> bool:
    """Tell whether this build runs all of these passes."""
    return build.level == "full" and build.disabled.isdisjoint(names)


def fuses(model: Model, first: str, second: str) -> int | None:
    """Return the place of a `second` that reads a `first`."""
    made = {name: node.op for node in model.graph.nodes for name in node.outputs}
    for place, node in enumerate(model.graph.nodes):
        if node.op == second and any(made.get(name) == first for name in node.inputs):
            return place
    return None


def wrong_if_fused(first: str, second: str, *passes: str) -> Bug:
    """Wrong results where a `second` reads a `first` and all `passes` are on."""

    def bug(model: Model, build: Build) -> Wrong | None:
        place = fuses(model, first, second)
        return Wrong(place) if place is not None and on(build, *passes) else None

    return bug


def crash_if(op: str, signal: int, stderr: str = "", *passes: str) -> Bug:
    """Death at compile time where the graph has an `op` and all `passes` are on."""

    def bug(model: Model, build: Build) -> Crashed | None:
        present = any(node.op == op for node in model.graph.nodes)
        return Crashed("compile", signal, Observations(stderr=stderr)) if present and on(build, *passes) else None

    return bug


def large_model(seed: int, size: int = 40, planted: Sequence[Node] = ()) -> Model:
    """Return a graph of `size` nodes over [3, 4] floats; `planted` nodes feed the rest from the middle."""
    rng = random.Random(seed)
    values = ["x", "y", "b"]
    nodes: list[Node] = []
    for place in range(size - len(planted)):
        if place == size // 2:
            nodes += planted
            values += [name for node in planted for name in node.outputs]
        op = rng.choice(("Add", "Sub", "Relu", "Neg", "Abs", "Identity"))
        arity = 2 if op in ("Add", "Sub") else 1
        recent = values[-6:]
        nodes.append(Node(op, tuple(rng.choice(recent) for _ in range(arity)), (f"t{place}",), name=f"node_{place}"))
        values.append(f"t{place}")
    used = {name for node in nodes for name in node.inputs}
    outputs = [name for node in nodes for name in node.outputs if name not in used]
    constants = {
        "w": tensor(np.arange(16, dtype=np.float32).reshape(4, 4) - 7),
        "b": tensor(np.full((3, 4), 3, np.float32)),
    }
    inputs = (ValueInfo("x", FLOAT), ValueInfo("y", FLOAT))
    return Model(
        Graph("large", inputs, tuple(ValueInfo(name, FLOAT) for name in outputs), tuple(nodes), constants), {"": 18}
    )


def feed_of(seed: int) -> dict[str, Array]:
    draw = np.random.default_rng(seed)
    return {name: draw.integers(-9, 10, (3, 4)).astype(np.float32) for name in ("x", "y")}


def _int(node: Node, name: str, default: int) -> int:
    return int(node.attributes[name].value) if name in node.attributes else default


def _ints(node: Node, name: str) -> tuple[int, ...] | None:
    return tuple(node.attributes[name].value) if name in node.attributes else None
