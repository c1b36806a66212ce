"""Pairs of classes that a compiler has run, does not support, or has not been given."""

from pathlib import Path

import pytest

from miscompile.base.errors import UsageError
from miscompile.instances.classes import OPERATOR, classes_beside, pairs_of, read_classes, write_classes
from miscompile.migration.coverage import NOT_RUN, compiler_coverage
from miscompile.migration.results import ResultRow


def row(digest: str, status: str, message: str = "") -> ResultRow:
    return ResultRow(digest, "Relu", "onnx-toy", status, message=message)


CLASSES = {
    "a": {OPERATOR: "Relu", "X.rank": "1", "type": "float32"},
    "b": {OPERATOR: "Relu", "X.rank": "1", "type": "bool"},
    "c": {OPERATOR: "Relu", "X.rank": "2", "type": "float32"},
    "d": {OPERATOR: "Abs", "X.rank": "2", "type": "float32"},
}


def test_pairs_that_ran_that_are_unsupported_and_that_wait() -> None:
    rows = [row("a", "pass"), row("b", "unsupported", "no kernel"), row("other", "pass")]
    absolute, relu = compiler_coverage(CLASSES, rows)
    assert (relu.operator, relu.ran, relu.unsupported, relu.waiting) == ("Relu", 3, 2, 2)
    assert relu.missing == (("X.rank", "2", NOT_RUN), ("type", "bool", "unsupported: no kernel"))
    assert relu.share == 3 / 5
    assert (absolute.ran, absolute.waiting, absolute.share) == (0, 3, 0.0)


def test_a_pair_ran_if_any_test_with_it_was_run() -> None:
    (relu,) = compiler_coverage({"a": CLASSES["a"], "b": CLASSES["a"]}, [row("a", "unsupported"), row("b", "finding")])
    assert (relu.ran, relu.unsupported, relu.waiting, relu.missing, relu.share) == (3, 0, 0, (), 1.0)


def test_the_coverage_of_some_operators_leaves_out_the_others() -> None:
    classes = {**CLASSES, "e": {OPERATOR: "ai.onnx.ml.Scaler", "X.rank": "2"}}
    assert [one.operator for one in compiler_coverage(classes, [], ("Abs", "Scaler"))] == ["Abs", "ai.onnx.ml.Scaler"]
    assert [one.operator for one in compiler_coverage(classes, [], ("ai.onnx.ml.Scaler",))] == ["ai.onnx.ml.Scaler"]
    assert compiler_coverage(classes, [], ("Conv",)) == []


def test_pairs_hold_each_class_alone_and_with_every_other() -> None:
    assert pairs_of({"b": "1", "a": "2"}) == {
        (("a", "2"), ("a", "2")),
        (("a", "2"), ("b", "1")),
        (("b", "1"), ("b", "1")),
    }


def test_classes_lie_beside_their_archive(tmp_path: Path) -> None:
    archive = tmp_path / "mine.jsonl.gz"
    assert read_classes([archive]) == {}
    write_classes(CLASSES, archive)
    assert classes_beside(archive) == tmp_path / "mine.classes.json"
    assert read_classes([archive, tmp_path / "other.jsonl.gz"]) == CLASSES
    classes_beside(archive).write_text("{")
    with pytest.raises(UsageError, match="holds no classes of instances"):
        read_classes([archive])
    with pytest.raises(UsageError, match="cannot write"):
        write_classes(CLASSES, tmp_path / "none" / "mine.jsonl.gz")
