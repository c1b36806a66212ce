"""The arms of a campaign, the cases that they make, and what their tests are credited with."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from miscompile.api.plans import validate
from miscompile.base.errors import UsageError
from miscompile.base.rng import stream
from miscompile.base.specs import parse_spec
from miscompile.core.arms import ArmYield, arms_json, arms_rows
from miscompile.core.ports import Producer
from miscompile.engine.arms import arms_of
from miscompile.engine.bandit import EVERYDAY
from miscompile.engine.division import EVERY, Division
from miscompile.engine.plan import Plan
from miscompile.engine.wiring import make_oracle, make_producer
from miscompile.graph.model import TensorType
from miscompile.graph.read import read
from miscompile.ops import everyday
from miscompile.ops.registry import specs
from miscompile.ops.support import Support
from miscompile.oracles.differential import Differential
from miscompile.oracles.dynamic import Dynamic
from miscompile.oracles.majority import REFERENCE
from miscompile.oracles.optimisation import Optimisation
from miscompile.producers.scheduled import Scheduled, ScheduledArm

PLAN = Plan("toy", schedule=True)
OPEN = Support(open=True)


def names(plan: Plan) -> set[str]:
    return {arm.name for arm in arms_of(plan)}


def without_checker(producer: Producer) -> Scheduled:
    """Give the arms of invalid programs no weight, because these start a process of onnx's checker."""
    assert isinstance(producer, Scheduled)
    producer.divide({name: one for name, one in producer.weights.items() if not name.startswith("disruptive")})
    return producer


def test_every_technique_meets_every_check_of_the_target() -> None:
    found = names(Plan("onnxruntime", schedule=True))
    assert {"everyday/levels", "motifs/resist", "synthesis/equivalence", "mined/exact", "sweep/functions"} <= found
    assert {"dynamic", "disruptive"} <= found
    assert not any(name.startswith("seeds/") for name in found)
    assert {"seeds/levels", "seeds/exact"} <= names(Plan("onnxruntime", schedule=True, instances="onnx"))
    assert "generation/sequences" in names(Plan("tvm", schedule=True))


def test_votes_about_kernels_are_taken_mostly_on_single_operators() -> None:
    arms = {arm.name: arm for arm in arms_of(Plan("openvino", schedule=True))}  # ONNX Runtime votes
    votes = {name for name in arms if name.endswith("/votes")}
    assert votes == {"sweep/votes", "everyday/votes", "generation/votes"}
    assert max(votes, key=lambda name: arms[name].weight) == "sweep/votes"
    assert "motifs/votes" in names(Plan("openvino", schedule=True, checks=("votes",)))


def test_options_restrict_the_arms() -> None:
    assert {arm.check for arm in arms_of(replace(PLAN, checks=("levels",)))} == {"levels"}
    assert names(replace(PLAN, checks=("dynamic",))) == {"dynamic"}
    chosen = names(replace(PLAN, ops=("Add", "GridSample")))
    assert "everyday/levels" in chosen
    assert not any(name.startswith(("synthesis/", "mined/")) for name in chosen)
    assert not any(name.startswith("everyday/") for name in names(replace(PLAN, ops=("GridSample",))))
    assert not any(name.startswith("everyday/") for name in names(replace(PLAN, dtypes=("int8",))))
    assert not any(name.startswith("motifs/") for name in names(replace(PLAN, motifs=0.0)))
    ranks = {arm.technique: arm.options.max_rank for arm in arms_of(replace(PLAN, max_rank=2)) if arm.kind == "levels"}
    assert set(ranks.values()) == {2}
    assert "everyday/levels" not in names(replace(PLAN, max_rank=0))
    assert "generation/transforms" in names(replace(PLAN, transforms=(parse_spec("order"),)))


def test_producers_that_are_named_have_fixed_shares() -> None:
    assert not replace(PLAN, producers=("strict",)).scheduled
    assert replace(PLAN, producers=("strict",)).chosen_checks == ("levels",)
    assert not replace(PLAN, model="m.onnx").scheduled


def test_several_targets_are_compared_and_tested_alone() -> None:
    plan = Plan("toy", ("onnxruntime",), schedule=True)
    found = names(plan)
    assert {"everyday/differential", "motifs/levels@toy", "motifs/levels@onnxruntime", "dynamic@toy"} <= found
    assert {arm.check for arm in arms_of(replace(plan, checks=("levels",)))} == {"differential"}
    releases = names(Plan("onnxruntime", ("onnxruntime==1.20.1",), schedule=True))
    assert "everyday/levels@onnxruntime" in releases
    assert not any(name.endswith("==1.20.1") for name in releases)
    producer = without_checker(make_producer(plan, OPEN, OPEN))
    for index in range(40):
        rng = stream(3, "case", index)
        case = producer.propose(rng)
        runs = make_oracle(plan, {}, case.recipe["check"]).plan(case, rng)
        alone = case.recipe["check"].partition("@")[2]
        asked = {run.target for run in runs} - {REFERENCE}  # it votes if another compiler is installed
        assert asked == ({alone} if alone else {"toy", "onnxruntime"})


