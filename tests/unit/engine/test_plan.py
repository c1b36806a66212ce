"""The plan: how it travels, what a resumed campaign takes over, and which producers it names."""

from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miscompile.base.errors import SpecError, UsageError
from miscompile.base.specs import Spec, parse_spec
from miscompile.core.finding import Signature
from miscompile.engine.lane import Orders, orders_from
from miscompile.engine.plan import SESSION_ONLY, Plan, plan_from
from miscompile.engine.wiring import make_oracle, make_pool, make_producer
from miscompile.execution.limits import Limits
from miscompile.ops.support import Support
from miscompile.oracles.optimisation import Optimisation
from miscompile.patterns.library import write_library
from miscompile.patterns.shipped import shipped_patterns
from miscompile.producers.combined import Mixture
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.strict import Strict
from miscompile.triage.predicate import BugPredicate, NodePattern
from miscompile.triage.recognition import SignedPredicate

WORDS = st.lists(st.sampled_from(["Add", "Conv", "Relu"]), unique=True).map(tuple)
PLANS = st.builds(
    Plan,
    target=st.sampled_from(["toy", "toy{bugs=all}", "onnxruntime"]),
    seconds=st.none() | st.floats(0, 1e6),
    tests=st.none() | st.integers(1, 10**9),
    seed=st.integers(0, 2**63 - 1),
    out=st.sampled_from([Path("miscompile-out"), Path("/a b/c")]),
    workers=st.integers(1, 64),
    resume=st.booleans(),
    producers=st.sampled_from([(), ("strict{nodes=3}",), ("strict", "sweep{share=0.5}")]),
    ops=WORDS,
    dtypes=st.sampled_from([(), ("float32", "int8")]),
    max_rank=st.none() | st.integers(0, 8),
    motifs=st.none() | st.floats(0, 1),
    guidance=st.none() | st.booleans(),
    opset=st.none() | st.integers(13, 22),
    steer=st.booleans(),
    compare=st.sampled_from(["strict", "fixed"]),
    limit_memory=st.none() | st.integers(1, 2**40),
    model=st.none() | st.just("m.onnx"),
    transforms=st.sampled_from([(), (Spec("order"), parse_spec("resist{share=0.3, classes=fusion}"))]),
)
TABLES = st.builds(Support, *[st.sets(st.sampled_from("abcd"))] * 4, open=st.booleans())


@given(PLANS)
def test_a_plan_travels_as_json(plan: Plan) -> None:
    assert plan_from(plan.as_json()) == plan


@given(PLANS, TABLES, st.none() | st.integers(1, 9), WORDS)
def test_orders_travel_in_one_line(plan: Plan, support: Support, quota: int | None, passes: tuple[str, ...]) -> None:
    sub = NodePattern("Sub", ("x", "y"), ("a",))
    bug = SignedPredicate(
        BugPredicate("toy", "wrong", "", "", passes, "", (sub,), {}), Signature("toy", "wrong", "", passes, "")
    )
    orders = Orders(plan, (support, Support(open=True)), lane=2, session=3, first=40, quota=quota, known=(bug,))
    line = orders.as_json()
    assert "\n" not in line
    assert orders_from(line) == orders


@given(PLANS, PLANS)
def test_a_resumed_plan_takes_over_all_but_the_sessions_own_choices(now: Plan, before: Plan) -> None:
    resumed = now.resumed(before.remembered(), ())
    for field in fields(Plan):
        source = now if field.name in SESSION_ONLY else before
        assert getattr(resumed, field.name) == getattr(source, field.name), field.name


@given(PLANS, PLANS)
def test_what_is_given_again_is_not_taken_over(now: Plan, before: Plan) -> None:
    names = [field.name for field in fields(Plan)]
    assert now.resumed(before.remembered(), names) == now
    assert now.resumed({}, ()) == now


def test_a_campaign_stored_with_the_former_name_of_transforms_can_be_resumed() -> None:
    stored = {**Plan("toy").remembered(), "forms": ["resist{share=0.3}", "order"]}
    del stored["transforms"]
    assert Plan("toy").resumed(stored, ()).transforms == (parse_spec("resist{share=0.3}"), Spec("order"))


