"""Lifting: generalisation of a found fragment to a motif with only the constraints of its operators.

OATest generalises a pattern by dropping sizes and dtypes and keeping each operator's constraints (section 3.2.1). Here
no table holds those constraints: sizes, ranks and dtypes become variables where other ones pass type inference and the
rules of the operators' pages (`sizes`, `ranks`, `kinds`).
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from miscompile.base.dtypes import DTYPES, is_float
from miscompile.base.errors import RejectedDraft
from miscompile.core.tensor import Array, Tensor
from miscompile.graph.model import Attribute, Node, TensorType
from miscompile.ops.registry import having, schema
from miscompile.ops.seed import Seed
from miscompile.ops.values import Range, Style, choose_range
from miscompile.patterns.fragment import SHOWN, Fragment, FragmentSetting, KnownValue, fragment_of, kept, spread
from miscompile.patterns.kinds import Kinds, kinds
from miscompile.patterns.language import (
    TYPING,
    Argument,
    AttributeSetting,
    Elements,
    Full,
    Ints,
    Motif,
    MotifCall,
    MotifValue,
    Number,
    Numbers,
    Ref,
    Size,
    Statement,
    Weight,
    Word,
)
from miscompile.patterns.ranks import Rank, ranks
from miscompile.patterns.sizes import FragmentSizes, SizePlace

_TINY = 4
"""Greatest size of constants that keep their elements, if these look chosen by hand."""

_DIGITS = 3
"""Greatest number of decimals of a number that looks chosen by hand."""

_LARGEST = 2**31
"""Larger numbers are not inlined in calls, where integer types would clip them."""


def lift(seed: Seed, name: str) -> Motif | None:
    """Return the abstract form of `seed`, called `name` (with dashes for characters that a motif's name cannot have).

    None when the language cannot hold it (bodies, foreign or random operators, types that are not plain tensors), when
    no hole is left, or when inference does not know all its types.
    """
    fragment = fragment_of(seed)
    if fragment is None:
        return None
    setting = _as_found(seed, fragment)
    base = fragment.run(setting)
    if base is None:
        return None
    weights = {one: span for one, value in fragment.constants.items() if (span := _drawn(fragment, base, one, value))}
    given = {one: replace(known, value=None) if one in weights else known for one, known in setting.given.items()}
    setting = FragmentSetting(given, setting.attributes)
    base = fragment.run(setting)
    if base is None:
        return None
    fragment = fragment.with_sure(base)
    filled = _to_be_known(seed, fragment, base)
    if len(filled) == len(fragment.holes):
        return None
    fragment = replace(fragment, filled=filled).with_sure(base)
    return _Writer(seed, fragment, setting, base, {**weights, **filled}).motif(re.sub(r"[^\w-]+", "-", name) or "m")


@lru_cache(1 << 12)
def constant_holes(seed: Seed) -> Mapping[str, tuple[float, float]]:
    """Return the holes of a seed that its operators require to be constants, with the observed ranges."""
    fragment = fragment_of(seed)
    base = None if fragment is None else fragment.run(_as_found(seed, fragment))
    if fragment is None or base is None:
        return {}
    found = _to_be_known(seed, fragment.with_sure(base), base)
    return found if len(found) < len(fragment.holes) else {}


def _as_found(seed: Seed, fragment: Fragment) -> FragmentSetting:
    return FragmentSetting(
        {
            **{hole: _fed(kind, seed.ranges.get(hole)) for hole, kind in fragment.holes.items()},
            **{constant: kept(value) for constant, value in fragment.constants.items()},
        },
        tuple(node.attributes for node in fragment.nodes),
    )


def _fed(kind: TensorType, span: Range | None) -> KnownValue:
    """Return type and facts of a hole."""
    return KnownValue(kind) if span is None else KnownValue(kind, facts=span.facts())


def _drawn(fragment: Fragment, base: Mapping[str, KnownValue], name: str, value: Tensor) -> tuple[float, float] | None:
    """Return the range of a constant whose elements may change; None where they matter."""
    numbers = value.numbers()
    if numbers.size < 2 or value.dtype == "bool":
        return None
    flat = numbers.astype(np.float64) if is_float(value.dtype) else numbers
    finite = flat[np.isfinite(flat)] if is_float(value.dtype) else flat
    if finite.size < flat.size and (flat.size <= SHOWN or not finite.size):
        return None
    lo, hi = finite.min().item(), finite.max().item()
    if lo != hi and numbers.size <= _TINY and (not is_float(value.dtype) or _chosen(flat)):
        return None
    if numbers.size <= SHOWN and _decides(fragment, base, name):
        return None
    return (lo, hi) if not is_float(value.dtype) else _short(lo, hi)


def _chosen(numbers: Array) -> bool:
    """Tell whether all numbers look chosen by hand."""
    return bool((np.round(numbers, _DIGITS) == numbers).all())


def _short(lo: float, hi: float) -> tuple[float, float]:
    """Return the range with ends of few digits, moved inwards, so that it stays within every operator's domain."""
    if lo == hi:
        return (lo, hi)
    ends = []
    for end, turn in ((lo, math.ceil), (hi, math.floor)):
        scale = 10.0 ** (_DIGITS - 1 - math.floor(math.log10(abs(end)))) if end else 1.0
        ends.append(turn(end * scale) / scale)
    return (ends[0], ends[1]) if lo <= ends[0] < ends[1] <= hi else (lo, hi)


def _decides(fragment: Fragment, base: Mapping[str, KnownValue], name: str) -> bool:
    """Tell whether the elements of a constant determine the types of its users' results."""
    given = {one: base[one] for one in (*fragment.holes, *fragment.constants)}
    given[name] = replace(base[name], value=None)
    found = fragment.run(FragmentSetting(given, tuple(node.attributes for node in fragment.nodes)), base)
    return found is None or any(one.type != base[value].type for value, one in found.items())


def _to_be_known(seed: Seed, fragment: Fragment, base: Mapping[str, KnownValue]) -> dict[str, tuple[float, float]]:
    """Return the holes that operators require to be constants, such as indices and scales, with their ranges.

    They are found by search: a minimal set of operands, other than the first, whose elements make a node sure.
    """
    found: dict[str, tuple[float, float]] = {}
    for place, node in enumerate(fragment.nodes):
        wanted: dict[str, KnownValue] = {}
        for name in node.inputs[1:] if place not in fragment.sure else ():
            if name in fragment.holes and name != node.inputs[0] and (known := _spread(seed, base, name)) is not None:
                wanted[name] = known
        if not wanted or not fragment.is_sure(place, {**base, **wanted}):
            continue
        for name in tuple(wanted):
            rest = {other: known for other, known in wanted.items() if other != name}
            if fragment.is_sure(place, {**base, **rest}):
                wanted = rest
        found.update((name, (seed.ranges[name].lo, seed.ranges[name].hi)) for name in wanted)
    return found


def _spread(seed: Seed, base: Mapping[str, KnownValue], hole: str) -> KnownValue | None:
    """Return a hole as a constant with elements over its observed range; None without a range."""
    kind, span = base[hole].type, seed.ranges.get(hole)
    if span is None or kind.dtype == "bool" or not (math.isfinite(span.lo) and math.isfinite(span.hi)):
        return None
    return spread(kind, (span.lo, span.hi))


@dataclass(slots=True)
class _Names:
    """Short names for the values of a fragment: x1 for holes, w1 for weights, c1 for constants, v1 for results."""

    known: dict[str, str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def new(self, letter: str, name: str) -> str:
        self.counts[letter] += 1
        given = self.known[name] = f"{letter}{self.counts[letter]}"
        return given


class _Writer:
    """The analysis of a fragment, and the statements of its motif."""

    def __init__(
        self,
        seed: Seed,
        fragment: Fragment,
        setting: FragmentSetting,
        base: Mapping[str, KnownValue],
        drawn: Mapping[str, tuple[float, float]],
    ) -> None:
        self.seed, self.fragment, self.setting, self.base, self.drawn = seed, fragment, setting, base, drawn
        self.sizes = FragmentSizes(fragment, setting, base).names()
        together = Counter(self.sizes.values())
        alone = {place for place, name in self.sizes.items() if together[name] == 1}
        self.ranks = ranks(fragment, setting, base, [hole for hole in fragment.holes if hole not in drawn], alone)
        self.within = {hole: span for hole in fragment.holes if (span := self._bounds(hole)) and hole not in drawn}
        self.kinds: Kinds = kinds(fragment, setting, base, {**self.within, **drawn})
        self.uses = Counter(name for node in fragment.nodes for name in node.inputs)
        self.names = _Names()
        self.letters: dict[str, str] = {}

    def motif(self, name: str) -> Motif:
        statements: list[Statement] = [self._hole(hole) for hole in self.fragment.holes if hole not in self.drawn]
        for place, node in enumerate(self.fragment.nodes):
            statements += self._node(place, node)
        return Motif(name, noop=False, dtypes=self.kinds.dtypes, statements=tuple(statements))

    def _bounds(self, hole: str) -> tuple[float, float] | None:
        """Return the observed interval of a hole's elements, if it is significantly narrower than the usual range."""
        span = self.seed.ranges.get(hole)
        dtype = self.fragment.holes[hole].dtype
        if span is None or dtype == "bool" or not (math.isfinite(span.lo) and math.isfinite(span.hi)):
            return None
        try:
            usual = choose_range(dtype, Style())
        except RejectedDraft:
            return None
        if span.lo <= usual.lo and span.hi >= usual.hi:
            return None
        told = not is_float(dtype) or span.lo >= 0 or span.hi <= 0 or (span.lo >= -1 and span.hi <= 1)
        if not told or span.lo >= span.hi:
            return None
        return _short(span.lo, span.hi) if is_float(dtype) else (span.lo, span.hi)

    def _dtype(self, name: str) -> str | None:
        return None if name in self.kinds.members else self.base[name].type.dtype

    def _size(self, place: SizePlace, number: int) -> Size:
        """Return the name of the size at a place, counted in the order of the text, else the number."""
        group = self.sizes.get(place)
        return number if group is None else self.letters.setdefault(group, f"N{len(self.letters) + 1}")

    def _axes(self, name: str, dropped: int = 0) -> tuple[Size, ...]:
        sizes = list(enumerate(self.base[name].shape))[dropped:]
        return tuple([self._size(SizePlace(name, axis), size) for axis, size in sizes])

    def _hole(self, hole: str) -> MotifValue:
        rank = self.ranks.get(hole, Rank(leading=False, dropped=0))
        sizes = self._axes(hole, rank.dropped)
        name = self.names.new("x", hole)
        return MotifValue(name, sizes, rank.leading, self._dtype(hole), self.within.get(hole))

    def _node(self, place: int, node: Node) -> Iterator[Statement]:
        """Yield the constants first used here, then the call."""
        inputs, settings = list(node.inputs), dict(self._settings(place, node))
        axes = self._axes_input(node)
        if axes is not None:
            settings["axes"] = axes
            inputs.pop()
        inline = self._inline(node, inputs)
        for name in inputs:
            if name and name not in self.names.known and name not in inline:
                yield self._constant(name)
        arguments = tuple(
            None if not name else inline[name] if name in inline else Ref(self.names.known[name]) for name in inputs
        )
        results = tuple(self.names.new("v", name) if name else "_" for name in node.outputs)
        yield MotifCall(results, node.op, arguments, tuple(settings.items()))

    def _axes_input(self, node: Node) -> tuple[Size, ...] | None:
        """Return axes that are the second and last input: as an attribute, they work in every opset."""
        known = schema(node.op, self.fragment.opset)
        if known is None or len(node.inputs) != 2 or known.inputs[min(1, len(known.inputs) - 1)].name != "axes":
            return None
        value = self.base[node.inputs[1]].value
        return None if value is None or value.array.ndim != 1 else self._numbers(node.inputs[1], value)

    def _numbers(self, name: str, value: Tensor) -> tuple[Size, ...]:
        numbers = enumerate(value.array.ravel().tolist())
        return tuple([self._size(SizePlace(name, at, element=True), number) for at, number in numbers])

    def _constant(self, name: str) -> Statement:
        if name in self.drawn:
            return Weight(self.names.new("w", name), self._axes(name), self.drawn[name], self._dtype(name))
        value = self.base[name].value
        assert value is not None, "constants that are not drawn keep their elements"
        elements = self._elements(name, value)
        return Numbers(self.names.new("c", name), elements)

    def _elements(self, name: str, value: Tensor) -> Elements:
        values = self._numbers(name, value) if value.dtype == "int64" else tuple(_plain(value))
        sizes = None if value.array.ndim == 1 else value.shape
        return Elements(values, sizes, self._dtype(name))

    def _inline(self, node: Node, inputs: Iterable[str]) -> dict[str, Argument]:
        """Return the constants that are written in the call itself, by their names."""
        found: dict[str, Argument] = {}
        literal: list[str] = []
        for name in inputs:
            value = self.fragment.constants.get(name)
            if value is None or self.uses[name] > 1 or name in self.names.known:
                continue
            if (
                value.dtype == "int64"
                and self._dtype(name) == "int64"
                and value.array.ndim < 2
                and name not in self.drawn
            ):
                found[name] = Ints(self._numbers(name, value), scalar=value.array.ndim == 0)
            elif _alike(value):
                literal.append(name)
        beside = next(
            (
                name
                for name in inputs
                if name and name not in found and name not in literal and self.base[name].type.dtype != "bool"
            ),
            None,
        )
        for name in literal:
            if self._same_dtype(node, name, beside):
                value = self.fragment.constants[name]
                number = next(_plain(value))
                found[name] = Full(number, self._axes(name)) if value.array.ndim else Number(number)
        return found

    def _same_dtype(self, node: Node, name: str, beside: str | None) -> bool:
        """Tell whether a number in the call has the dtype of the constant `name`, whatever the motif's is."""
        own = self._dtype(name)
        if node.op in having("float32-numbers"):
            return own == "float32"
        return own == self._dtype(beside) if beside is not None else own is None

    def _settings(self, place: int, node: Node) -> Iterator[tuple[str, AttributeSetting]]:
        for name, given in node.attributes.items():
            yield name, self._setting(place, node, name, given)

    def _setting(self, place: int, node: Node, name: str, given: Attribute) -> AttributeSetting:
        """Return an attribute in the motif language."""
        value = given.value
        own = bool(self.kinds.members.intersection(node.outputs))
        if given.kind == "int":
            dtype = next((one for one, info in DTYPES.items() if info.code == value), None) if name in TYPING else None
            if dtype is not None:
                return "T" if own and dtype == self.kinds.main else dtype
            return self._size(SizePlace("", -1, node=place, attribute=name), int(value))
        if given.kind == "ints":
            numbers = enumerate(map(int, value))
            return tuple([self._size(SizePlace("", at, node=place, attribute=name), number) for at, number in numbers])
        if given.kind == "tensor":
            sizes = None if value.array.ndim == 1 else value.shape
            follows = own and value.dtype == self.kinds.main
            return Elements(tuple(_plain(value)), sizes, None if follows else value.dtype)
        if given.kind in ("string", "strings"):
            return Word(value) if given.kind == "string" else tuple(map(Word, value))
        return float(value) if given.kind == "float" else tuple(map(float, value))


def _alike(value: Tensor) -> bool:
    """Tell whether all elements of a constant are equal, so that a call can inline it."""
    numbers = value.numbers()
    if not numbers.size or value.dtype == "bool" or not (numbers == numbers.flat[0]).all():
        return False
    return bool(abs(float(numbers.flat[0])) <= _LARGEST)


def _plain(value: Tensor) -> Iterator[float]:
    """Yield the elements as numbers of Python; NaN is always the same object, so that motifs with it are equal."""
    for number in value.numbers().ravel().tolist():
        yield math.nan if number != number else int(number) if isinstance(number, bool) else number
