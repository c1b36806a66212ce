"""The issue of a finding whose program began from a real model names the model and the operators."""

from miscompile.instances.code import encoded
from miscompile.instances.instance import Instance
from miscompile.ops.seed import SeedOrigin
from miscompile.reports.issue import MOST_NODES, neighbour_sentence, seed_sentence


def test_a_model_of_a_package_is_named_with_its_operators() -> None:
    text = seed_sentence(SeedOrigin("nets/a.onnx", ("Conv y", "Relu z"), "nets 1.2").as_json())
    assert text == " The program began from a slice of the model `nets/a.onnx` of nets 1.2 (`Conv y`, `Relu z`)."


def test_long_slices_are_cut() -> None:
    text = seed_sentence(SeedOrigin("a.onnx", tuple(f"Add {place}" for place in range(MOST_NODES + 3))).as_json())
    assert text.endswith("and 3 more).")
    assert "`a.onnx` (`Add 0`" in text


def test_other_programs_have_no_such_sentence() -> None:
    assert seed_sentence(None) == ""


def test_a_neighbour_names_the_test_and_the_difference() -> None:
    held = Instance(
        "onnx", "Clip", "node", version=13, source="neighbours", origin="min left out and max fed; from test_clip"
    )
    said = neighbour_sentence({"instance": encoded(held).decode()})
    assert said == " Before the reduction, the operator differed from `test_clip` by: min left out and max fed."
    own = Instance("onnx", "Clip", "node", version=13, source="tests", origin="test_clip")
    assert neighbour_sentence({"instance": encoded(own).decode()}) == ""
    assert neighbour_sentence({}) == neighbour_sentence({"instance": "not JSON"}) == ""


def test_a_triaged_neighbour_names_what_its_bug_needs_and_what_it_does_not() -> None:
    told = {"test": "test_clip", "needed": ["min left out"], "undone": ["every operand fed"]}
    assert neighbour_sentence({"differences": told}) == (
        " Before the reduction, the operator differed from `test_clip` of the library by: min left out. The bug does "
        "not need these: every operand fed."
    )
    own = neighbour_sentence({"differences": {**told, "needed": []}})
    assert "the test's own parameters show it as well. The bug does not need these: every operand fed." in own
