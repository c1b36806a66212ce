"""A finding that was reduced to a plainer build than it was seen with can be triaged again."""

import random
from pathlib import Path

import numpy as np
import pytest

from miscompile.core.case import Case
from miscompile.core.examination import examine
from miscompile.core.run import Build
from miscompile.core.tensor import tensor
from miscompile.core.verdict import Holds, Violated
from miscompile.graph.emit import to_program
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.graph.read import read
from miscompile.oracles.pair import BuildPair
from miscompile.targets.registry import parse_target
from miscompile.triage.attribution import to_stored
from miscompile.triage.conclude import triage
from miscompile.triage.reduce.engine import Budget
from miscompile.triage.settings import TriageSettings
from miscompile.triage.signature import signature_of

pytestmark = pytest.mark.process

TARGET = "toy{bugs=sub_commutes}"
CULPRIT = "OperandOrdering"


def difference_of_constants() -> Case:
    """Subtract constants, which the default build folds before it orders the operands of calls."""
    constants = {name: tensor(np.array(values, np.float32)) for name, values in {"a": (1, 2), "b": (5, 7)}.items()}
    nodes = (Node("Sub", ("b", "a"), ("y",)), Node("Add", ("x", "y"), ("z",)))
    vector = TensorType("float32", (2,))
    graph = Graph("g", (ValueInfo("x", vector),), (ValueInfo("z", vector),), nodes, constants)
    return Case(to_program(Model(graph, {"": 17}, ir_version=8)), ((tensor(np.zeros(2, np.float32)),),))


def test_a_finding_stays_confirmed_when_it_is_triaged_again(tmp_path: Path) -> None:
    case = difference_of_constants()
    settings = TriageSettings(tmp_path, (TARGET,))
    others = frozenset(parse_target(TARGET).about.passes) - {CULPRIT}
    default = BuildPair(TARGET, Build("off"), Build("full"))
    with settings.pool() as pool:
        assert isinstance(examine(case, default, pool, random.Random(0)).verdict, Holds)
        seen = examine(case, default.with_faulty(Build("full", others)), pool, random.Random(0))
        assert isinstance(seen.verdict, Violated)
        signature = signature_of(seen.verdict.evidence, seen.faulty, (CULPRIT,), read(case.program.payload))
        pending = to_stored(seen.verdict.evidence, signature, case, {"numpy": np.__version__}, settings.context)
        once = triage(pending, settings, pool, Budget(100)).stored
        again = triage(once, settings, pool, Budget(100)).stored
    assert once.finding.facts["faulty"]["disabled"] == []
    for stored in (once, again):
        assert stored.status == "confirmed", stored.finding.facts.get("unconfirmed")
        assert stored.original == case
        assert stored.finding.property.signature.culprits == (CULPRIT,)