def test_an_arm_has_the_oracle_of_its_check_alone() -> None:
    levels = make_oracle(PLAN, {"toy": frozenset({"DeadCode"})}, "levels")
    assert isinstance(levels, Optimisation)
    assert not levels.families
    assert levels.disabled == {"DeadCode"}
    assert levels.passes
    resist = make_oracle(PLAN, {}, "resist")
    assert isinstance(resist, Optimisation)
    assert (len(resist.families), resist.passes, resist.lesser_chance) == (1, (), 1.0)
    assert isinstance(make_oracle(PLAN, {}, "dynamic"), Dynamic)
    assert isinstance(make_oracle(Plan("toy", ("onnxruntime",)), {}, "differential"), Differential)
    asked = make_oracle(replace(PLAN, transforms=(parse_spec("order"),)), {}, "transforms")
    assert isinstance(asked, Optimisation)
    assert asked.families == (((parse_spec("order"),),),)


def test_a_quarter_of_the_tests_is_as_people_have_them_and_some_are_observed() -> None:
    producer, found = without_checker(make_producer(PLAN, OPEN)), Counter[str]()
    for index in range(300):
        case = producer.propose(stream(5, "case", index))
        ours = case.recipe["arm"].startswith("everyday/")
        found.update(["everyday"] if ours else [], observed=bool(case.recipe.get("observe")))
        if not ours:
            continue
        graph = read(case.program.payload).graph
        for info in graph.inputs:
            assert isinstance(info.type, TensorType)
            assert info.type.shape is not None
            usual = 1 <= len(info.type.shape) <= 4 and info.type.dtype == "float32"
            found.update(inputs=1, usual=usual, empty=0 in info.type.shape)
        assert {node.op for node in graph.nodes} <= {*everyday.OPERATORS, "Constant"}
    assert found["usual"] > 0.75 * found["inputs"]  # motifs and some operators need scalars, or indices
    assert found["empty"] < 0.03 * found["inputs"]
    assert found["everyday"] >= 0.8 * EVERYDAY * 300
    assert 10 < found["observed"] < 100


def test_everyday_operators_exist() -> None:
    assert set(everyday.OPERATORS) <= set(specs())


def test_the_options_are_checked_before_anything_starts() -> None:
    validate(PLAN)
    with pytest.raises(UsageError, match="no check 'nope'"):
        validate(replace(PLAN, checks=("nope",)))


def test_a_producer_with_nothing_to_propose_takes_its_arms_along() -> None:
    def barren() -> Scheduled:
        raise UsageError("nothing to propose")

    inner = make_producer(Plan("toy", producers=("sweep",)), OPEN)
    arms = tuple(ScheduledArm(name, name[0], "levels") for name in ("a1", "a2", "b1"))
    producer = Scheduled(arms, {"a": barren, "b": lambda: inner}, {"a1": 1.0, "a2": 1.0})
    producer.prepare()
    assert producer.propose(stream(0, "x")).recipe["arm"] == "b1"
    assert producer.take_removed() == ["a1", "a2"]
    assert producer.take_removed() == []
    with pytest.raises(UsageError, match="nothing to propose"):
        Scheduled(arms[:2], {"a": barren}, {}).prepare()


@given(st.dictionaries(st.sampled_from("abc"), st.floats(0, 10), min_size=1), st.integers(0, 99))
@example({"a": 5e-324}, 2)
def test_only_arms_with_a_weight_are_drawn(weights: dict[str, float], seed: int) -> None:
    inner = make_producer(Plan("toy", producers=("sweep",), ops=("Relu",)), OPEN)
    arms = tuple(ScheduledArm(name, "s", "levels") for name in "abc")
    producer = Scheduled(arms, {"s": lambda: inner}, weights)
    drawn = producer.propose(stream(seed, "x")).recipe["arm"]
    assert weights.get(drawn, 0) > 0 or not any(weights.values())


def test_the_division_credits_arms_and_holds_when_tests_are_counted() -> None:
    division = Division(replace(PLAN, seconds=60.0), 1, {"motifs/levels": ArmYield(tests=4)}, {("toy", "A", "B")})
    division.add({"motifs/levels": {"tests": 2, "cpu_us": 30}})
    division.add_pairs({"motifs/levels": [["toy", "A", "B"], ["toy", "A", "C"]], "sweep/levels": [["toy", "A", "C"]]})
    division.new_signature("sweep/levels")
    division.confirmed("sweep/levels")
    division.new_signature("")
    assert division.counts["motifs/levels"] == ArmYield(tests=6, cpu_us=30, pairs=1)
    assert division.take() == {
        "motifs/levels": ArmYield(tests=2, cpu_us=30, pairs=1),
        "sweep/levels": ArmYield(signatures=1, confirmed=1),
    }
    assert division.take() == {}
    weights = division.weights(EVERY + 1)
    assert weights is not None
    assert set(weights) == names(PLAN)
    assert division.weights(EVERY + 2) is None
    assert Division(replace(PLAN, tests=9), 1, {}, set()).weights(1e9) is None


def test_people_see_the_arms_that_take_the_time() -> None:
    arms = {name: ArmYield(tests=1, cpu_us=place * 1000) for place, name in enumerate("abcdef")}
    rows = arms_rows(arms, 3)
    assert [row[0] for row in rows] == ["f", "e", "d", "3 others"]
    assert rows[0][1] == "33%"
    found = arms_json(arms)
    assert [one["name"] for one in found] == list("fedcba")
    assert sum(one["share"] for one in found) == pytest.approx(1, abs=1e-3)
