"""Outputs that contradict their declared types: signature, script, reduction's guard."""

import numpy as np
import pytest

from miscompile.base.errors import RejectedDraft
from miscompile.core.case import Case
from miscompile.core.run import Build, Run
from miscompile.core.tensor import tensor
from miscompile.core.verdict import Evidence, FindingKind
from miscompile.graph.emit import to_program
from miscompile.graph.model import Model
from miscompile.graph.text.parser import parse_model
from miscompile.ops.analysis import reprogram
from miscompile.triage.script import write_script
from miscompile.triage.signature import signature_of


def model(body: str, inputs: str = "%x: float32[5,0]", output: str = "float32[0]") -> Model:
    return parse_model(f"ir 10\nopset 18\n\ngraph main({inputs}) -> (%y: {output}) {{\n{body}\n}}\n")


REDUCTION = model("  init %a: int64[1] = [-2]\n  %v = Abs(%x)\n  %y = ReduceSum(%v, %a) {keepdims=0}")


def evidence(kind: FindingKind, reference: bool) -> tuple[Case, Evidence]:
    case = Case(to_program(REDUCTION), ((tensor(np.zeros((5, 0), np.float32)),),))
    off, full = Run(case, "onnxruntime", Build("off")), Run(case, "onnxruntime", Build("full"))
    held = (
        Evidence(kind, "structure", "m", full, off, "y")
        if reference
        else Evidence(kind, "declared", "m", off, None, "y")
    )
    return case, held


def test_the_operator_that_makes_the_output_is_the_signature() -> None:
    _, held = evidence("shape", reference=False)
    assert str(signature_of(held, None, (), REDUCTION)) == "onnxruntime:shape:Reduce"  # they share their shape code


def test_the_script_holds_the_output_against_the_declared_type() -> None:
    case, held = evidence("shape", reference=False)
    script = write_script(case, held)
    compile(script, "repro.py", "exec")
    assert 'DECLARED = ("float32", (0,))' in script
    assert "expected" not in script


def test_a_missing_output_may_show_as_an_error_of_the_wrapper() -> None:
    case, held = evidence("missing", reference=True)
    script = write_script(case, held)
    compile(script, "repro.py", "exec")
    assert "except Exception as error:" in script


def test_a_reduction_cannot_make_a_call_against_its_operators_page() -> None:
    broken = model("  init %lo: float32[1] = [0.0]\n  %y = Clip(%x, %lo)", output="float32[5,0]")
    with pytest.raises(RejectedDraft, match="Clip breaks a rule"):
        reprogram(broken, (tensor(np.zeros((5, 0), np.float32)),))


def test_sizes_that_follow_from_fed_axes_are_declared() -> None:
    open_model = model("  %y = ReduceSum(%x, %a) {keepdims=0}", "%x: float32[5,0], %a: int64[1]", "float32[?]")
    assert to_program(open_model).outputs[0].shape == (None,)
    program = reprogram(open_model, (tensor(np.zeros((5, 0), np.float32)), tensor(np.array([-2]))))
    assert program.outputs[0].shape == (0,)
