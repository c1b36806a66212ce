"""The reference build is held against the types that the program declares, before anything is held against it."""

import numpy as np
import pytest

from miscompile.core.case import Case, Dim, Port, Program
from miscompile.core.outcome import Raised, Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Tensor, tensor
from miscompile.core.verdict import Holds, Verdict, Violated
from miscompile.oracles.judge import judge_pair


def judged(port: Port, reference: Tensor, other: Tensor | None) -> Verdict:
    case = Case(Program("onnx", b"", (), (port,)), ((),))
    runs = [Run(case, "toy", Build("off")), Run(case, "toy", Build("full"))]
    return judge_pair(runs, [Values(((reference,),)), Values(((other,),))], "strict")


def zeros(dtype: str, *shape: int) -> Tensor:
    return tensor(np.zeros(shape, dtype))


def test_a_shape_that_both_builds_get_wrong_is_a_violation_without_reference() -> None:
    verdict = judged(Port("v", "float32", (0,)), zeros("float32", 5, 0), zeros("float32", 5, 0))
    assert isinstance(verdict, Violated)
    evidence = verdict.evidence
    assert (evidence.kind, evidence.rule, evidence.reference, evidence.output) == ("shape", "declared", None, "v")
    assert evidence.faulty.build == Build("off")
    assert "shape [5, 0] where ONNX infers [0]" in evidence.message
    assert dict(evidence.details) == {"feed": 0, "output": 0}


def test_a_wrong_type_is_named_as_such() -> None:
    verdict = judged(Port("v", "float32", (2,)), zeros("float64", 2), zeros("float32", 2))
    assert isinstance(verdict, Violated)
    assert (verdict.evidence.kind, verdict.evidence.reference) == ("dtype", None)
    assert "float64 where ONNX infers float32" in verdict.evidence.message


@pytest.mark.parametrize("shape", [None, (2, 3), ("n", 3), (None, None)])
def test_sizes_that_are_not_fixed_say_nothing(shape: tuple[Dim, ...] | None) -> None:
    assert judged(Port("v", "float32", shape), zeros("float32", 2, 3), zeros("float32", 2, 3)) == Holds()


@pytest.mark.parametrize("shape", [(3, 3), ("n", 4), (None,)])
def test_fixed_sizes_and_ranks_count(shape: tuple[Dim, ...]) -> None:
    assert isinstance(judged(Port("v", "float32", shape), zeros("float32", 2, 3), zeros("float32", 2, 3)), Violated)


def test_another_shape_of_the_other_build_alone_has_a_reference() -> None:
    verdict = judged(Port("v", "float32", (0,)), zeros("float32", 0), zeros("float32", 5, 0))
    assert isinstance(verdict, Violated)
    assert (verdict.evidence.kind, verdict.evidence.rule) == ("shape", "structure")
    assert verdict.evidence.reference is not None


def test_the_reference_is_judged_even_when_the_other_build_fails() -> None:
    case = Case(Program("onnx", b"", (), (Port("v", "float32", (0,)),)), ((),))
    runs = [Run(case, "toy", Build("off")), Run(case, "toy", Build("full"))]
    verdict = judge_pair(runs, [Values(((zeros("float32", 5, 0),),)), Raised("run", "Error", "no")], "strict")
    assert isinstance(verdict, Violated)
    assert verdict.evidence.kind == "shape"
