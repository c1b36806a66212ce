"""Strict generation, the sweep and mixtures: reproducible, valid, within their options and their intervals."""

import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from miscompile.base.errors import UsageError
from miscompile.base.rng import stream
from miscompile.core.case import Case, Program
from miscompile.core.outcome import Outcome
from miscompile.core.tensor import Tensor
from miscompile.core.verdict import Holds, Verdict
from miscompile.graph.check import check
from miscompile.graph.foreign import to_foreign
from miscompile.graph.model import Model, TensorType
from miscompile.graph.read import read
from miscompile.graph.typing import value_types
from miscompile.ops.analysis import analyse
from miscompile.ops.support import Support
from miscompile.producers.combined import Mixture
from miscompile.producers.coverage import Coverage
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.strict import Strict
from miscompile.producers.sweep import Sweep

OPEN = Support(open=True)

DIGESTS = """
from miscompile.base.rng import stream
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.strict import Strict
from miscompile.producers.sweep import Sweep
from miscompile.ops.support import Support
for producer in (Strict(GeneratorOptions(), Support(open=True)), Sweep(GeneratorOptions(), Support(open=True))):
    for index in range(15):
        case = producer.propose(stream(7, "case", index))
        print(case.program.digest, [value.array.tobytes().hex()[:40] for feed in case.feeds for value in feed])
"""


def made(options: GeneratorOptions, count: int, seed: int = 0) -> list[Case]:
    producer = Strict(options, OPEN)
    return [producer.propose(stream(seed, "case", index)) for index in range(count)]


def dtypes(model: Model) -> set[str]:
    """Element types of all values that operators make."""
    types = value_types(model)
    names = {name for node in model.graph.nodes for name in node.outputs}
    return {kind.dtype for name, kind in types.items() if name in names and isinstance(kind, TensorType)}


def test_the_same_seed_makes_the_same_bytes_whatever_the_hash_seed() -> None:
    printed = []
    for hash_seed in ("0", "12345"):
        done = subprocess.run(
            [sys.executable, "-c", DIGESTS],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True, text=True, check=True, timeout=120,
        )  # fmt: skip
        printed.append(done.stdout.splitlines())
    assert printed[0] == printed[1]
    assert len(set(printed[0])) == 30


def test_graphs_obey_the_onnx_rules() -> None:
    for case in made(GeneratorOptions(), 200):
        model = read(case.program.payload)
        check(model)
        assert len(case.program.outputs) >= 1
        assert [port.name for port in case.program.inputs] == [info.name for info in model.graph.inputs]
        for port, value in zip(case.program.inputs, case.feeds[0], strict=True):
            assert (value.dtype, value.shape) == (port.dtype, port.shape)


def test_every_value_lies_in_its_interval() -> None:
    evaluated = 0
    # onnx's reference takes a loop without a condition for one that does not run; bodies have tests of their own.
    options = GeneratorOptions(nodes=5, max_rank=3, max_elements=128, control=0.0)
    for case in made(options, 60, seed=3):
        model = read(case.program.payload)
        feed = {port.name: value for port, value in zip(case.program.inputs, case.feeds[0], strict=True)}
        known = analyse(model, feed)
        try:
            found = ReferenceEvaluator(case.program.payload).run(None, {k: to_foreign(v) for k, v in feed.items()})
        except Exception:  # noqa: BLE001, S112 - onnx's reference lacks many forms, and says so in many ways
            continue
        for port, array in zip(case.program.outputs, map(np.asarray, found), strict=True):
            if port.name not in known or array.dtype.name != port.dtype or array.shape != port.shape or not array.size:
                continue  # a form that the reference gets wrong
            facts, numbers = known[port.name].facts, array.astype(np.float64)
            assert np.isfinite(numbers).all(), (port.name, model.graph.nodes)
            assert facts.lo <= numbers.min(), (port.name, facts, numbers.min())
            assert numbers.max() <= facts.hi, (port.name, facts, numbers.max())
            if facts.integral:
                assert (numbers == np.floor(numbers)).all(), port.name
            evaluated += 1
    assert evaluated > 60


def test_operators_and_dtypes_are_those_asked_for() -> None:
    ops = ("Add", "Relu", "MatMul", "Transpose")
    for case in made(GeneratorOptions(ops=ops, dtypes=("float32",), motifs=0.0, noops=0.0), 40):
        model = read(case.program.payload)
        assert {node.op for node in model.graph.nodes} <= {*ops, "Constant", "Clip", "Abs", "Sigmoid"}
        assert dtypes(model) <= {"float32"}


