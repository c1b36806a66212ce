"""Folds that XLA has put behind fast math: the check of special values sees them before the release with the change.

openxla/xla#42732 (inverse functions) is in jaxlib 0.11.1, openxla/xla#48186 (exponentials) in jaxlib 0.11.2.
"""

import random
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

import numpy as np
import pytest

from miscompile.core.case import Case, Port, Program
from miscompile.core.examination import examine
from miscompile.core.tensor import tensor
from miscompile.core.verdict import Holds, Violated
from miscompile.execution.pool import LocalPool
from miscompile.graph.attributes import attributes
from miscompile.graph.emit import emit
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.oracles.special import Special

pytestmark = [
    pytest.mark.compiler,
    pytest.mark.process,
    pytest.mark.skipif(find_spec("jax") is None, reason="JAX is not installed here"),
]


def _release() -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in version("jaxlib").split(".")[:3])
    except PackageNotFoundError:
        return ()


_INVERSE, _EXPONENTIALS = (0, 11, 1), (0, 11, 2)

FOLDS = {
    "log of exp": (["Exp x a", "Log a y"], 89.0, _INVERSE),
    "root of a square": (["Mul x x a", "Sqrt a y"], 1e30, _INVERSE),
    "product of exp": (["Neg x n", "Exp x a", "Exp n b", "Mul a b y"], 100.0, _EXPONENTIALS),
    "quotient of exp": (["Exp x a", "Div a a y"], 100.0, _EXPONENTIALS),
}
"""Calls (operator, operands, result), an input, and the first release of jaxlib without the fold."""


@pytest.fixture(scope="module")
def pool() -> Iterator[LocalPool]:
    with LocalPool("xla") as opened:
        yield opened


def folded(calls: list[str], number: float) -> Case:
    nodes = []
    for call in calls:
        op, *operands, result = call.split()
        nodes.append(Node(op, tuple(operands), (result,), attributes({})))
    kind = TensorType("float32", (4,))
    graph = Graph("g", (ValueInfo("x", kind),), (ValueInfo("y", kind),), tuple(nodes))
    ports = (Port("x", "float32", (4,)),), (Port("y", "float32", (4,)),)
    fed = tensor(np.array([0.5, 1.0, number, 2.0], np.float32))
    return Case(Program("onnx", emit(Model(graph, {"": 18})), *ports), ((fed,),), {"oracle": "special"})


@pytest.mark.parametrize("name", FOLDS)
def test_the_fold_is_seen_before_its_fix_and_not_after(pool: LocalPool, name: str) -> None:
    calls, number, fixed = FOLDS[name]
    verdict = examine(folded(calls, number), Special("xla"), pool, random.Random(0)).verdict
    if _release() >= fixed:
        assert verdict == Holds()
    else:
        assert isinstance(verdict, Violated)
        assert verdict.evidence.details["element"] == 2
        assert verdict.evidence.details["policy"]["status"] == "accepted"
