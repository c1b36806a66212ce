"""Which findings a known bug covers: a prefix, but not one that ends within a longer set of passes or operators."""

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
        assert entry.covers(entry.signature.removesuffix("$"))


@pytest.mark.parametrize("target", ["openvino{via=torch}", "openvino==2026.4.1{via=torch}"])
def test_a_bug_of_a_front_end_is_known_in_every_release(target: str) -> None:
    entry = known("openvino", "torch").bugs[0]
    assert "{via=torch}" in entry.signature
    rest = entry.signature.removesuffix("$").partition("}")[2]
    assert known("openvino", "torch").bug(f"{target}{rest}") == entry
