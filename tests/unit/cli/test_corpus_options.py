"""The verbs and options of the corpus: what is listed, and what of it a campaign and a check begin from."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from miscompile.base.errors import UsageError
from miscompile.cli.main import program
from miscompile.cli.verbs import check
from miscompile.core.ports import Listener
from miscompile.engine import coordinator
from miscompile.engine.arms import CORPUS, EVERYDAY, SEEDED, arms_of
from miscompile.engine.plan import Plan
from miscompile.findings.store import Record
from miscompile.graph.emit import emit
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.harvest.models import cache
from miscompile.harvest.models.entry import CorpusModel
from miscompile.producers.slices.collection import Collection
from miscompile.reports.summary import Summary


class CaughtError(UsageError):
    """Ends a verb where the campaign would begin."""


def call(*words: str | Path) -> Result:
    return CliRunner().invoke(program, [str(word) for word in words])


@pytest.fixture(autouse=True)
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "corpus_folder", lambda: tmp_path / "corpus")


def stored(name: str, slices: int, reason: str = "") -> None:
    model = CorpusModel(
        name, "package", "nets", "1.2", "/nets", "ONNX", 10, name, 5, {"Conv": 3, "Relu": 2}, 17, slices, True, reason
    )
    cache.write(model, b"model", Collection((), 1))


def planned(monkeypatch: pytest.MonkeyPatch, *words: str | Path) -> Plan:
    plans: list[Plan] = []

    def fuzz(plan: Plan, listeners: Sequence[Listener]) -> None:
        plans.append(plan)
        raise CaughtError("caught")

    monkeypatch.setattr(coordinator, "fuzz", fuzz)
    result = call(*words)
    assert plans, result.output
    return plans[0]


def test_an_empty_corpus_is_said() -> None:
    result = call("corpus", "list")
    assert result.exit_code == 0
    assert "the corpus is empty" in result.output
    assert json.loads(call("corpus", "list", "--json").output) == []


def test_the_list_has_every_model_with_its_reason() -> None:
    stored("nets/a.onnx", 4)
    stored("nets/b.tflite", 0, "TFLite: only ONNX is read")
    rows = json.loads(call("corpus", "list", "--json").output)
    assert [row["name"] for row in rows] == ["nets/a.onnx", "nets/b.tflite"]
    assert rows[0]["operators"] == {"Conv": 3, "Relu": 2}
    text = call("corpus", "list").output
    assert "2 models with 2 operators, 4 slices" in text
    assert "nets 1.2" in text


def test_a_campaign_begins_from_all_that_has_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored("nets/a.onnx", 4)
    stored("nets/b.tflite", 0, "TFLite")
    words = ("fuzz", "toy", "--out", tmp_path / "out")
    assert planned(monkeypatch, *words).corpus == ("nets/a.onnx",)
    for more in (("--corpus", "none"), ("--tests", "5"), ("--ops", "Conv"), ("--producer", "strict")):
        assert planned(monkeypatch, *words, *more).corpus == ()
    assert planned(monkeypatch, *words, "--tests", "5", "--corpus", "nets").corpus == ("nets/a.onnx",)


def test_an_unknown_model_is_a_usage_error(tmp_path: Path) -> None:
    result = call("fuzz", "toy", "--out", tmp_path / "out", "--corpus", "nothing")
    assert result.exit_code == 2
    assert "no model with slices is called nothing" in result.output


def test_the_corpus_is_a_technique_with_a_guaranteed_share() -> None:
    plan = Plan("toy", schedule=True, corpus=("nets/a.onnx",))
    arms = arms_of(plan)
    assert {arm.technique for arm in arms if arm.everyday} == {CORPUS, EVERYDAY}
    assert SEEDED not in {arm.technique for arm in arms}
    assert CORPUS not in {arm.technique for arm in arms_of(Plan("toy", schedule=True))}


def test_a_model_of_the_corpus_is_checked_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored("nets/a.onnx", 4)
    plan = planned(monkeypatch, "check", "nets/a.onnx", "--target", "toy", "--out", tmp_path / "out")
    assert plan.model == str(cache.place_of("nets/a.onnx") / "model.onnx")
    assert plan.seconds is not None
    assert plan.seconds + plan.triage_seconds < 60
    assert {"levels", "equivalence", "resist", "exact"} <= set(plan.checks)
    assert not {"dynamic", "disruptive"} & set(plan.checks)


def test_a_broken_model_is_bad_input_on_all_targets(tmp_path: Path) -> None:
    path = tmp_path / "broken.onnx"
    path.write_bytes(b"\xff\xff")
    result = call("check", path, "--all-targets", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert not (tmp_path / "out").exists()


def test_all_targets_are_checked_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, asked = tmp_path / "out", list[Plan]()

    def on_one(options: Plan) -> check.TargetResult:
        asked.append(options)
        options.out.mkdir(parents=True)
        summary = Summary(options.target, 0, 7, 1.0, 7.0, 0, 2, 0, 0, 0, ())
        problem = "" if len(asked) > 1 else "it cannot start"
        return check.TargetResult(options.target, None if problem else summary, problem)

    monkeypatch.setattr(check, "_on_one", on_one)
    monkeypatch.setattr(check, "target_names", lambda: ("toy", "reference", "onnxruntime", "first", "second"))
    monkeypatch.setattr(check, "_is_here", lambda name: name in ("onnxruntime", "toy"))
    path = tmp_path / "m.onnx"
    path.write_bytes(emit(relu()))
    result = call("check", path, "--all-targets", "--out", place, "--json", "--seed", "4")
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    assert list(data["targets"]) == ["toy", "onnxruntime"]
    assert data["targets"]["toy"] == {"problem": "it cannot start", "code": 4, "wall_seconds": 0.0}
    assert (data["targets"]["onnxruntime"]["tests"], data["targets"]["onnxruntime"]["code"]) == (7, 0)
    assert json.loads((place / "check.json").read_text()) == data
    assert [(one.out, one.seed, one.others) for one in asked] == [
        (place / "toy", 4, ()), (place / "onnxruntime", 4, ()),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("tests", "refused", "records", "code", "told"),
    [
        (7, 7, (), 4, "Nothing was tested: none of 7 tests could be judged"),
        (7, 1, (Record("w", "toy:wrong:A", "pending", "wrong"),), 1, "toy:wrong:A"),
        (7, 1, (), 4, "Nothing found in slices of the model; no test of the model as a whole ended"),
    ],
)
def test_the_exit_code_of_all_targets(
    tests: int, refused: int, records: tuple[Record, ...], code: int, told: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    summary = Summary("toy", 0, tests, 1.0, 7.0, 0, refused, 0, 0, 0, records, model="m.onnx")

    def on_one(options: Plan) -> check.TargetResult:
        options.out.mkdir(parents=True)
        return check.TargetResult(options.target, summary)

    monkeypatch.setattr(check, "_on_one", on_one)
    monkeypatch.setattr(check, "target_names", lambda: ("toy",))
    monkeypatch.setattr(check, "_is_here", lambda name: True)
    monkeypatch.setenv("COLUMNS", "200")
    path = tmp_path / "m.onnx"
    path.write_bytes(emit(relu()))
    result = call("check", path, "--all-targets", "--out", tmp_path / "out")
    assert result.exit_code == code, result.output
    assert told in result.output


def relu() -> Model:
    kind = TensorType("float32", (2,))
    return Model(
        Graph("g", (ValueInfo("x", kind),), (ValueInfo("y", kind),), (Node("Relu", ("x",), ("y",)),)), {"": 17}
    )


def test_only_compilers_that_are_here_count() -> None:
    assert not check._is_here("toy")
    assert not check._is_here("reference")
    assert check._is_here("onnxruntime")
