"""The forms of an operator that a target takes, from which untried combinations of them are inferred.

A probe asks about a few random calls of each operator, so that by chance it never asks about `Pad(x, pads)` without a
mode and a value, although it has seen `Pad(x, pads, value)` and `Pad(x, pads, mode="edge")`. Motifs have fixed forms,
and one that needs an untried form would never be planted. A form is which operands a call has, how many results, and
which texts its attributes hold.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Form(NamedTuple):
    """The parts of a key `Pad-13(float32,int64,,int64)float32 mode=edge`; an operand that is left out is empty."""

    op: str
    version: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    texts: str


def form_of(key: str) -> Form:
    """Return the parts of a key of a call."""
    op, _, rest = key.partition("-")
    version, _, rest = rest.partition("(")
    inputs, _, rest = rest.partition(")")
    outputs, _, texts = rest.partition(" ")
    return Form(op, version, tuple(inputs.rstrip(",").split(",")), tuple(filter(None, outputs.split(","))), texts)


class Forms:
    """The forms of the calls that a target takes."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._given: defaultdict[str, set[tuple[bool, ...]]] = defaultdict(set)
        self._counts: defaultdict[str, set[int]] = defaultdict(set)
        self._texts: defaultdict[str, set[str]] = defaultdict(set)
        self._types: defaultdict[tuple[str, str], set[tuple[tuple[str, ...], tuple[str, ...]]]] = defaultdict(set)
        for form in map(form_of, taken):
            self._given[form.op].add(_given(form))
            self._counts[form.op].add(len(form.outputs))
            self._texts[form.op].add(form.texts)
            self._types[form.op, form.version].add((form.inputs, form.outputs))

    def resembled(self, key: str) -> bool:
        """Tell whether calls that are taken have each part of the form of `key`.

        The operands that are given, the number of results and the texts must be those of some call of the operator, in
        any version and type. One call of its version must have the same types where both have an operand or result. A
        key without results stands for all with the same operands.
        """
        form = form_of(key)
        if _given(form) not in self._given[form.op] or form.texts not in self._texts[form.op]:
            return False
        if form.outputs and len(form.outputs) not in self._counts[form.op]:
            return False
        return any(
            _agree(inputs, form.inputs) and _agree(outputs, form.outputs)
            for inputs, outputs in self._types[form.op, form.version]
        )


def _given(form: Form) -> tuple[bool, ...]:
    return tuple(bool(dtype) for dtype in form.inputs)


def _agree(one: Sequence[str], other: Sequence[str]) -> bool:
    return all(a == b or not a or not b for a, b in zip(one, other, strict=False))
