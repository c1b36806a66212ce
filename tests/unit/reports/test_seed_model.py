"""The issue of a finding whose program began from a real model names the model and the operators."""

from miscompile.ops.seed import SeedOrigin
from miscompile.reports.issue import MOST_NODES, seed_sentence


def test_a_model_of_a_package_is_named_with_its_operators() -> None:
    text = seed_sentence(SeedOrigin("nets/a.onnx", ("Conv y", "Relu z"), "nets 1.2").as_json())
    assert text == " The program began from a slice of the model `nets/a.onnx` of nets 1.2 (`Conv y`, `Relu z`)."


def test_long_slices_are_cut() -> None:
    text = seed_sentence(SeedOrigin("a.onnx", tuple(f"Add {place}" for place in range(MOST_NODES + 3))).as_json())
    assert text.endswith("and 3 more).")
    assert "`a.onnx` (`Add 0`" in text


def test_other_programs_have_no_such_sentence() -> None:
    assert seed_sentence(None) == ""
