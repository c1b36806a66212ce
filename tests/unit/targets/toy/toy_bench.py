"""What the toy's tests share: a short way to write models, and a runner in this process."""

from collections.abc import Mapping, Sequence
from types import TracebackType

import numpy as np
from numpy.typing import ArrayLike

from miscompile.base.dtypes import DTYPES
from miscompile.core.case import Case, Port, Program
from miscompile.core.outcome import Observations, Outcome, Raised, Rejected, Stage, Unsupported, Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Tensor, tensor
from miscompile.graph.attributes import PlainValue, attributes
from miscompile.graph.emit import emit
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.targets.known import known
from miscompile.targets.registry import parse_target
from miscompile.targets.toy.adapter import ToyAdapter


def node(op: str, inputs: str, outputs: str, **values: PlainValue | None) -> Node:
    """Write a call; names are separated by blanks, `_` is a left-out input, `to` takes the name of a dtype."""
    to = values.get("to")
    if isinstance(to, str):
        values["to"] = DTYPES[to].code
    names = tuple("" if name == "_" else name for name in inputs.split())
    return Node(op, names, tuple(outputs.split()), attributes(values))


def case(
    nodes: Sequence[Node],
    feed: Mapping[str, ArrayLike],
    outputs: str,
    constants: Mapping[str, ArrayLike] | None = None,
    opset: int = 21,
) -> Case:
    """Make a case with one feed; the types of outputs are left to inference."""
    given = {name: tensor(np.asarray(value)) for name, value in feed.items()}
    graph = Graph(
        "g",
        tuple(ValueInfo(name, TensorType(value.dtype, value.shape)) for name, value in given.items()),
        tuple(ValueInfo(name, None) for name in outputs.split()),
        tuple(nodes),
        {name: tensor(np.asarray(value)) for name, value in (constants or {}).items()},
    )
    program = Program(
        "onnx",
        emit(Model(graph, {"": opset})),
        tuple(Port(name, value.dtype, value.shape) for name, value in given.items()),
        tuple(Port(name, "float32", None) for name in outputs.split()),
    )
    return Case(program, (tuple(given.values()),))


def compute(item: Case, build: Build, bugs: str = "none", optimiser: str = "plain") -> tuple[Tensor | None, ...]:
    """Build and run `item` on its first feed, letting every error through."""
    return ToyAdapter(bugs, optimiser).build(item.program, build).run(item.feeds[0])


def fired(item: Case, build: Build | None = None, optimiser: str = "plain") -> tuple[str, ...]:
    """Build `item` and return the passes that changed it."""
    adapter = ToyAdapter(optimiser=optimiser)
    adapter.build(item.program, build or Build())
    return adapter.fired("")


class InProcessRunner:
    """A Runner that drives the toy's adapter directly. A context manager, so that the conformance kit can open it."""

    def __init__(self, target: str) -> None:
        self._adapter = ToyAdapter(**parse_target(target).options)

    def __enter__(self) -> "InProcessRunner":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        return None

    def run(self, runs: Sequence[Run]) -> list[Outcome]:
        """Return one outcome for each run."""
        return [self._one(run) for run in runs]

    def _one(self, run: Run) -> Outcome:
        stage: Stage = "compile"
        try:
            session = self._adapter.build(run.case.program, run.build)
            stage = "run"
            results = tuple(session.run(feed) for feed in run.case.feeds)
        except Exception as error:  # noqa: BLE001 - faults raise whatever they like
            kind, message = type(error).__name__, str(error)
            rejection = known("toy").rejection(kind, message)
            if rejection is None:
                return Raised(stage, kind, message)
            return (Unsupported if rejection.status == "unsupported" else Rejected)(stage, message)
        passes = self._adapter.fired("") if run.build.observe else ()
        return Values(results, Observations(passes=passes))