def test_motifs_and_no_ops_respect_the_restriction_too() -> None:
    ops = ("Add", "Mul", "Relu", "MatMul")
    for case in made(GeneratorOptions(ops=ops, dtypes=("float32", "int32"), motifs=0.5, noops=0.3), 40):
        model = read(case.program.payload)
        assert {node.op for node in model.graph.nodes} <= {*ops, "Constant", "Clip", "Abs", "Sigmoid", "Sign"}


@pytest.mark.parametrize("opset", [13, 17, 22])
def test_the_opset_is_the_one_asked_for(opset: int) -> None:
    for case in made(GeneratorOptions(opsets=(opset,)), 10):
        assert read(case.program.payload).opset == opset
        assert case.recipe["opset"] == opset


def test_ranks_stay_small_when_asked() -> None:
    for case in made(
        GeneratorOptions(max_rank=2, ops=("Add", "Relu", "Concat", "MatMul", "Neg"), motifs=0.0, noops=0.0), 40
    ):
        ranks = [len(port.shape or ()) for port in (*case.program.inputs, *case.program.outputs)]
        assert max(ranks) <= 2


def test_the_number_of_operators_is_about_the_one_asked_for() -> None:
    for nodes in (1, 4, 20):
        counts = [len(read(case.program.payload).graph.nodes) for case in made(GeneratorOptions(nodes=nodes), 20)]
        assert nodes * 0.8 <= sum(counts) / len(counts) <= nodes + 12
        assert min(counts) >= 1


def test_several_feeds_are_drawn() -> None:
    for case in made(GeneratorOptions(feeds=3), 5):
        assert len(case.feeds) == 3


def test_what_cannot_be_generated_is_a_usage_error() -> None:
    for producer in (Strict, Sweep):
        with pytest.raises(UsageError, match="no operator is left"):
            producer(GeneratorOptions(ops=("Not",), dtypes=("float32",)), OPEN)
        with pytest.raises(UsageError, match="no operator is left"):
            producer(GeneratorOptions(), Support())


def test_the_gate_lets_only_new_coverage_in(monkeypatch: pytest.MonkeyPatch) -> None:
    entered: list[int] = []
    add = Coverage.add

    def watched(self: Coverage, op: str, dtype: str, shape: tuple[int, ...], parents: Sequence[str]) -> None:
        entered.append(self.fresh(op, dtype, shape, parents))
        add(self, op, dtype, shape, parents)

    monkeypatch.setattr(Coverage, "add", watched)
    made(GeneratorOptions(guidance="gate", motifs=0.0, noops=0.0, variants=1), 60)
    gated, entered[:] = list(entered), []
    made(GeneratorOptions(guidance="off", motifs=0.0, noops=0.0, variants=1), 60)
    assert len(gated) > 300
    assert gated.count(0) <= len(gated) * 0.02  # the gate opens only after many refusals in a row
    assert entered.count(0) > gated.count(0)


def test_guidance_covers_more_than_chance() -> None:
    scores = {}
    for guidance in ("gate", "steer", "off"):
        producer = Strict(GeneratorOptions(guidance=guidance, motifs=0.0, noops=0.0), OPEN)
        for index in range(100):
            producer.propose(stream(0, "case", index))
        scores[guidance] = len(producer.coverage.dtypes)
    assert scores["steer"] > scores["off"]


def test_coverage_counts_pairs_shapes_and_edges() -> None:
    coverage = Coverage()
    assert coverage.fresh("Add", "float32", (2,), ["Relu", ""]) == 3
    coverage.add("Add", "float32", (2,), ["Relu", ""])
    assert coverage.fresh("Add", "float32", (2,), ["Relu"]) == 0
    assert coverage.fresh("Add", "float32", (3,), ["Neg"]) == 2
    assert coverage.score == 3
    used, unused = ("Add", "float32"), ("Sub", "float32")
    chosen = Counter(coverage.choose(random.Random(seed), [used, unused]) for seed in range(400))
    assert chosen[unused] > 250
    even = Counter(coverage.choose(random.Random(seed), [used, unused], looks=1) for seed in range(400))
    assert 150 < even[used] < 250


# The sweep ------------------------------------------------------------------------------------------------------------


