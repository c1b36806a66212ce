"""Cases, runs and results for the tests of oracles, which need no program that could really run."""

from typing import Any

import numpy as np

from miscompile.core.case import Case, Port, Program
from miscompile.core.outcome import Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Tensor, tensor
from miscompile.graph.attributes import attributes
from miscompile.graph.emit import emit
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo

OFF, FULL = Build("off"), Build("full")


def case(dtype: str = "float32", shape: tuple[int, ...] = (3,), *, exact: bool = False, outputs: int = 1) -> Case:
    """A case of `outputs` calls of Relu, y0, y1, ..., on one input x."""
    kind = TensorType(dtype, shape)
    names = [f"y{place}" for place in range(outputs)]
    graph = Graph(
        "g",
        (ValueInfo("x", kind),),
        tuple(ValueInfo(name, kind) for name in names),
        tuple(Node("Relu", ("x",), (name,)) for name in names),
    )
    program = Program(
        "onnx",
        emit(Model(graph, {"": 18})),
        (Port("x", dtype, shape),),
        tuple(Port(name, dtype, shape, exact) for name in names),
    )
    return Case(program, ((tensor(np.ones(shape), dtype),),))


def pair_of_runs(item: Case | None = None) -> tuple[Run, Run]:
    """The reference run and the optimised run of a case."""
    known = item or case()
    return Run(known, "toy", OFF), Run(known, "toy", FULL)


def values(*outputs: Any, dtype: str = "float32") -> Values:
    """Results of one feed; None is a missing output."""
    return Values((tuple(one if one is None or isinstance(one, Tensor) else full(one, dtype) for one in outputs),))


def full(numbers: Any, dtype: str = "float32") -> Tensor:
    """A tensor of `dtype` with these numbers."""
    return tensor(np.asarray(numbers), dtype)


def node(op: str, inputs: str, outputs: str, **given: Any) -> Node:
    """A call; names are separated by blanks, `_` is a left-out input."""
    names = tuple("" if name == "_" else name for name in inputs.split())
    return Node(op, names, tuple(outputs.split()), attributes(given))
