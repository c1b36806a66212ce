"""Which findings a known bug covers: a prefix, but not one that ends within a longer set of passes or operators."""

import re

import numpy as np
import onnx
import pytest

from miscompile.graph.read import read
from miscompile.graph.text.parser import parse_model
from miscompile.targets.known import KnownBug, known
from miscompile.targets.registry import target_names
from miscompile.triage.predicate import has_pattern

IDENTITY = """ir 10
opset 18

graph g(%x: float32[2]) -> (%a: float32[2]) {
  %a = Identity(%x)
}
"""


def bug(signature: str) -> KnownBug:
    return KnownBug(signature, "https://example.org/1", "a note")


@pytest.mark.parametrize(
    ("signature", "found", "covered"),
    [
        ("t:wrong:A", "t:wrong:A", True),
        ("t:wrong:A", "t:wrong:A+B", False),
        ("t:wrong:A", "t:wrong:AB+C", False),
        ("t:shape:Reduce", "t:shape:ReduceMean>Sub:12ab", False),
        ("t:exception@run:Fail: no", "t:exception@run:Fail: no such axis", True),
        ("t:wrong:A+B", "t:wrong:A", False),
        ("t:exception@run:no f#$", "t:exception@run:no f#", True),
        ("t:exception@run:no f#$", "t:exception@run:no f#e#m#", False),
    ],
)
def test_what_an_entry_covers(signature: str, found: str, covered: bool) -> None:
    assert bug(signature).covers(found) is covered


@pytest.mark.parametrize("target", target_names())
def test_every_entry_has_a_link_and_covers_its_own_signature(target: str) -> None:
    for entry in known(target).bugs:
        assert entry.link.startswith("https://")
        assert entry.note
        plain = KnownBug(entry.signature, entry.link, entry.note)
        assert plain.covers(entry.signature.removesuffix("$"))
        if entry.pattern is not None:
            has_pattern(entry.pattern, parse_model(IDENTITY))  # raises for a damaged one


@pytest.mark.parametrize("target", ["openvino{via=torch}", "openvino==2026.4.1{via=torch}"])
def test_a_bug_of_a_front_end_is_known_in_every_release(target: str) -> None:
    entry = known("openvino", "torch").bugs[0]
    assert "{via=torch}" in entry.signature
    rest = entry.signature.removesuffix("$").partition("}")[2]
    assert known("openvino", "torch").bug(f"{target}{rest}") == entry


def test_a_known_bug_is_a_symptom_and_a_condition() -> None:
    entry = KnownBug("t:wrong:A", "https://example.org/1", "a note", re.compile("no such axis"), frozenset({"Add"}))
    assert entry.covers("t:wrong:A", "Fail: no such axis", ["Add", "Mul"])
    assert not entry.covers("t:wrong:A", "Fail: other", ["Add", "Mul"])
    assert not entry.covers("t:wrong:A", "Fail: no such axis", ["Mul"])


def test_another_error_of_a_pass_with_a_known_bug_is_new() -> None:
    listed, signature = known("onnxruntime"), "onnxruntime:exception@compile:LayerNormFusionL1"
    assert listed.bug(signature, "[ShapeInferenceError] axis -1 is not in valid range [-0,-1]") is not None
    assert listed.bug(signature, "Type 'tensor(int64)' of input parameter (x0) is invalid") is None


def test_a_pattern_is_a_condition_on_the_program() -> None:
    entry = KnownBug("t:shape:", "https://example.org/1", "a note", pattern={"values": {"c": {"elements": []}}})
    assert entry.covers("t:shape:a constant", contains=lambda pattern: pattern == entry.pattern)
    assert not entry.covers("t:shape:a constant", contains=lambda pattern: False)
    assert not entry.covers("t:shape:a constant")
    assert not entry.covers("t:wrong:a constant", contains=lambda pattern: True)


@pytest.mark.parametrize(("rows", "known_upstream"), [(0, True), (1, False)])
def test_an_empty_initializer_of_openvino_is_known_whatever_reads_it(rows: int, known_upstream: bool) -> None:
    initializer = onnx.numpy_helper.from_array(np.zeros((rows, 3), np.float32), "c")
    node = onnx.helper.make_node("Abs", ["c"], ["y"])
    output = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    graph = onnx.helper.make_graph([node], "g", [], [output], [initializer])
    model = read(onnx.helper.make_model(graph).SerializeToString())
    found = known("openvino").bug(
        "openvino:shape:Abs:12ab", "output 'y': shape [] instead of [0, 3]", {"Abs"}, lambda p: has_pattern(p, model)
    )
    assert (found is not None) is known_upstream


@pytest.mark.parametrize(("mode", "known_upstream"), [("cubic", True), ("linear", False)])
def test_an_attribute_is_part_of_a_known_bug(mode: str, known_upstream: bool) -> None:
    call = f'GridSample(%x, %x) {{mode="{mode}", padding_mode="border"}}'
    model = parse_model(IDENTITY.replace("Identity(%x)", call))
    found = known("onnxruntime").bug(
        "onnxruntime:wrong:GridSample:12ab", "", {"GridSample"}, lambda p: has_pattern(p, model)
    )
    assert (found is not None) is known_upstream


@pytest.mark.parametrize(
    ("attributes", "known_upstream"), [("{hidden_size=2, layout=1}", True), ("{hidden_size=2}", False)]
)
def test_a_layout_that_openvino_ignores_is_known_with_operands_that_are_left_out(
    attributes: str, known_upstream: bool
) -> None:
    model = parse_model(IDENTITY.replace("Identity(%x)", f"GRU(%x, %x, %x) {attributes}"))
    found = known("openvino").bug("openvino:shape:GRU", "", {"GRU"}, lambda p: has_pattern(p, model))
    assert (found is not None) is known_upstream
