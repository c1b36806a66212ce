"""The motif language: what parses, and what an author is told when a line does not."""

import math
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miscompile.base.dtypes import FLOATS
from miscompile.base.errors import SpecError
from miscompile.ops.registry import specs
from miscompile.patterns.language import (
    Elements,
    Full,
    Ints,
    Motif,
    MotifCall,
    MotifValue,
    Number,
    Numbers,
    Ref,
    Weight,
    Word,
    parse_motifs,
)
from miscompile.patterns.shipped import catalogue, fusion_motifs, noop_motifs

BIG = f"1{'0' * 400}"
"""A whole number that no float holds."""


def only(text: str) -> Motif:
    (motif,) = parse_motifs(text, "here.motif")
    return motif


def test_every_construct_parses() -> None:
    motif = only(
        "[noop: all-of_it]  # a comment\n"
        "x = value(..., N)\n"
        "s = value()\n"
        "w = weight(N, 3, lo=0.5, hi=2)\n"
        "a, b = Split(x, ints(0, N, -1), axis=-1, mode='edge')\n"
        "y = Sum(a, _, 0.5, full(2, 1, N), to=T, axes=(-1,))\n"
        "dtypes('float16', 'int8')\n"
    )
    assert (motif.name, motif.noop, motif.dtypes) == ("all-of_it", True, ("float16", "int8"))
    assert motif.operators == ("Split", "Sum")
    x, s, w, split, total = motif.statements
    assert x == MotifValue("x", ("N",), leading=True)
    assert s == MotifValue("s", None, leading=True)
    assert w == Weight("w", ("N", 3), (0.5, 2))
    assert split == MotifCall(("a", "b"), "Split", (Ref("x"), Ints((0, "N", -1))), (("axis", -1), ("mode", "edge")))
    assert isinstance(total, MotifCall)
    assert total.arguments == (Ref("a"), None, Number(0.5), Full(2, (1, "N")))
    assert total.attributes == (("to", "T"), ("axes", (-1,)))


def test_values_and_constants_of_a_dtype_of_their_own_parse() -> None:
    motif = only(
        "[m]\n"
        "i = value(..., N, dtype='int64', lo=0, hi=5)\n"
        "s = value(rank=0, dtype='bool')\n"
        "w = weight(N, dtype='int8', lo=-5, hi=5)\n"
        "a = numbers((1, N, -2), dtype='int64')\n"
        "b = numbers((1.5, -inf, nan, 0), sizes=(2, 2))\n"
        "c = numbers((3,), sizes=())\n"
    )
    assert motif.statements == (
        MotifValue("i", ("N",), True, "int64", (0, 5)),
        MotifValue("s", (), False, "bool"),
        Weight("w", ("N",), (-5, 5), "int8"),
        Numbers("a", Elements((1, "N", -2), None, "int64")),
        Numbers("b", Elements((1.5, -math.inf, math.nan, 0), (2, 2))),
        Numbers("c", Elements((3,), ())),
    )
    assert [hole.name for hole in motif.holes] == ["i", "s"]


def test_attributes_of_every_kind_parse() -> None:
    motif = only(
        "[m]\nx = value(N)\n"
        "y = F(x, a=1, b=1.0, c=inf, d='N', e=N, f=(1, N), g=(1, 0.5), h=('N', 'b'), i=(), "
        "j=numbers((7,), dtype='int8'), to=int8, dtype='T')"
    )
    (_, call) = motif.statements
    assert isinstance(call, MotifCall)
    found = dict(call.attributes)
    assert found == {
        "a": 1, "b": 1.0, "c": math.inf, "d": "N", "e": "N", "f": (1, "N"), "g": (1.0, 0.5), "h": ("N", "b"), "i": (),
        "j": Elements((7,), None, "int8"), "to": "int8", "dtype": "T",
    }  # fmt: skip
    assert isinstance(found["d"], Word)
    assert not isinstance(found["e"], Word)
    assert isinstance(found["b"], float)
    assert isinstance(found["h"], tuple)
    assert all(isinstance(word, Word) for word in found["h"])


