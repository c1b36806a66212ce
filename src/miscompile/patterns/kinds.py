"""Generalisation of element types: the values of a fragment that share a type variable, and its possible types.

Operators write their types with variables (`T`), so that one dtype runs through a fragment along them. The variable
that most holes have becomes the motif's; values that are not connected with it keep their dtype.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from miscompile.base.dtypes import DTYPES, NUMBERS, is_float
from miscompile.core.tensor import Tensor, tensor
from miscompile.graph.model import Attribute, Node, TensorType
from miscompile.ops.facts import Span
from miscompile.ops.registry import schema
from miscompile.patterns.fragment import Fragment, FragmentSetting, KnownValue, kept
from miscompile.patterns.language import TYPING

_WORTH = 2
"""Factor by which the number of possible dtypes must grow to let values of equal dtype have different ones."""


class Kinds(NamedTuple):
    """The values of the motif's dtype, that dtype in the fragment, and all possible ones, the original first."""

    members: frozenset[str]
    main: str
    dtypes: tuple[str, ...]


def kinds(
    fragment: Fragment, setting: FragmentSetting, base: Mapping[str, KnownValue], spans: Mapping[str, Span]
) -> Kinds:
    """Return which values share the motif's dtype. `spans` bounds the elements of weights, and of holes where known."""
    groups = _Groups(fragment)
    main = _main(fragment, base, groups)
    dtype = base[main].type.dtype
    if groups.fixed(main):
        return Kinds(frozenset(), dtype, (dtype,))
    alike = {name for name, one in base.items() if one.type.dtype == dtype and not groups.fixed(name)}
    own = {groups.root(main)} | {groups.root(name) for name in _converted(fragment, setting, dtype)}
    narrow = frozenset(name for name in alike if groups.root(name) in own)
    best = Kinds(narrow, dtype, ())
    for members in dict.fromkeys((frozenset(alike), narrow)):
        trial = _Trial(fragment, setting, base, members, dtype, spans)
        taken = (dtype, *(other for other in (*NUMBERS, "bool") if other != dtype and trial.takes(other)))
        if len(taken) > _WORTH * len(best.dtypes):
            best = Kinds(members, dtype, taken)
    return best


class _Groups:
    """Union-find of values that share a type variable; the root "" holds those of a fixed type."""

    def __init__(self, fragment: Fragment) -> None:
        self._above: dict[str, str] = {}
        for node in fragment.nodes:
            variables: dict[str, str] = {}
            for name, variable in _variables(node, fragment.opset):
                if "(" in variable:
                    self._join(name, "")
                else:
                    self._join(name, variables.setdefault(variable, name))

    def root(self, name: str) -> str:
        """Return the representative of the values that share a variable with this one."""
        while (above := self._above.get(name, name)) != name:
            name = above
        return name

    def fixed(self, name: str) -> bool:
        """Tell whether an operator allows one type only."""
        return self.root(name) == ""

    def _join(self, first: str, second: str) -> None:
        first, second = self.root(first), self.root(second)
        low, high = (second, first) if second == "" else (first, second)
        if low != high:
            self._above[high] = low


def _variables(node: Node, opset: int) -> Iterator[tuple[str, str]]:
    """Yield the values that a node reads and makes with the type variables, or types, that its schema gives them."""
    known = schema(node.op, opset)
    assert known is not None, "a fragment has known operators only"
    for names, formals in ((node.inputs, known.inputs), (node.outputs, known.outputs)):
        for place, name in enumerate(names):
            formal = formals[min(place, len(formals) - 1)]
            if name and (formal.is_homogeneous or place < len(formals) - 1):
                yield name, formal.type_str


def _main(fragment: Fragment, base: Mapping[str, KnownValue], groups: _Groups) -> str:
    """Return the hole whose dtype becomes the motif's: preferably free, then a float, then that of most holes."""
    roots = [groups.root(name) for name in fragment.holes]

    def rank(name: str) -> tuple[bool, bool, int]:
        return not groups.fixed(name), is_float(base[name].type.dtype), roots.count(groups.root(name))

    return max(fragment.holes, key=rank)


def _converted(fragment: Fragment, setting: FragmentSetting, dtype: str) -> Iterator[str]:
    """Yield the results whose type an attribute sets to `dtype`."""
    for node, attributes in zip(fragment.nodes, setting.attributes, strict=True):
        if any(name in TYPING and given.value == DTYPES[dtype].code for name, given in attributes.items()):
            yield from (name for name in node.outputs if name)


@dataclass(frozen=True, slots=True, eq=False)
class _Trial:
    """The fragment with some of its values in another dtype."""

    fragment: Fragment
    setting: FragmentSetting
    base: Mapping[str, KnownValue]
    members: frozenset[str]
    dtype: str
    spans: Mapping[str, Span]

    def takes(self, other: str) -> bool:
        """Tell whether all operators support `other` instead, and constants can be represented in it."""
        given = dict(self.setting.given)
        for name in self.members & given.keys():
            known = given[name]
            if known.value is not None:
                if not _has(other, known.value):
                    return False
                given[name] = kept(tensor(known.value.numbers(), other))
            elif name in self.spans and not _meets(other, self.spans[name]):
                return False
            else:
                given[name] = replace(known, type=TensorType(other, known.shape))
        attributes = tuple(
            _retyped(node, given_, self.members, self.dtype, other)
            for node, given_ in zip(self.fragment.nodes, self.setting.attributes, strict=True)
        )
        found = self.fragment.run(FragmentSetting(given, attributes))
        return found is not None and all(
            one.type == TensorType(other if name in self.members else self.base[name].type.dtype, self.base[name].shape)
            for name, one in found.items()
        )


def _retyped(
    node: Node, attributes: Mapping[str, Attribute], members: frozenset[str], dtype: str, other: str
) -> Mapping[str, Attribute]:
    """Return the attributes of a node whose results are members, in the other dtype."""
    if not members.intersection(node.outputs):
        return attributes
    changed: dict[str, Attribute] = {}
    for name, given in attributes.items():
        if name in TYPING and given.value == DTYPES[dtype].code:
            changed[name] = Attribute("int", DTYPES[other].code)
        elif given.kind == "tensor" and given.value.dtype == dtype and _has(other, given.value):
            changed[name] = Attribute("tensor", tensor(given.value.numbers(), other))
    return {**attributes, **changed} if changed else attributes


def _has(dtype: str, value: Tensor) -> bool:
    """Tell whether the elements of a constant are elements of `dtype`, or for a float are near one."""
    info, numbers = DTYPES[dtype], value.numbers()
    if not numbers.size:
        return True
    if info.kind == "bool":
        return value.dtype == "bool"
    if info.kind == "float":
        finite = numbers[np.isfinite(numbers)] if numbers.dtype.kind == "f" else numbers
        return not finite.size or bool(np.abs(finite.astype(np.float64)).max() <= info.high)
    if numbers.dtype.kind == "f" and not (np.isfinite(numbers) & (numbers == np.floor(numbers))).all():
        return False
    return bool(float(numbers.min()) >= info.low and float(numbers.max()) <= info.high)


def _meets(dtype: str, span: Span) -> bool:
    """Tell whether `dtype` has elements in a range."""
    info = DTYPES[dtype]
    if info.kind == "bool":
        return False
    lo, hi = max(span[0], info.low), min(span[1], info.high)
    return lo <= hi if info.kind == "float" else np.ceil(lo) <= np.floor(hi)
