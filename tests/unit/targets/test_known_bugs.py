"""Which findings a known bug covers: a prefix, but not one that ends within a longer set of passes or operators."""

import re

import pytest

from miscompile.targets.known import KnownBug, known
from miscompile.targets.registry import target_names


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
