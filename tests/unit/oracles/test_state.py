"""The bits of a build do not depend on how often, and in which way, it is used."""

import random
from collections.abc import Sequence
from dataclasses import replace

from oracle_cases import case, values

from miscompile.base.specs import Spec
from miscompile.core.examination import examine
from miscompile.core.outcome import Outcome, Raised
from miscompile.core.run import Run
from miscompile.core.verdict import Inconclusive, Violated
from miscompile.graph.emit import emit
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.oracles.conformance import check_oracle
from miscompile.oracles.kinds import OracleContext
from miscompile.oracles.registry import hold
from miscompile.oracles.state import KIND, SameBits


class _Used:
    """A runner whose results change in the last place where a build is used again, if it is `forgetful`."""

    def __init__(self, forgetful: bool) -> None:
        self.forgetful = forgetful

    def run(self, runs: Sequence[Run]) -> list[Outcome]:
        again = [self.forgetful and run.build.transform is not None for run in runs]
        return [values([1.0 + 2.0**-23 if late else 1.0] * 3) for late in again]


def test_the_oracle_conforms() -> None:
    check_oracle(KIND, _Used(False), _Used(True), [case()], OracleContext(("toy",)))


def test_the_ways_of_the_target_are_drawn() -> None:
    assert KIND.make is not None
    oracle = KIND.make(KIND.options(), OracleContext(("onnxruntime",)))
    drawn = {run.build.transform for seed in range(40) for run in oracle.plan(case(), random.Random(seed))}
    assert drawn == {None, Spec("again"), Spec("concurrent"), Spec("bound")}


def test_the_last_place_counts_and_the_message_names_the_output() -> None:
    verdict = examine(case(), SameBits("toy"), _Used(True), random.Random(0)).verdict
    assert isinstance(verdict, Violated)
    assert (verdict.evidence.kind, verdict.evidence.rule, verdict.evidence.output) == ("wrong", "bits", "y0")


def test_random_programs_and_failures_of_the_plain_run_are_not_judged() -> None:
    kind = TensorType("float32", (3,))
    graph = Graph("g", (ValueInfo("x", kind),), (ValueInfo("y0", kind),), (Node("Bernoulli", ("x",), ("y0",)),))
    drawn = case()
    drawn = replace(drawn, program=replace(drawn.program, payload=emit(Model(graph, {"": 18}))))
    assert examine(drawn, SameBits("toy"), _Used(True), random.Random(0)).verdict == Inconclusive(
        "the program is random"
    )
    runs = SameBits("toy").plan(case(), random.Random(0))
    failed = Raised("run", "Error", "no")
    assert SameBits("toy").judge(runs, [failed, failed]) == Inconclusive("raised in a plain run")
    shapeless = [values([1.0, 2.0]), values([1.0, 2.0])]
    assert SameBits("toy").judge(runs, shapeless) == Inconclusive("undeclared types in a plain run")


def test_the_property_of_a_finding_compares_a_build_with_itself_whatever_passes_are_off() -> None:
    """Two builds with other passes round otherwise, so that reduction and bisection must never compare two."""
    found = examine(case(), SameBits("toy"), _Used(True), random.Random(0)).verdict
    assert isinstance(found, Violated)
    held = hold("state", found.evidence, OracleContext(("toy",)))
    without = held.with_faulty(replace(held.faulty, disabled=frozenset({"ConstantFolding"})))
    for one in (held, without):
        plain, again = (run.build for run in one.plan(case(), random.Random(1)))
        assert (plain, again) == (replace(one.faulty, transform=None), replace(plain, transform=Spec("again")))
