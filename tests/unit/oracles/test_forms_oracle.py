"""A refused call is a finding where the compiler takes another form of it, and no refusal is one otherwise."""

import random
from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import helper

from miscompile.core.case import Case
from miscompile.core.examination import Examination, examine
from miscompile.core.outcome import Outcome, Raised, Unsupported, Values
from miscompile.core.run import Run
from miscompile.core.tensor import tensor
from miscompile.core.verdict import Holds, Inconclusive, Violated
from miscompile.execution.pool import LocalPool
from miscompile.graph.emit import to_program
from miscompile.graph.read import read
from miscompile.oracles.forms import TakenForms
from miscompile.oracles.kinds import OracleContext
from miscompile.oracles.registry import hold
from miscompile.transforms.runner import TransformingRunner


def pooling(**attributes: int) -> Case:
    graph = helper.make_graph(
        [helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[2], **attributes)],
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 1, 4])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, 1, 3])],
    )
    model = read(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)]).SerializeToString())
    recipe = {"op": "AveragePool", "oracle": "forms"}
    return Case(to_program(model), ((tensor(np.ones((1, 1, 4)), "float32"),),), recipe)


class _Refusing:
    """A runner that refuses every run but those under the transform `taken`, and remembers what it was asked."""

    def __init__(self, refusal: Outcome, taken: str = "") -> None:
        self.refusal, self.taken = refusal, taken
        self.asked: list[list[str]] = []

    def run(self, runs: Sequence[Run]) -> list[Outcome]:
        transforms = [str(run.build.transform or "") for run in runs]
        self.asked.append(transforms)
        return [Values(((),)) if self.taken and one == self.taken else self.refusal for one in transforms]


def examined(runner: _Refusing, target: str = "toy") -> Examination:
    return examine(pooling(ceil_mode=1), TakenForms(target), runner, random.Random(0))


def test_a_form_that_breaks_a_rule_of_the_page_says_nothing() -> None:
    runner = _Refusing(Unsupported("compile", "toy has no kernel for this"), "form{change=more, of=ceil_mode}")
    assert isinstance(examined(runner).verdict, Inconclusive)
    assert any(runner.taken in transforms for transforms in runner.asked)


def test_the_toy_refuses_rounding_up_and_takes_a_pooling_without_it() -> None:
    with TransformingRunner(LocalPool("toy", 1)) as pool:
        seen = examine(pooling(ceil_mode=1), TakenForms("toy"), pool, random.Random(0))
        assert isinstance(seen.verdict, Violated)
        evidence = seen.verdict.evidence
        assert (evidence.kind, evidence.rule) == ("refused-form", "forms")
        assert "`ceil_mode` left out" in evidence.details["forms"]
        assert "AveragePool with ceil_mode" in evidence.message
        held = hold("forms", evidence, OracleContext(("toy",)))
        assert isinstance(examine(pooling(ceil_mode=1), held, pool, random.Random(0)).verdict, Violated)
        assert examine(pooling(), held, pool, random.Random(0)).verdict == Holds()


def test_forms_are_asked_for_in_steps_and_a_refusal_of_all_is_lawful() -> None:
    runner = _Refusing(Unsupported("compile", "toy has no kernel for it"))
    assert examined(runner).verdict == Inconclusive("refused in every form that was tried")
    assert len(runner.asked) == 4  # the program, its parts, ranks, sizes
    assert runner.asked[2] == ["form{change=wider}"]  # a window has as many axes as its operand
    assert runner.asked[0] == [""]


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (Raised("compile", "E", "m"), "raised before any form"),
        (Unsupported("compile", "none", kind="NoDeviceError"), "refused in every form, as its reason says"),
    ],
)
def test_errors_and_lawful_refusals_ask_for_nothing(outcome: Outcome, reason: str) -> None:
    runner = _Refusing(outcome, "form{change=default, of=ceil_mode}")
    assert examined(runner, "onnxruntime").verdict == Inconclusive(reason)
    assert len(runner.asked) == 1


def test_the_first_step_with_a_taken_form_decides_and_names_it() -> None:
    runner = _Refusing(Unsupported("compile", "no"), "form{change=default, of=ceil_mode}")
    verdict = examined(runner, "onnxruntime").verdict
    assert isinstance(verdict, Violated)
    assert verdict.evidence.details == {"forms": ["`ceil_mode` left out"]}
    assert len(runner.asked) == 2
