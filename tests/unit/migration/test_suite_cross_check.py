"""A suite expects only what is promised, steady, and not onnx's evaluator's word alone."""

from pathlib import Path

import numpy as np
import pytest

from miscompile.core.tensor import tensor
from miscompile.harvest.libraries.onnx import node_results
from miscompile.instances.archive import Archive, write_archive
from miscompile.instances.instance import Instance
from miscompile.instances.values import Held, Value
from miscompile.migration.cross_check import ALONE, CrossCheck
from miscompile.migration.exporting import Choice, export
from miscompile.producers.instances.migrated import Migrated, migrate

pytestmark = [pytest.mark.process, pytest.mark.compiler]

STEEP = np.array([np.nan, np.inf, 3e9, -3e9, 1], np.float32)
X = np.array([[-1.5, 2.0]], np.float32)
SQUARE = np.array([[0, 1], [2, 3]], np.float32)


def node(op: str, *operands: object, version: int = 18, origin: str = "", **attributes: Value) -> Instance:
    inputs = tuple(Held(tensor(np.asarray(one))) for one in operands)
    return Instance("onnx", op, "node", (), attributes, inputs, version=version, source="tests", origin=origin)


def migrated(instance: Instance) -> Migrated:
    found = migrate(instance)
    assert found is not None
    return found


def test_what_migrate_would_not_trust_is_not_exported(tmp_path: Path) -> None:
    instances = (
        node("Cast", STEEP, to=6),
        node("Cast", np.linspace(-900, 900, 8).astype(np.float32), to=2),
        node("Cast", np.array([-1.5, 2.5], np.float32), to=6),
        node("Cast", np.array([1.5], np.float32), to=22, version=21),
        node("Sin", np.array([1e8, 3e8], np.float32)),
        node("ScatterElements", np.zeros(4, np.float32), np.array([1, 1], np.int64), np.array([5, 7], np.float32)),
        node("RandomNormalLike", X),
        node("Reshape", X, np.array([7], np.int64)),
        node("Relu", X),
    )
    write_archive(Archive("onnx", instances, {}, {}), tmp_path / "mine.jsonl.gz")
    report = export(Choice(instances=(tmp_path / "mine.jsonl.gz",)), tmp_path / "suite", print)
    assert {name.rpartition("_")[2] for name in report.written} == {"Cast", "Relu"}
    assert len(report.written) == 2
    assert report.left_out["its results are left open"] == 4
    assert report.left_out["its results move under noise"] == 1
    assert report.left_out["draws numbers"] == 1


def test_only_as_many_as_asked_for(tmp_path: Path) -> None:
    write_archive(Archive("onnx", (node("Relu", X), node("Abs", X)), {}, {}), tmp_path / "mine.jsonl.gz")
    choice = Choice(instances=(tmp_path / "mine.jsonl.gz",), tests=1)
    assert len(export(choice, tmp_path / "suite", print).written) == 1


def test_few_bits_are_no_reason_to_leave_a_test_out() -> None:
    half = np.array([1.5, -20.0, 0.3], np.float16)
    with CrossCheck() as cross_check:
        (found,) = cross_check.expected([migrated(node("Mul", half, half * half))])
    assert not isinstance(found, str)


@pytest.mark.slow
def test_one_other_implementation_must_give_the_same() -> None:
    tests = [migrated(node("Det", SQUARE)), migrated(node("Relu", X))]
    with CrossCheck(["toy"]) as cross_check:  # it lacks Det
        alone, shared = cross_check.expected(tests)
    assert alone == ALONE
    assert not isinstance(shared, str)
    assert shared[0].numbers().tolist() == [[0.0, 2.0]]
    with CrossCheck(["toy", "onnxruntime"]) as cross_check:
        assert not isinstance(cross_check.expected(tests)[0], str)
    with CrossCheck([]) as cross_check:  # nobody is installed who could be asked
        assert not isinstance(cross_check.expected(tests)[0], str)


@pytest.mark.filterwarnings("ignore")  # cases of other operators overflow on purpose
def test_onnx_s_own_node_case_is_a_second_implementation() -> None:
    origin = "onnx.backend.test node test_det_2d"
    assert node_results()[origin][0].numbers().tolist() == -2.0
    same, other = node("Det", SQUARE, origin=origin), node("Det", SQUARE + SQUARE, origin=origin)
    with CrossCheck(["toy"]) as cross_check:
        agreed, alone = cross_check.expected([migrated(same), migrated(other)])
    assert not isinstance(agreed, str)
    assert alone == ALONE


def test_texts_are_expected_like_numbers() -> None:
    words = np.array(["a", "bc"], object)
    joined = node("StringConcat", words, words, version=20)
    with CrossCheck(["onnxruntime"]) as cross_check:
        (found,) = cross_check.expected([migrated(joined)])
    assert not isinstance(found, str), found
    assert found[0].array.tolist() == ["aa", "bcbc"]
