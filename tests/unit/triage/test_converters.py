"""Whose fault a failure is: frames first, then what C++ says, then what was seen to run, then the operator."""

import pytest

from miscompile.core.outcome import Crashed, Raised, Values
from miscompile.instances.instance import Instance
from miscompile.triage.converters import converter_of

RELU = Instance("torch", "torch.relu", "function")
FILES = r"relax/frontend/torch/\w+\.py"


def test_the_innermost_frame_of_a_conversion_file_is_to_blame() -> None:
    frames = (
        "tvm/relax/op/nn.py:10:max_pool2d",
        "tvm/relax/frontend/torch/base_fx_graph_translator.py:99:<listcomp>",
        "tvm/relax/frontend/torch/base_fx_graph_translator.py:100:_max_pool2d_impl",
        "tvm/relax/frontend/torch/exported_program_translator.py:5:create_convert_map",
    )
    outcome = Raised("compile", "IndexError", "list index out of range", frames)
    assert converter_of(RELU, outcome, FILES, ["other"]) == "base_fx_graph_translator.py:_max_pool2d_impl"


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Check 'false' failed at src/frontends/pytorch/src/op/cat.cpp:37:\nsaid", "src/op/cat.cpp"),
        ("While converting: error in conversion of operation aten::cat, named x", "aten::cat"),
    ],
)
def test_what_a_compiler_in_another_language_says(message: str, expected: str) -> None:
    assert converter_of(RELU, Raised("compile", "RuntimeError", message), "", []).endswith(expected)


def test_what_was_seen_to_run_and_at_last_the_operator() -> None:
    assert converter_of(RELU, Values(((),)), FILES, ["aten::abs", "aten::relu"]) == "aten::relu"
    assert converter_of(RELU, Crashed("compile", 11), FILES, []) == "torch.relu"
