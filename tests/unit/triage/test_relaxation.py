"""Predicates made from reduced programs: what need not hold is relaxed, and the toy's bugs are recognised again."""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "targets" / "toy"))

from toy_bench import InProcessRunner
from toy_faults import CASES

from miscompile.base.rng import stream
from miscompile.core.case import Case
from miscompile.core.examination import examine
from miscompile.core.outcome import Outcome, Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import tensor
from miscompile.core.verdict import Evidence, Violated
from miscompile.graph.emit import to_program
from miscompile.graph.read import read
from miscompile.graph.text.parser import parse_model
from miscompile.ops.analysis import reprogram
from miscompile.oracles.pair import BuildPair
from miscompile.triage.predicate import FLOATS, BugPredicate, described, predicate_from
from miscompile.triage.reduce.draft import put_together, take_apart, tidy
from miscompile.triage.reduce.engine import Budget
from miscompile.triage.reduce.graphs import GraphDrafts
from miscompile.triage.relaxation import MOST_NODES, predicate_of, relaxations, unshared


def predicate(name: str, culprits: Sequence[str], tries: int = 200) -> BugPredicate:
    target = f"toy{{bugs={name}}}"
    runner, case = InProcessRunner(target), CASES[name]
    case = put_together(tidy(take_apart(case)), reprogram, {})
    held = BuildPair(target, Build("off"), Build("full"))
    seen = examine(case, held, runner, stream(0, "x"))
    assert isinstance(seen.verdict, Violated)
    found = predicate_of(
        case, held, seen.verdict.evidence, seen.faulty, tuple(culprits), GraphDrafts(runner, reprogram), runner, 0,
        Budget(tries),
    )  # fmt: skip
    assert found is not None
    assert found.matches(described(read(case.program.payload)))
    return found


def test_types_sizes_and_ranks_that_do_not_matter_are_no_conditions() -> None:
    found = predicate("sub_commutes", ["OperandOrdering"])
    assert [node.op for node in found.nodes] == ["Sub"]
    for value in found.values.values():
        assert (value.rank, value.shape) == (None, None)
        assert value.dtype in (FLOATS, None)


def test_without_budget_every_condition_stays() -> None:
    found = predicate("sub_commutes", ["OperandOrdering"], tries=0)
    assert {value.dtype for value in found.values.values()} == {"float32"}
    assert {value.shape for value in found.values.values()} == {(3,)}


@pytest.mark.parametrize(
    ("name", "culprits"),
    [
        ("reshape_merge_zero", ["ReshapeMerging"]),
        ("bias_inside_activation", ["ActivationFusion", "MatMulAddFusion"]),
        ("mul_zero_drops_broadcast", []),
    ],
)
def test_a_predicate_recognises_its_own_program_and_not_another(name: str, culprits: list[str]) -> None:
    found = predicate(name, culprits)
    own = {node.op for node in found.nodes}
    programs = [read(case.program.payload) for case in CASES.values()]
    others = [model for model in programs if own.isdisjoint(node.op for node in model.graph.nodes)]
    assert others
    assert not any(found.matches(described(model)) for model in others)


def test_a_zero_that_the_bug_needs_stays_a_condition() -> None:
    found = predicate("mul_zero_drops_broadcast", [])
    assert any(value.constant and value.elements == (0,) for value in found.values.values()), found.values


def test_each_operand_gets_a_leaf_of_its_own() -> None:
    text = """ir 10
opset 18

graph g(%x: float32[2]) -> (%b: float32[2]) {
  init %c: float32[2] = [1.0, 2.0]
  %a = Add(%x, %c)
  %b = Mul(%c, %x)
}
"""
    model = parse_model(text)
    case = Case(to_program(model), ((tensor(np.array([1, 2], np.float32)),),))
    apart = unshared(take_apart(case))
    names = [name for node in apart.graph.nodes for name in node.inputs]
    assert len(set(names)) == 4
    assert len(apart.feeds[0]) == 2
    assert len(apart.graph.initializers) == 2


def test_relaxations_are_many_and_never_the_draft_itself() -> None:
    case = CASES["reshape_merge_zero"]
    draft = take_apart(case)
    found = [one.draft.digest for one in relaxations(draft)]
    assert len(found) > 5
    assert draft.digest not in found


def test_a_large_program_has_no_predicate() -> None:
    nodes = "\n".join(f"  %v{n + 1} = Neg(%v{n})" for n in range(MOST_NODES + 1))
    text = f"ir 10\nopset 18\n\ngraph g(%v0: float32[2]) -> (%v{MOST_NODES + 1}: float32[2]) {{\n{nodes}\n}}\n"
    case = Case(to_program(parse_model(text)), ((tensor(np.array([1, 2], np.float32)),),))
    runner = InProcessRunner("toy")
    held = BuildPair("toy", Build("off"), Build("full"))
    evidence = Evidence("wrong", "exact", "m", Run(case, "toy", Build("full")), Run(case, "toy", Build("off")), "v")
    assert predicate_of(case, held, evidence, None, (), GraphDrafts(runner, reprogram), runner, 0, Budget(5)) is None


class _ScalarsForEmptyConstants:
    """A compiler whose optimised builds give a scalar for an output that is a constant without elements."""

    def __init__(self) -> None:
        self._sound = InProcessRunner("toy")

    def run(self, runs: Sequence[Run]) -> list[Outcome]:
        return [self._one(run) for run in runs]

    def _one(self, run: Run) -> Outcome:
        (outcome,) = self._sound.run([run])
        constants = read(run.case.program.payload).graph.initializers
        if run.build.level == "off" or not isinstance(outcome, Values):
            return outcome
        wrong = [port.name in constants and not constants[port.name].array.size for port in run.case.program.outputs]
        scalar = tensor(np.array(0, np.float32))
        return Values(
            tuple(tuple(scalar if bad else one for bad, one in zip(wrong, row, strict=True)) for row in outcome.results)
        )


def test_a_constant_alone_has_a_predicate_that_holds_whatever_reads_it() -> None:
    def program(shape: str, output: str, *calls: str) -> Case:
        lines = [f"graph g() -> (%{output}: float32{shape}) {{", f"  init %c: float32{shape} = []", *calls, "}"]
        return Case(to_program(parse_model("ir 10\nopset 18\n\n" + "\n".join(lines) + "\n")), ((),))

    case, runner = program("[0]", "c"), _ScalarsForEmptyConstants()
    held = BuildPair("toy", Build("off"), Build("full"))
    seen = examine(case, held, runner, stream(0, "x"))
    assert isinstance(seen.verdict, Violated)
    drafts = GraphDrafts(InProcessRunner("toy"), reprogram)
    found = predicate_of(case, held, seen.verdict.evidence, seen.faulty, (), drafts, runner, 0, Budget(100))
    assert found is not None
    assert (found.nodes, [value.elements for value in found.values.values()]) == ((), [()])
    for other in (case, program("[3,0]", "c"), program("[2,0,4]", "y", "  %y = Neg(%c)")):
        assert found.matches(described(read(other.program.payload)))
    full = "ir 10\nopset 18\n\ngraph g() -> (%c: float32[1]) {\n  init %c: float32[1] = [1.0]\n}\n"
    assert not found.matches(described(parse_model(full)))
    assert predicate_from(found.as_json()) == found
