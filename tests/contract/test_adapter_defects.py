"""Errors that arise in an adapter's own code are defects of this tool, and never findings."""

import numpy as np
import pytest

from miscompile.core.case import Case
from miscompile.core.outcome import Defect
from miscompile.core.run import Build, Run
from miscompile.core.tensor import tensor
from miscompile.core.verdict import Inconclusive
from miscompile.execution.pool import LocalPool
from miscompile.graph.emit import to_program
from miscompile.graph.text.parser import parse_model
from miscompile.oracles.judge import ADAPTER, judge_pair
from miscompile.targets.registry import about, installed

PROGRAM = """ir 10
opset 18

graph g(%p: float32[2]) -> (%r: float32[2]) {
  %r = Relu(%p)
}
"""


@pytest.mark.parametrize("target", ["onnxruntime", "openvino", "xla", "inductor"])
def test_a_level_that_the_adapter_does_not_know_is_a_defect(target: str) -> None:
    if not all(map(installed, about(target).distributions)):
        pytest.skip(f"{target} is not installed")
    case = Case(to_program(parse_model(PROGRAM)), ((tensor(np.zeros(2, np.float32)),),))
    runs = [Run(case, target, Build(level)) for level in ("off", "no such level")]
    with LocalPool(target) as pool:
        outcomes = pool.run(runs)
    assert isinstance(outcomes[1], Defect)
    assert outcomes[1].kind == "KeyError"
    assert judge_pair(runs, outcomes, "strict") == Inconclusive(ADAPTER)
    assert judge_pair(runs[::-1], outcomes[::-1], "strict") == Inconclusive(ADAPTER)
