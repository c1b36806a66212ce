"""What the runs with guarded memory say, and what is no violation of memory safety."""

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from oracle_cases import case, values

from miscompile.base.specs import Spec
from miscompile.core.examination import examine
from miscompile.core.outcome import Crashed, Observations, Outcome, Raised, TimedOut
from miscompile.core.run import Build, Run
from miscompile.core.verdict import Holds, Inconclusive, Verdict, Violated
from miscompile.graph.emit import emit
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.oracles.conformance import check_oracle
from miscompile.oracles.kinds import OracleContext
from miscompile.oracles.memory import KIND, MemorySafety, access_of
from miscompile.triage.signature import signature_of

RIGHT = values([1.0, 2.0, 3.0])
READ = "guard: reads behind the end of input 'x' (12 bytes) at byte 12, in libonnxruntime.so+0x12"


class _Guarding:
    """A runner that gives `outcome` for runs with guards, and right values for others."""

    def __init__(self, outcome: Outcome | None = None) -> None:
        self.outcome = outcome

    def run(self, runs: Sequence[Run]) -> list[Outcome]:
        return [self.outcome if self.outcome and run.build.transform else RIGHT for run in runs]


def _died(stderr: str, signal: int = 11) -> Crashed:
    return Crashed("run", signal, Observations(stderr=stderr))


def _judged(*guarded: Outcome, usual: Outcome = RIGHT, only: str = "") -> Verdict:
    oracle = MemorySafety("toy", only=only)
    return oracle.judge(oracle.plan(case(), random.Random(0)), [usual, *guarded])


def test_the_oracle_conforms() -> None:
    check_oracle(KIND, _Guarding(), _Guarding(_died(READ)), [case()], OracleContext(("toy",)))


def test_the_two_runs_with_guards_differ_in_the_content_of_fresh_memory_alone() -> None:
    oracle = MemorySafety("toy")
    places = set()
    for seed in range(20):
        usual, first, second = oracle.plan(case(), random.Random(seed))
        assert usual.build == Build()
        assert first.build.transform is not None
        assert second.build.transform is not None
        left, right = dict(first.build.transform.options), dict(second.build.transform.options)
        assert left.pop("fill") != right.pop("fill")
        assert left == right
        places.add(left["place"])
    assert places == {"end", "begin", "aligned"}


@pytest.mark.parametrize(
    ("outcome", "kind", "role"),
    [
        (_died(READ), "read behind", "input"),
        (_died("x\nguard: writes behind the end of output 'y' (4 bytes) at byte 8\ny"), "write behind", "output"),
        (_died("guard: reads before the beginning of initializer 'a b' (4 bytes) at byte -4"), "read before",
         "initializer"),
        (_died("guard: writes into input 'x' (4 bytes) at byte 0"), "write into", "input"),
        (_died("guard: touches behind the end of input 'x' (4 bytes) at byte 4"), "read behind", "input"),
        (_died("malloc(): corrupted top size", 6), "heap", ""),
        (_died("guard: reads memory that is near no guarded array, in a.so+0x1"), "crash", ""),
        (Raised("run", "OverrunError", "guard: writes behind the end of output 'y' (4 bytes) at byte 9"),
         "write behind", "output"),
    ],
)  # fmt: skip
def test_classes(outcome: Outcome, kind: str, role: str) -> None:
    found = access_of(outcome)
    assert found is not None
    assert (found.kind, found.role) == (kind, role)
    verdict = _judged(outcome, outcome)
    assert isinstance(verdict, Violated)
    evidence = verdict.evidence
    assert evidence.kind == ("death" if isinstance(outcome, Crashed) else "exception")
    signature = signature_of(evidence, outcome)
    assert (signature.stage, signature.text) == (kind, role)
    assert KIND.hold(KIND.options(), evidence, OracleContext(("toy",)), {}).only == kind  # type: ignore[attr-defined]


def test_a_result_that_depends_on_fresh_memory_is_a_violation() -> None:
    verdict = _judged(RIGHT, values([1.0, 2.0, 0.75]))
    assert isinstance(verdict, Violated)
    evidence = verdict.evidence
    assert (evidence.kind, evidence.rule, evidence.output) == ("wrong", "memory", "y0")
    assert evidence.reference is not None
    assert evidence.reference.build.transform is not None
    assert evidence.reference.build.transform.name == "guarded"
    assert evidence.message.startswith("uninitialised: output 'y0' depends on the content of fresh memory")


def test_rounding_is_no_violation_and_neither_is_a_run_without_guards() -> None:
    assert _judged(RIGHT, values([1.0, 2.0, 3.0 + 2.0**-20])) == Holds()
    assert _judged(RIGHT, RIGHT, usual=values([7.0, 7.0, 7.0])) == Holds()
    nan = values([float("nan"), 2.0, np.inf])
    assert _judged(nan, nan) == Holds()


def test_failures_that_say_nothing_about_memory_are_not_judged() -> None:
    failed = Raised("run", "Fail", "no such kernel")
    assert _judged(failed, failed, usual=failed) == Inconclusive("raised without guards")
    assert _judged(failed, failed) == Inconclusive("raised with guards", "no such kernel")
    assert _judged(TimedOut("run", 5.0), RIGHT) == Inconclusive("timedout with guards")
    read_inside = _died("guard: reads into input 'x' (4 bytes) at byte 0")
    assert _judged(read_inside, RIGHT) == Inconclusive("crashed with guards")
    assert _judged(_died(READ), RIGHT, usual=values([1.0])) == Inconclusive("undeclared types without guards")


def test_another_class_is_not_the_violation_of_a_finding() -> None:
    assert _judged(_died(READ), RIGHT, only="heap") == Inconclusive("another violation of memory: read behind")
    assert _judged(RIGHT, values([0.0, 0.0, 0.0]), only="heap") == Holds("another violation of memory")
    assert isinstance(_judged(_died(READ), RIGHT, only="read behind"), Violated)


def test_random_programs_are_not_compared() -> None:
    kind = TensorType("float32", (3,))
    graph = Graph("g", (ValueInfo("x", kind),), (ValueInfo("y0", kind),), (Node("Bernoulli", ("x",), ("y0",)),))
    drawn = case()
    drawn = replace(drawn, program=replace(drawn.program, payload=emit(Model(graph, {"": 18}))))
    oracle = MemorySafety("toy")
    runs = oracle.plan(drawn, random.Random(0))
    other = values([1.0, 2.0, 9.0])
    assert oracle.judge(runs, [RIGHT, RIGHT, other]) == Inconclusive("the program is random")


def test_the_property_of_another_build_keeps_the_transform() -> None:
    seen = examine(case(), MemorySafety("toy"), _Guarding(_died(READ)), random.Random(0))
    assert isinstance(seen.verdict, Violated)
    held = KIND.hold(KIND.options(), seen.verdict.evidence, OracleContext(("toy",)), {})
    other = held.with_faulty(replace(held.faulty, disabled=frozenset({"Pass"})))
    assert other.faulty.disabled == {"Pass"}
    assert other.faulty.transform == held.faulty.transform
    assert isinstance(other.faulty.transform, Spec)
    assert isinstance(examine(case(), other, _Guarding(_died(READ)), random.Random(0)).verdict, Violated)
