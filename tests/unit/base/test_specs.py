"""Specs: what is parsed prints back, and compares and hashes as a value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miscompile.base.errors import SpecError
from miscompile.base.specs import Spec, parse_spec, spec_text, stored_spec

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.\-]*", fullmatch=True)
VALUES = st.text(st.characters(exclude_characters=",", exclude_categories=["Cs"])).map(str.strip)
KEYS = st.from_regex(r"[a-z_]+", fullmatch=True)


@given(NAMES, st.dictionaries(KEYS, VALUES, max_size=4))
def test_what_is_printed_parses_back(name: str, options: dict[str, str]) -> None:
    spec = Spec(name, tuple(options.items()))
    assert parse_spec(str(spec)) == spec
    assert hash(parse_spec(str(spec))) == hash(spec)
    assert stored_spec(spec_text(spec)) == spec


@pytest.mark.parametrize(
    ("text", "spec", "printed"),
    [
        ("static", Spec("static"), "static"),
        (" wrap{} ", Spec("wrap"), "wrap"),
        ("wrap{seed=3,share=0.5}", Spec("wrap", (("seed", "3"), ("share", "0.5"))), "wrap{seed=3, share=0.5}"),
        ("wrap{ seed = 3 , seed=4}", Spec("wrap", (("seed", "4"),)), "wrap{seed=4}"),
        ("egraph{file=a=b}", Spec("egraph", (("file", "a=b"),)), "egraph{file=a=b}"),
    ],
)
def test_texts_are_parsed_and_printed_in_one_way(text: str, spec: Spec, printed: str) -> None:
    assert parse_spec(text) == spec
    assert str(spec) == printed


@pytest.mark.parametrize("text", ["", "3d", "wrap{seed}", "wrap{seed=3", "wrap;order", "two words"])
def test_what_is_no_spec_is_refused(text: str) -> None:
    with pytest.raises(SpecError, match=r"is not a spec|has no value"):
        parse_spec(text)


def test_options_keep_their_place() -> None:
    spec = parse_spec("functions{seed=1, depth=3}")
    assert str(spec.with_options(seed="7", count="2")) == "functions{seed=7, depth=3, count=2}"
    assert (spec.get("depth"), spec.get("count"), spec.get("count", "2")) == ("3", "", "2")


def test_none_is_an_empty_text() -> None:
    assert spec_text(None) == ""
    assert stored_spec("") is None
