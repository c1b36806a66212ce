"""Seeds in a campaign: cut once, kept with it, and drawn from beside the other producers."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from miscompile.base.errors import SpecError, UsageError
from miscompile.base.rng import stream
from miscompile.core.case import Case
from miscompile.core.ports import Producer
from miscompile.core.verdict import Holds
from miscompile.engine import seeds as campaign_seeds
from miscompile.engine.lane import Orders, orders_from
from miscompile.engine.plan import Plan, plan_from
from miscompile.engine.seeds import FOLDER, in_own_opset, keep_seeds, seeds_of, wants_seeds
from miscompile.engine.wiring import make_producer
from miscompile.graph.emit import emit
from miscompile.graph.model import Model
from miscompile.graph.text.parser import parse_model
from miscompile.ops.seed import Seed
from miscompile.ops.spec import Call
from miscompile.ops.support import Support
from miscompile.ops.values import Range
from miscompile.producers.around import Around
from miscompile.producers.combined import Mixture
from miscompile.producers.seeded import Seeded
from miscompile.producers.slices.collection import INDEX, Collection
from miscompile.producers.slices.slices import SliceLimits

OPEN = Support(open=True)


def model(op: str) -> Model:
    text = f"ir 8 opset 17 graph g(%x: float32[2, 3]) -> (%y: float32[2, 3]) {{ %a = {op}(%x) %y = Neg(%a) }}"
    return parse_model(text)


def seed(op: str) -> Seed:
    return Seed(f"{op}.onnx/1", model(op).graph, 17, {"x": Range(-1, 1, integral=False)})


def plan_with(tmp_path: Path, *ops: str, producers: tuple[str, ...] = ()) -> Plan:
    plan = Plan("toy", out=tmp_path / "out", seed_models=str(tmp_path), producers=producers)
    keep_seeds(plan, Collection(tuple(map(seed, ops)), len(ops)))
    return plan


def proposals(producer: Producer, count: int = 80) -> list[Case]:
    return [producer.propose(stream(0, "case", index)) for index in range(count)]


def of_slices(cases: Sequence[Case]) -> list[Case]:
    return [case for case in cases if case.recipe["producer"].startswith("seeded")]


class Without(Support):
    """A table that admits everything but some operators."""

    operators: frozenset[str] = frozenset()

    def may_admit(self, call: Call, opset: int) -> bool:
        return call.op not in self.operators

    def offers(self, op: str, dtype: str, version: int, main: int) -> bool:
        return op not in self.operators


class WithoutTanh(Without):
    operators = frozenset({"Tanh"})


class WithoutErf(Without):
    operators = frozenset({"Erf"})


def test_seeds_travel_with_the_plan(tmp_path: Path) -> None:
    plan = Plan("toy", slices=True, seed_models=str(tmp_path), slice_nodes=(2, 9))
    assert plan_from(plan.as_json()) == plan
    assert orders_from(Orders(plan, (OPEN,), 0, 0, 0, None).as_json()).plan == plan
    assert Plan("toy").resumed(plan.remembered(), ()).slice_nodes == (2, 9)


def test_only_campaigns_with_models_want_seeds() -> None:
    assert not wants_seeds(Plan("toy"))
    assert wants_seeds(Plan("toy", model="m.onnx"))  # for the inputs that the model runs with
    assert not wants_seeds(Plan("toy", slices=True))
    assert wants_seeds(Plan("toy", model="m.onnx", slices=True))
    assert wants_seeds(Plan("toy", seed_models="models"))


def test_models_are_cut_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[list[Path], SliceLimits]] = []

    def collect(paths: Sequence[Path], cut: SliceLimits, seed_: int, on_progress: object = None) -> Collection:
        asked.append((list(paths), cut))
        return Collection((seed("Relu"),), 1)

    monkeypatch.setattr(campaign_seeds, "collect", collect)
    (tmp_path / "m.onnx").write_bytes(emit(model("Relu")))
    plan = Plan("toy", out=tmp_path / "out", seed_models=str(tmp_path), slice_nodes=(2, 4))
    keep_seeds(plan, seeds_of(plan))
    assert (plan.out / FOLDER / INDEX).exists()
    assert [one.source for one in seeds_of(plan).seeds] == ["Relu.onnx/1"]
    assert asked == [([tmp_path / "m.onnx"], SliceLimits(2, 4))]


def test_a_folder_without_models_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no "):
        seeds_of(Plan("toy", out=tmp_path / "out", seed_models=str(tmp_path)))


def test_a_model_that_cannot_be_cut_is_checked_as_a_whole(tmp_path: Path) -> None:
    plan = Plan("toy", out=tmp_path / "out", model=str(tmp_path / "none.onnx"), slices=True)
    found = seeds_of(plan)
    assert found.seeds == ()
    assert "none.onnx is skipped" in found.skipped[0]


def test_seeds_join_the_other_producers(tmp_path: Path) -> None:
    cases = proposals(make_producer(plan_with(tmp_path, "Relu"), OPEN), 120)
    assert 0.2 < len(of_slices(cases)) / len(cases) < 0.8
    assert {case.recipe["producer"].partition("{")[0] for case in cases} == {"strict", "sweep", "oatest", "seeded"}
    alone = make_producer(plan_with(tmp_path, "Relu", producers=("seeded{nodes=3}",)), OPEN)
    assert isinstance(alone, Seeded)
    assert alone.spec.startswith("seeded{nodes=3")


def test_the_producer_needs_models() -> None:
    with pytest.raises(SpecError, match="needs --seed-models"):
        Plan("toy", producers=("seeded",)).producer_specs()


def test_seeds_that_the_target_does_not_take_are_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="none of the 1 slices"):
        make_producer(plan_with(tmp_path, "Tanh"), WithoutTanh(open=True))


def test_a_model_is_checked_around_and_in_slices(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(emit(model("Relu")))
    plan = replace(plan_with(tmp_path, "Relu", "Tanh"), model=str(path), slices=True, seed_models=None)
    producer = make_producer(plan, WithoutTanh(open=True))
    assert isinstance(producer, Mixture)
    cases = proposals(producer)
    assert {case.recipe["slice"] for case in of_slices(cases)} == {"Relu.onnx/1"}
    assert 20 < len(of_slices(cases)) < 60
    for case in cases:
        producer.learn(case, (), Holds())
    whole = make_producer(replace(plan, slices=False), OPEN)
    assert isinstance(whole, Around)


def test_without_usable_slices_the_model_is_checked_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(emit(model("Tanh")))
    plan = replace(plan_with(tmp_path, "Tanh"), model=str(path), slices=True, seed_models=None)
    assert isinstance(make_producer(plan, WithoutTanh(open=True)), Around)


def test_slices_of_one_model_are_tested_in_its_own_opset(tmp_path: Path) -> None:
    collection = Collection((seed("Relu"),), 1)
    model_plan = Plan("toy", model="m.onnx", slices=True)
    assert in_own_opset(model_plan, collection).opsets == (17,)
    assert in_own_opset(model_plan, Collection((), 1)) == model_plan
    old = Collection((replace(seed("Relu"), opset=9),), 1)
    assert in_own_opset(model_plan, old) == model_plan
    many = Plan("toy", seed_models=str(tmp_path))
    assert in_own_opset(many, collection) == many


def test_several_targets_share_the_slices_that_they_take(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(emit(model("Relu")))
    plan = replace(plan_with(tmp_path, "Relu"), others=("reference",), model=str(path), slices=True, seed_models=None)
    producer = make_producer(plan, OPEN, OPEN)
    cases = proposals(producer)
    assert all(case.recipe["targets"] == ["toy", "reference"] for case in of_slices(cases))
    for case in cases:
        producer.learn(case, (), Holds())