def test_the_sweep_visits_every_operator_and_dtype_before_any_twice() -> None:
    ops = ("Add", "Relu", "Concat", "Softmax", "ReduceSum", "Cast")
    options = GeneratorOptions(ops=ops, dtypes=("float32", "int32", "uint8"), opsets=(21,))
    sweep = Sweep(options, OPEN)
    pairs = len(list(sweep._pairs()))
    first = [sweep.propose(stream(0, "sweep", index)) for index in range(pairs)]
    seen = Counter((case.recipe["op"], case.program.inputs[0].dtype) for case in first if case.program.inputs)
    assert {case.recipe["op"] for case in first} == set(ops)
    assert len(first) == pairs > 12
    assert max(seen.values()) <= 4  # guards and constants may hide the main operand


def test_new_combinations_come_first() -> None:
    sweep = Sweep(GeneratorOptions(ops=("Conv", "Concat", "Resize"), opsets=(18, 21)), OPEN)
    fresh: list[int] = []
    known: set[tuple[str, str]] = set()
    for index in range(320):
        case = sweep.propose(stream(0, "sweep", index))
        pairs = set(combinations(sorted(_features(case)), 2))
        fresh.append(len(pairs - known))
        known |= pairs
    quarters = [sum(fresh[place : place + 80]) for place in range(0, 320, 80)]
    assert quarters[0] > quarters[1] > quarters[3]


def _features(case: Case) -> set[str]:
    model = read(case.program.payload)
    found = {f"opset{model.opset}"}
    for node in model.graph.nodes:
        found |= {f"{node.op}{len(node.inputs)}"}
        found |= {
            f"{node.op}.{name}={value.value}" for name, value in node.attributes.items() if value.kind != "tensor"
        }
    return found | {f"{port.dtype}{len(port.shape or ())}" for port in case.program.inputs}


def test_sweep_cases_are_valid_and_their_outputs_complete() -> None:
    sweep = Sweep(GeneratorOptions(), OPEN)
    for index in range(120):
        case = sweep.propose(stream(1, "sweep", index))
        model = read(case.program.payload)
        check(model)
        calls = [node for node in model.graph.nodes if node.op == case.recipe["op"]]
        assert calls
        assert {name for name in calls[-1].outputs if name} <= {port.name for port in case.program.outputs}


# Mixtures -------------------------------------------------------------------------------------------------------------


class Named:
    """A producer that signs its cases and counts what it is told."""

    def __init__(self, name: str) -> None:
        self.name, self.told = name, 0

    def propose(self, rng: random.Random) -> Case:
        return Case(Program("none", b"", (), ()), ((),), {"producer": self.name, "draw": rng.random()})

    def learn(self, case: Case, outcomes: Sequence[Outcome], verdict: Verdict) -> None:
        self.told += 1


def test_shares_are_kept_and_everybody_learns() -> None:
    parts = [Named(name) for name in "abc"]
    mixture = Mixture(tuple(zip(parts, (1.0, 0.15, 3.0), strict=True)))
    rng = random.Random(0)
    counts = Counter(mixture.propose(rng).recipe["producer"] for _ in range(4000))
    for name, share in zip("abc", (1.0, 0.15, 3.0), strict=True):
        assert counts[name] / 4000 == pytest.approx(share / 4.15, abs=0.03)
    mixture.learn(parts[0].propose(rng), [], Holds())
    assert [part.told for part in parts] == [1, 1, 1]


def test_a_share_of_zero_is_never_drawn() -> None:
    mixture = Mixture(((Named("a"), 0.0), (Named("b"), 1.0)))
    rng = random.Random(0)
    assert {mixture.propose(rng).recipe["producer"] for _ in range(200)} == {"b"}


class Exhausted(Named):
    """A producer that has nothing to propose."""

    def propose(self, rng: random.Random) -> Case:
        raise UsageError(f"{self.name} has nothing")


def test_a_part_that_has_nothing_to_propose_drops_out_but_for_the_last() -> None:
    mixture = Mixture(((Exhausted("a"), 5.0), (Named("b"), 1.0), (Exhausted("c"), 5.0)))
    rng = random.Random(0)
    assert {mixture.propose(rng).recipe["producer"] for _ in range(50)} == {"b"}
    assert len(mixture.parts) < 3
    with pytest.raises(UsageError, match="a has nothing"):
        Mixture(((Exhausted("a"), 1.0),)).propose(rng)


def test_feeds_hold_what_their_ports_say() -> None:
    for case in made(GeneratorOptions(zero_size=0.2), 30, seed=9):
        for feed in case.feeds:
            assert all(isinstance(value, Tensor) for value in feed)
            assert [value.shape for value in feed] == [port.shape for port in case.program.inputs]