def test_dtypes_are_all_floats_unless_said() -> None:
    assert only("[m]\nx = value()\ny = Neg(x)").dtypes == FLOATS


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("y = Neg(z)", "'z' is used before it is bound"),
        ("y = = 3", "invalid syntax"),
        ("y = 3", "a line must be name = call(...)"),
        ("y = a.b(x)", "an operator must be a plain name"),
        ("y = Neg(Abs(x))", "'Abs' cannot stand as an argument; write it on its own line"),
        ("y = Clip(x, 'a')", "a number is expected"),
        ("y[0] = Neg(x)", "a plain name is expected"),
        ("y = Cast(x, to={})", "an attribute must be a number, a word, a tuple or numbers(...)"),
        ("v = value(N, dtype='float31')", "there is no dtype 'float31' for values"),
        ("v = value(N, like=3)", "'like' is no setting here; there are dtype, lo, hi, rank"),
        ("v = value(N, rank=0)", "rank=0 stands alone"),
        ("v = value(N, lo=3)", "lo and hi come together"),
        ("v = weight(N, lo=3, hi=2)", "no number lies between lo=3 and hi=2"),
        ("v = weight(2.5)", "a whole number is expected and not 2.5"),
        ("v = numbers(1, 2)", "numbers are given as one tuple"),
        ("v = numbers((1, 'a'))", "a number is expected"),
        ("v = numbers((1, 2, 3), sizes=(2, 2))", "a constant of sizes (2, 2) has 4 elements, but 3 are given"),
        ("v = numbers((1,), sizes=(N,))", "malformed"),
        ("v = numbers((1,), sizes=(-1,))", "sizes are a tuple of whole numbers"),
        ("nan = Neg(x)", "'nan' is a number"),
        ("y = Cast(x, to='float31')", "there is no dtype 'float31'"),
        ("y = LSTM(x, activations=('Tanh', 3))", "an attribute holds words or numbers, not both"),
        ("dtypes('float31')", "there is no dtype 'float31'"),
        ("dtypes(3)", "a quoted word is expected"),
        ("y = Neg(x", "was never closed"),
        ("y = Gather(x, index())", "index(...) has one number"),
        ("y = Gather(x, index(1, 2))", "index(...) has one number"),
        ("y = Add(x, full())", "full(...) has a number, and then sizes"),
        ("y = Add(x, full(1, dtype='int8'))", "'dtype' is no setting here; there are none"),
        ("() = value(N)", "a plain name is expected"),
        ("() = Neg(x)", "a plain name is expected"),
        ("v, u = value(N)", "value(...) has one name"),
        ("v, u = numbers((1,))", "numbers(...) has one name"),
        ("v = u = Neg(x)", "a line has one equals sign"),
        ("v = Neg(x); u = Neg(x)", "one statement stands in a line"),
        ("v = numbers((1,), sizes={[]})", "a number or a quoted word is expected"),
        ("v = value(N, lo={[]}, hi=3)", "a number or a quoted word is expected"),
        ("v = value(nan)", "'nan' is a number"),
        (f"y = LSTM(x, activation_alpha=(1.5, {BIG}))", "a number among fractions is too large"),
        (f"y = Add(x, {'-' * 100_000}1)", "this is nested too deeply"),
        ("dtypes()", "there must be a dtype to choose"),
        ("types('int8')", "a line must be name = call(...), or dtypes(...)"),
        ("dtypes('int8', only=True)", "'only' is no setting here"),
    ],
)
def test_errors_name_file_line_and_motif(line: str, says: str) -> None:
    text = f"# a comment\n\n[first]\nx = value()\ny = Neg(x)\n\n[bad]\nx = value()\n{line}\n"
    with pytest.raises(SpecError) as caught:
        list(parse_motifs(text, "here.motif"))
    assert str(caught.value).startswith("here.motif:9: motif bad: ")
    assert says in str(caught.value)


def test_a_whole_number_can_be_larger_than_any_float() -> None:
    value, call = only(f"[m]\nx = value({BIG})\ny = F(x, {BIG}, ints({BIG}), a={BIG})").statements
    assert value == MotifValue("x", (10**400,), leading=False)
    assert call == MotifCall(("y",), "F", (Ref("x"), Number(10**400), Ints((10**400,))), (("a", 10**400),))


SCRAPS = [
    "x", "y", "_", "N", "inf", "nan", "...", "=", "==", ",", "(", ")", "()", "[", "]", "{", "}", "{[]}", "-",
    "+", "*", "**", ":", ";", ".", "'", "'a'", "b'a'", "1", "2.5", "1e999", BIG, "1j", "True", "None", "value(",
    "weight(", "numbers(", "numbers((1,", "ints(", "index(", "full(", "dtypes(", "Add(", "to=", "lo=", "hi=",
    "dtype=", "sizes=", "axes=", "rank=", " ", "lambda", "\\", "x = value(N)", "y = Add(x, x)", "\x00", "\x0c",
    "if x:", "not ", "f'{x}'",
]  # fmt: skip


@given(st.lists(st.sampled_from(SCRAPS), max_size=9).map("".join), st.sampled_from(["", "y = Add(x, ", "v = value("]))
def test_any_line_parses_or_is_told(scraps: str, start: str) -> None:
    with suppress(SpecError):
        only(f"[m]\nx = value(N)\n{start}{scraps}\n")


def test_the_shipped_motifs_parse_and_name_operators_that_have_specs() -> None:
    assert len(fusion_motifs()) > 150
    assert len(noop_motifs()) > 30
    assert len({motif.name for motif in catalogue()}) == len(catalogue())
    unknown = {op for motif in catalogue() for op in motif.operators} - set(specs())
    assert not unknown


def test_a_no_op_begins_with_its_value_and_ends_with_a_call() -> None:
    for motif in noop_motifs():
        assert isinstance(motif.statements[0], MotifValue), motif.name
        assert isinstance(motif.statements[-1], MotifCall), motif.name
