"""A compiler that exists on paper: onnx's interpreter, with passes that are functions of the model."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from miscompile.core.case import Case
from miscompile.core.outcome import Observations, Outcome, Values
from miscompile.core.run import Run
from miscompile.core.tensor import Array, tensor
from miscompile.graph.emit import to_program
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.graph.read import read

Fires = Callable[[Model], bool]


@dataclass
class PaperCompiler:
    """A Runner. Each pass fires on the models that its function says; counts what it runs."""

    passes: Mapping[str, Fires]
    runs: list[Run] = field(default_factory=list)

    def run(self, runs: Sequence[Run]) -> list[Outcome]:
        self.runs += runs
        return [self._outcome(run) for run in runs]

    def _outcome(self, run: Run) -> Outcome:
        model = read(run.case.program.payload)
        names = [port.name for port in run.case.program.inputs]
        interpreter = ReferenceEvaluator(onnx.ModelProto.FromString(run.case.program.payload))
        rows = []
        for feed in run.case.feeds:
            given = {name: value.array for name, value in zip(names, feed, strict=True)}
            rows.append(tuple(tensor(np.asarray(result)) for result in interpreter.run(None, given)))
        seen = tuple(name for name, fires in self.passes.items() if run.build.observe and fires(model))
        return Values(tuple(rows), Observations(passes=seen))


def chain(*operators: str) -> Fires:
    """Return a pass that fires where these operators follow each other."""

    def fires(model: Model) -> bool:
        made = {name: node for node in model.graph.nodes for name in node.outputs}

        def ends(node: Node, left: Sequence[str]) -> bool:
            if node.op != left[-1]:
                return False
            return len(left) == 1 or any(name in made and ends(made[name], left[:-1]) for name in node.inputs)

        return any(ends(node, operators) for node in model.graph.nodes)

    return fires


def siblings(op: str) -> Fires:
    """Return a pass that fires where two nodes of `op` read the same first operand."""

    def fires(model: Model) -> bool:
        first = [node.inputs[0] for node in model.graph.nodes if node.op == op]
        return len(set(first)) < len(first)

    return fires


def case(nodes: Sequence[Node], outputs: Sequence[str], constants: Mapping[str, Array], **inputs: Array) -> Case:
    """Return the program of `nodes` fed with `inputs`, which says nothing of its outputs' types."""
    given = {name: tensor(value) for name, value in inputs.items()}
    infos = tuple(ValueInfo(name, TensorType(value.dtype, value.shape)) for name, value in given.items())
    fixed = {name: tensor(value) for name, value in constants.items()}
    graph = Graph("paper", infos, tuple(ValueInfo(name, FLOAT) for name in outputs), tuple(nodes), fixed)
    return Case(to_program(Model(graph, {"": 18}, (), 8)), (tuple(given.values()),), {"source": "paper"})


FLOAT = TensorType("float32", None)
