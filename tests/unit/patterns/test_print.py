"""Motifs as text: what is printed parses back to the same motif, whatever it holds."""

from typing import Any

from hypothesis import given
from motif_strategies import motifs

from miscompile.patterns.language import Elements, Motif, MotifCall, parse_motifs
from miscompile.patterns.print import print_motif
from miscompile.patterns.shipped import catalogue


def typed(value: Any) -> Any:
    """What equality does not tell apart: quoted words from names, and whole floats from integers in tuples."""
    if isinstance(value, tuple):
        return tuple(map(typed, value))
    return type(value).__name__, repr(value)


def kinds(motif: Motif) -> Any:
    return [
        [typed(setting) for _, setting in statement.attributes if not isinstance(setting, Elements)]
        for statement in motif.statements
        if isinstance(statement, MotifCall)
    ]


@given(motifs())
def test_what_is_printed_parses_back(motif: Motif) -> None:
    (back,) = parse_motifs(print_motif(motif), "printed")
    assert back == motif
    assert kinds(back) == kinds(motif)


def test_the_catalogue_prints_and_parses_back() -> None:
    back = tuple(parse_motifs("\n".join(map(print_motif, catalogue())), "printed"))
    assert back == catalogue()
    assert list(map(kinds, back)) == list(map(kinds, catalogue()))


def test_the_text_is_what_an_author_would_write() -> None:
    text = (
        "[noop: m]\n"
        "x = value(..., N)\n"
        "s = value(rank=0, dtype=\"int64\", lo=0, hi=5)\n"
        "w = weight(N, 3, lo=0.5, hi=2)\n"
        "c = numbers((1.5, -inf), sizes=(2, 1))\n"
        "a, _ = Split(x, ints(0, N), _, axis=-1)\n"
        "y = Sum(a, full(2, 1, N), index(0), 0.5, to=int8, mode=\"edge\", axes=(-1,))\n"
        "dtypes(\"float16\")\n"
    )  # fmt: skip
    (motif,) = parse_motifs(text, "here")
    assert print_motif(motif) == text
