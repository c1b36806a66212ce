"""Refused programs are counted by target, operator and reason, beside those that were taken."""

import json
from pathlib import Path

import pytest

from miscompile.base.errors import UsageError
from miscompile.core.case import Case, Program
from miscompile.core.outcome import Outcome, Rejected, Unsupported, Values
from miscompile.core.run import Build, Run
from miscompile.engine.refusals import RefusalRow, counted_as, rows_of
from miscompile.findings.store import Campaign, Store
from miscompile.migration.refusals import refusals_in, refusals_of
from miscompile.migration.results import ResultRow
from miscompile.targets.front_ends import FrontEnd
from miscompile.targets.known import known
from miscompile.targets.reasons import is_lawful

DEAD = Unsupported("compile", "Resize: the GPU is absent, code 17")


def case(op: str = "") -> Case:
    return Case(Program("onnx", b"", (), ()), (), {"op": op} if op else {})


def names(item: Case, *outcomes: tuple[str, Outcome]) -> list[str]:
    runs = [Run(item, target, Build(level)) for (target, _), level in zip(outcomes, ("off", "full"), strict=False)]
    return counted_as(item, runs, [outcome for _, outcome in outcomes])


def test_a_refusal_counts_once_a_target_and_more_than_a_build_that_takes_the_program() -> None:
    assert names(case("Resize"), ("toy", Values(())), ("toy", DEAD)) == [
        "refused by toy | Resize | Resize: the GPU is absent, code #"
    ]
    assert names(case("Resize"), ("toy", DEAD), ("toy", DEAD)) == names(case("Resize"), ("toy", DEAD))
    assert len(names(case("Resize"), ("toy", DEAD), ("openvino", Rejected("compile", "no")))) == 2


def test_taken_programs_are_counted_where_they_have_one_operator() -> None:
    assert names(case("Resize"), ("toy", Values(())), ("toy", Values(()))) == ["taken by toy | Resize"]
    assert names(case(), ("toy", Values(()))) == []
    assert names(case(), ("toy", DEAD)) == ["refused by toy |  | Resize: the GPU is absent, code #"]


def test_the_reason_is_that_of_the_targets_list() -> None:
    message = "Could not find an implementation for Foo(1) node with name ''"
    (name,) = names(case("Foo"), ("onnxruntime", Unsupported("compile", message)))
    assert name == "refused by onnxruntime | Foo | no kernel for this operator, version or type"


COUNTERS = {
    "tests": 20,
    "refused by toy | Resize | no GPU": 2,
    "refused by toy |  | no GPU": 5,
    "refused by toy | Conv | no | kernel": 1,
    "taken by toy | Resize": 7,
}
ROWS = [
    RefusalRow("toy", "", "no GPU", 5, 0),
    RefusalRow("toy", "Resize", "no GPU", 2, 7),
    RefusalRow("toy", "Conv", "no | kernel", 1, 0),
]


def test_rows_have_the_most_frequent_first_and_tell_a_form_from_an_operator() -> None:
    assert rows_of(COUNTERS) == ROWS
    assert [row.form for row in ROWS] == [False, True, False]
    assert json.loads(json.dumps(ROWS[1].as_json()))["form"] is True
    assert [row.verdict for row in ROWS] == ["several operators", "depends on the form", "taken in no form"]


def test_a_reason_that_the_list_calls_lawful_depends_on_no_form() -> None:
    (name,) = names(case("Foo"), ("onnxruntime", Unsupported("compile", "no such device", kind="NoDeviceError")))
    (row,) = rows_of({name: 1, "taken by onnxruntime | Foo": 3})
    assert (row.lawful, row.form, row.verdict) == (True, False, "listed as lawful")
    assert not is_lawful("onnxruntime", "LRN takes odd sizes only")


def test_the_rows_of_a_migration_are_read_from_its_results() -> None:
    odd = "compile: Fail: LRN<T>::LRN(x) size_ % 2 == 1 was false"
    rows = [
        ResultRow("1", "LRN", "onnx-onnxruntime", "pass"),
        ResultRow("2", "LRN", "onnx-onnxruntime", "unsupported", message=odd),
        ResultRow("3", "Foo", "onnx-onnxruntime", "unsupported", message="compile: NoDeviceError: none"),
        ResultRow("4", "Foo", "onnx-onnxruntime", "random"),
    ]
    found = refusals_of(FrontEnd("onnx", "onnxruntime"), rows)
    assert [(row.operator, row.refused, row.taken, row.verdict) for row in found] == [
        ("LRN", 1, 1, "depends on the form"),
        ("Foo", 1, 0, "listed as lawful"),
    ]


def test_the_rows_of_a_campaign_are_read_from_its_folder(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        store.begin(Campaign("toy", 0, {}, {}, 0.0))
        store.begin_session(0.0)
        with pytest.raises(UsageError, match="has tested nothing yet"):
            refusals_in(tmp_path)
        store.add_counters(COUNTERS)
    assert refusals_in(tmp_path) == ROWS


@pytest.mark.parametrize(
    "target", ["iree", "mnn", "onnxruntime", "onnxruntime_openvino", "openvino", "tinygrad", "tract", "tvm"]
)
def test_what_a_binding_cannot_feed_and_devices_that_are_absent_are_lawful_in_every_form(target: str) -> None:
    for kind, message in (("TypeError", "elements of int4 cannot be fed"), ("NoDeviceError", "no CUDA device")):
        entry = known(target).rejection(kind, message)
        assert entry is None or entry.lawful
