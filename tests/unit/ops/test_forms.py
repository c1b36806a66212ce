"""Forms of calls that nobody asked about are inferred from those that a target takes."""

import pytest

from miscompile.ops.forms import Form, Forms, form_of
from miscompile.ops.support import Support

PADS = ("Pad-13(float32,int64,float32)float32", "Pad-13(float32,int64)float32 mode=edge")


def test_the_parts_of_a_key() -> None:
    key = "Pad-18(float32,int64,,int64)float32 mode=edge"
    assert form_of(key) == Form("Pad", "18", ("float32", "int64", "", "int64"), ("float32",), "mode=edge")
    assert form_of("Clip-13(float32,,)float32").inputs == ("float32",)


@pytest.mark.parametrize(("key", "resembled"), [
    ("Pad-13(float32,int64)float32", True),
    ("Pad-13(float32,int64,float32)float32 mode=edge", True),
    ("Pad-13(float32,int64)float32 mode=wrap", False),
    ("Pad-13(float32,int64,,int64)float32", False),
    ("Pad-13(float64,int64)float64", False),
    ("Pad-18(float32,int64)float32", False),
    ("Neg-13(float32)float32", False),
])  # fmt: skip
def test_a_form_is_inferred_from_its_parts_in_the_same_version_and_types(key: str, resembled: bool) -> None:
    assert Forms(PADS).resembled(key) == resembled


def test_results_are_counted() -> None:
    forms = Forms(["Split-13(float32,int64)float32", "Split-13(int8)int8,int8"])
    assert forms.resembled("Split-13(float32,int64)float32,float32")
    assert not forms.resembled("Split-13(float32,int64)float32,float32,float32")
    assert forms.resembled("Split-13(float32)")


def test_what_was_refused_is_not_inferred() -> None:
    key = "Pad-13(float32,int64)float32"
    assert Support(set(PADS))._takes(key)
    assert not Support(set(PADS), refused={key})._takes(key)