def test_producers_options_override_the_plans() -> None:
    plan = Plan("toy", nodes=4, ops=("Add",), guidance=False, producers=("strict{nodes=7, motifs=0.5}", "sweep"))
    (first, strict), (second, sweep) = plan.producer_specs()
    assert (first, strict.nodes, strict.motifs, strict.ops, strict.guidance) == ("strict", 7, 0.5, ("Add",), "off")
    assert (second, sweep.nodes, sweep.motifs, sweep.ops) == ("sweep", 4, GeneratorOptions().motifs, ("Add",))
    assert replace(plan, guidance=True).producer_specs()[0][1].guidance == "steer"


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("magic", "there is no producer 'magic'; there are: strict, sweep"),
        ("strict{colour=red}", "has no option 'colour'"),
        ("strict{nodes=many}", "nodes=many"),
        ("strict{guidance=wild}", "must be one of steer, gate, off"),
        ("strict{", "is not a spec"),
    ],
)
def test_a_producer_that_cannot_be_meant(spec: str, says: str) -> None:
    with pytest.raises(SpecError, match=says.replace("(", r"\(")):
        Plan("toy", producers=(spec,)).producer_specs()


def test_defaults_are_a_mixture() -> None:
    names = [(name, options.share) for name, options in Plan("toy").producer_specs()]
    assert names == [("strict", 1.0), ("sweep", 0.15), ("oatest", 0.25)]
    assert isinstance(make_producer(Plan("toy"), Support(open=True)), Mixture)
    assert isinstance(make_producer(Plan("toy", producers=("strict",)), Support(open=True)), Strict)


def test_patterns_are_left_out_where_operators_or_dtypes_were_chosen_unless_they_were_asked_for() -> None:
    for chosen in (Plan("toy", ops=("Add",)), Plan("toy", dtypes=("float32",))):
        assert [name for name, _ in chosen.producer_specs()] == ["strict", "sweep"]
        asked = replace(chosen, producers=("oatest",))
        assert [name for name, _ in asked.producer_specs()] == ["oatest"]


def test_opsets_are_those_that_the_target_reads() -> None:
    assert Plan("toy").opsets == tuple(range(13, 24))
    assert set(Plan("onnxruntime").opsets) <= set(GeneratorOptions().opsets)
    assert Plan("toy", opset=13).opsets == (13,)


def test_limits_and_oracle_follow_the_plan() -> None:
    assert Plan("toy").limits == Limits(seconds=30.0)
    assert Plan("toy", limit_seconds=2.0, limit_memory=5).limits == Limits(seconds=2.0, memory=5)
    oracle = make_oracle(Plan("toy", compare="fixed"), {"toy": frozenset({"DeadCode"})})
    assert isinstance(oracle, Optimisation)
    assert (oracle.rule, oracle.disabled, oracle.target) == ("fixed", frozenset({"DeadCode"}), "toy")
    assert "DeadCode" in oracle.passes
    assert make_pool(Plan("toy")).compiler_cpu_seconds == 0


def test_patterns_that_were_given_are_not_left_out_without_a_word(tmp_path: Path) -> None:
    """Those that ship are, where the operators asked for are in none of them."""
    file = tmp_path / "mine.patterns"
    write_library([one for one in shipped_patterns() if one.name.startswith("conv")][:1], file)
    with pytest.raises(UsageError, match="no pattern"):
        make_producer(Plan("toy", patterns=str(file), ops=("Relu",)), Support(open=True))


def test_campaigns_of_one_folder_keep_their_own_files_apart(tmp_path: Path) -> None:
    assert [Plan("toy", out=tmp_path, number=number).own for number in (1, 2)] == [
        tmp_path,
        tmp_path / "campaigns" / "2",
    ]
    assert Plan("toy", out=tmp_path).ledger_file == tmp_path / "ledger.db"
    assert Plan("toy", out=tmp_path, ledger="shared.db").ledger_file == Path("shared.db")
    assert "number" not in Plan("toy", number=2).remembered()
    assert Plan("toy", number=2).resumed({"ledger": "/a/b.db"}, ()).ledger == "/a/b.db"
