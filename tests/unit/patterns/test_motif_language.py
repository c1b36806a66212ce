"""The motif language: what parses, and what an author is told when a line does not."""

import pytest

from miscompile.base.dtypes import FLOATS
from miscompile.base.errors import SpecError
from miscompile.patterns.catalogue import catalogue, fusion_motifs, noop_motifs
from miscompile.patterns.language import Apply, Full, Ints, Motif, Number, Ref, Value, Weight, parse_motifs
from miscompile.ops.registry import specs


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
    assert x == Value("x", ("N",), leading=True)
    assert s == Value("s", None, leading=True)
    assert w == Weight("w", ("N", 3), (0.5, 2))
    assert split == Apply(("a", "b"), "Split", (Ref("x"), Ints((0, "N", -1))), (("axis", -1), ("mode", "edge")))
    assert isinstance(total, Apply)
    assert total.arguments == (Ref("a"), None, Number(0.5), Full(2, (1, "N")))
    assert total.attributes == (("to", "T"), ("axes", (-1,)))


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
        ("y = Cast(x, to={})", "an attribute must be a number, a word or a tuple"),
        ("dtypes('float31')", "there is no dtype 'float31'"),
        ("dtypes(3)", "a quoted word is expected"),
        ("y = Neg(x", "was never closed"),
    ],
)
def test_errors_name_file_line_and_motif(line: str, says: str) -> None:
    text = f"# a comment\n\n[first]\nx = value()\ny = Neg(x)\n\n[bad]\nx = value()\n{line}\n"
    with pytest.raises(SpecError) as caught:
        list(parse_motifs(text, "here.motif"))
    assert str(caught.value).startswith("here.motif:9: motif bad: ")
    assert says in str(caught.value)


def test_the_shipped_motifs_parse_and_name_operators_that_have_specs() -> None:
    assert len(fusion_motifs()) > 150
    assert len(noop_motifs()) > 30
    assert len({motif.name for motif in catalogue()}) == len(catalogue())
    unknown = {op for motif in catalogue() for op in motif.operators} - set(specs())
    assert not unknown


def test_a_no_op_begins_with_its_value_and_ends_with_a_call() -> None:
    for motif in noop_motifs():
        assert isinstance(motif.statements[0], Value), motif.name
        assert isinstance(motif.statements[-1], Apply), motif.name
