"""The support table: the calls that a target supports, as observed by probing.

A call's *key* is its operator, the schema version in force, the dtypes of its inputs and outputs, and the string
attributes, which choose an algorithm. If the target supports some calls of a key and refuses others, the table finds
*traits* (rank of an operand, value of an attribute) that only refused calls of the operator have, in any dtype, and
refuses calls with these traits. If no trait explains the refusals, the table admits only calls with the *detail* of
a supported one. A key that nobody has asked about is supported if it resembles supported ones (`miscompile.ops.forms`).
"""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from miscompile.graph.model import TensorType
from miscompile.ops.forms import Forms
from miscompile.ops.registry import version_of
from miscompile.ops.spec import Call

CallKey = str

TABLES = ("taken", "mixed", "details", "barred", "refused")
"""The stored fields of `Support`, all of them sets of keys."""

_SEVERAL = 2

_NONE: frozenset[str] = frozenset()


def key_of(call: Call, types: Sequence[TensorType], opset: int) -> CallKey:
    """Return the key of a call, such as `Conv-11(float32,float32)float32`."""
    version = version_of(call.op, opset, call.domain)
    inputs = ",".join("" if operand is None else operand.dtype for operand in call.inputs)
    outputs = ",".join(kind.dtype for kind in types)
    chosen = "".join(
        f" {name}={given.value}" for name, given in sorted(call.attributes.items()) if given.kind == "string"
    )
    return f"{call.op}-{version}({inputs}){outputs}{chosen}"


def detail_of(call: Call, types: Sequence[TensorType], opset: int) -> CallKey:
    """Return the key with ranks, constness of operands, and string and small-integer attributes."""
    ranks = ",".join(
        "-" if operand is None else f"{operand.rank}{'c' if operand.value is not None else ''}"
        for operand in call.inputs
    )
    chosen = ",".join(
        f"{name}={attribute.value}"
        for name, attribute in sorted(call.attributes.items())
        if attribute.kind in ("string", "int")
    )
    empty = "0" if any(operand is not None and 0 in operand.shape for operand in call.inputs) else ""
    return f"{key_of(call, types, opset)}|{ranks}|{chosen}|{empty}"


_UNKNOWN = object()

_TYPING = frozenset({"to", "dtype", "output_dtype", "stash_type", "training_mode"})
"""Numeric attributes that determine the types of outputs."""


class CallClass(NamedTuple):
    """The support for all calls with one operator, version, dtypes and kernel-selecting attributes.

    `dtypes` are those of the outputs. If `mixed`, the detail of a call determines its support. Calls with `barred`
    traits are refused.
    """

    dtypes: tuple[str, ...]
    mixed: bool
    barred: frozenset[str]


def call_class_key(call: Call, opset: int) -> Hashable:
    """Return the key that all calls of one `CallClass` share."""
    dtypes = tuple(["" if operand is None else operand.dtype for operand in call.inputs])
    version = version_of(call.op, opset)
    if not call.attributes:
        return call.op, version, call.outputs, dtypes
    told = [
        (
            name,
            given.kind,
            given.value
            if given.kind == "string" or name in _TYPING
            else given.value.dtype
            if given.kind == "tensor"
            else None,
        )
        for name, given in call.attributes.items()
    ]
    return call.op, version, call.outputs, dtypes, tuple(told)


def _asked(call: Call, opset: int) -> tuple[object, ...]:
    """Return the parts of a key without the outputs."""
    dtypes = tuple(["" if operand is None else operand.dtype for operand in call.inputs])
    if not call.attributes:
        return call.op, call.domain, opset, dtypes
    chosen = [(name, given.value) for name, given in call.attributes.items() if given.kind == "string"]
    return call.op, call.domain, opset, dtypes, tuple(chosen)


def _beginning(key: CallKey) -> str:
    """Return the part of a key before the outputs, with the string attributes after them."""
    inputs, _, rest = key.partition(")")
    return inputs + ")" + rest[len(rest.partition(" ")[0]) :]


def _offered(keys: Iterable[CallKey]) -> Iterator[tuple[str, int, int, str]]:
    """Yield operator, version, position and dtype of every operand of `keys`; outputs have the positions ~0, ~1 and
    so on."""
    for key in keys:
        op, _, rest = key.partition("-")
        version, _, rest = rest.partition("(")
        inputs, _, rest = rest.partition(")")
        for place, dtype in enumerate(inputs.split(",")):
            yield op, int(version), place, dtype
        for place, dtype in enumerate(rest.partition(" ")[0].split(",")):
            yield op, int(version), ~place, dtype


def family_of(call: Call) -> CallKey:
    """Return the operator with its string attributes, such as `Conv auto_pad=SAME`, without version and dtypes.

    Only the part of a string before an underscore counts, because kernels seldom distinguish SAME_UPPER from
    SAME_LOWER.
    """
    chosen = [
        f" {name}={str(given.value).partition('_')[0]}"
        for name, given in sorted(call.attributes.items())
        if given.kind == "string"
    ]
    return call.op + "".join(chosen)


def traits_of(call: Call) -> Iterator[str]:
    """Yield the traits that a kernel may not support: rank and element count (0, 1, more) of operands, attributes."""
    for place, operand in enumerate(call.inputs):
        if operand is not None:
            size = min(2, math.prod(operand.shape))
            yield f"{place}:rank{operand.rank}"
            yield f"{place}:rank{operand.rank}of{size}"
            yield f"{place}:{'known' if operand.value is not None else 'fed'}"
    for name, given in call.attributes.items():
        if given.kind == "int":
            yield f"{name}={given.value}"
        elif given.kind == "ints":
            yield f"{name}={'plain' if all(value == 1 for value in given.value) else 'odd'}"


@dataclass(frozen=True, slots=True)
class SupportAnswer:
    """A target's answer to one call: `taken` (supported), or refused."""

    key: CallKey
    detail: CallKey
    family: CallKey
    traits: frozenset[str]
    taken: bool


@dataclass(slots=True)
class Support:
    """The calls that a target supports. `open` tables admit all (before probing, or on the user's request).

    `barred` contains `family|trait`, a family being an operator with or without its string attributes; keys in `mixed`
    of a family without barred traits are admitted by `details`. Keys in none of `taken`, `mixed` and `refused` were not
    asked about.
    """

    taken: set[CallKey] = field(default_factory=set)
    mixed: set[CallKey] = field(default_factory=set)
    details: set[CallKey] = field(default_factory=set)
    barred: set[CallKey] = field(default_factory=set)
    refused: set[CallKey] = field(default_factory=set)
    open: bool = False
    classes: dict[Hashable, CallClass | None] = field(default_factory=dict, compare=False, repr=False)
    """A cache of call classes by key, for callers that add calls; None means refused."""
    barren: set[Hashable] = field(default_factory=set, compare=False, repr=False)
    """A cache of other constructs that need a refused call, under keys of their own, so that they are not tried
    again."""
    _answers: dict[tuple[object, ...], bool | None] = field(default_factory=dict, compare=False, repr=False)
    """A cache of answers by the parts of a key, so that the text of the key is built once; None is "mixed"."""
    _beginnings: dict[tuple[object, ...], bool] = field(default_factory=dict, compare=False, repr=False)
    _begun: frozenset[str] | None = field(default=None, compare=False, repr=False)
    _offers: frozenset[tuple[str, int, int, str]] | None = field(default=None, compare=False, repr=False)
    _bars: dict[str, dict[CallKey, frozenset[str]]] | None = field(default=None, compare=False, repr=False)
    _forms: Forms | None = field(default=None, compare=False, repr=False)

    def of_any_form(self) -> "Support":
        """Return the table that admits every form of the calls of which the target supports some, for the check of
        forms, whose subject are the traits and details that it refuses."""
        return Support(taken=self.taken | self.mixed, refused=set(self.refused), open=self.open)

    def admits(self, call: Call, types: Sequence[TensorType], opset: int) -> bool:
        """Tell whether the target is known to support calls like this one."""
        if self.open:
            return True
        known = self.call_class_of(call, types, opset)
        return known is not None and self.suits(known, call, types, opset)

    def call_class_of(self, call: Call, types: Sequence[TensorType], opset: int) -> CallClass | None:
        """Return the class of a call; None when the target refuses all calls of that class."""
        dtypes = tuple([kind.dtype for kind in types])
        if self.open:
            return CallClass(dtypes, mixed=False, barred=_NONE)
        asked = (*_asked(call, opset), dtypes)
        answer = self._answers.get(asked, _UNKNOWN)
        if answer is _UNKNOWN:
            key = key_of(call, types, opset)
            answer = self._answers[asked] = None if key in self.mixed else self._takes(key)
        if answer is False:
            return None
        barred = self._barred_traits(call)
        return CallClass(dtypes, answer is None and not barred, barred)

    def suits(self, known: CallClass, call: Call, types: Sequence[TensorType], opset: int) -> bool:
        """Tell whether the target supports a call of the class `known`."""
        if known.mixed:
            return detail_of(call, types, opset) in self.details
        return not known.barred or known.barred.isdisjoint(traits_of(call))

    def _barred_traits(self, call: Call) -> frozenset[str]:
        if self._bars is None:
            bars: dict[str, dict[CallKey, set[str]]] = {}
            for entry in self.barred:
                family, _, trait = entry.partition("|")
                bars.setdefault(family.partition(" ")[0], {}).setdefault(family, set()).add(trait)
            self._bars = {
                op: {family: frozenset(traits) for family, traits in families.items()} for op, families in bars.items()
            }
        families = self._bars.get(call.op)
        if not families:
            return _NONE
        return families.get(family_of(call), _NONE) | families.get(call.op, _NONE)

    def may_admit(self, call: Call, opset: int) -> bool:
        """Tell whether calls like this one can be admitted, before its output types are known."""
        if self.open:
            return True
        asked = _asked(call, opset)
        answer = self._beginnings.get(asked)
        if answer is None:
            if self._begun is None:
                self._begun = frozenset(_beginning(key) for key in self.taken | self.mixed)
            key = key_of(call, (), opset)
            answer = self._beginnings[asked] = _beginning(key) in self._begun or self._known_forms().resembled(key)
        return answer

    def _takes(self, key: CallKey) -> bool:
        return key in self.taken or (key not in self.refused and self._known_forms().resembled(key))

    def _known_forms(self) -> Forms:
        if self._forms is None:
            self._forms = Forms(self.taken)
        return self._forms

    def offers(self, op: str, dtype: str, version: int, main: int) -> bool:
        """Tell whether some call of `op` is supported in that version whose input `main` (or output `~main`) is
        `dtype`.
        """
        if self.open:
            return True
        if self._offers is None:
            self._offers = frozenset(_offered(self.taken | self.mixed))
        return (op, version, main, dtype) in self._offers

    @property
    def pairs(self) -> set[tuple[str, str]]:
        """The pairs (operator, dtype of the first operand) with a supported call, for tables and samplers."""
        found = set()
        for key in self.taken | self.mixed:
            op, _, rest = key.partition("-")
            inputs, _, outputs = rest.partition("(")[2].partition(")")
            first = next((d for d in (*inputs.split(","), *outputs.partition(" ")[0].split(",")) if d), "")
            found.add((op, first))
        return found


def support_from(tables: Mapping[str, Iterable[CallKey]]) -> Support:
    """Return the table from its stored fields. Raises KeyError when one of `TABLES` is missing."""
    taken, mixed, details, barred, refused = (set(tables[name]) for name in TABLES)
    return Support(taken, mixed, details, barred, refused)


def gather(answers: Iterable[SupportAnswer]) -> Support:
    """Build a table from a target's answers."""
    known = list(answers)
    yes = {answer.key for answer in known if answer.taken}
    no = {answer.key for answer in known if not answer.taken}
    usable = {key.partition(" ")[0] for key in yes}
    fine = {mark for answer in known if answer.taken for mark in _marks(answer)}
    unlike = [
        (_marks(answer) - fine, answer.key in yes)
        for answer in known
        if not answer.taken and answer.key.partition(" ")[0] in usable
    ]
    taken_details = {answer.detail for answer in known if answer.taken}
    refused_details = {answer.detail for answer in known if not answer.taken}
    barred = _explanation([(marks, telling) for marks, telling in unlike if marks])
    return Support(yes - no, yes & no, taken_details - refused_details, barred, no - yes)


def _marks(answer: SupportAnswer) -> frozenset[CallKey]:
    """Return the traits, qualified by the operator alone, and by the operator with its string attributes."""
    families = {answer.family, answer.family.partition(" ")[0]}
    return frozenset(f"{family}|{trait}" for family in families for trait in answer.traits)


def _explanation(refusals: list[tuple[frozenset[CallKey], bool]]) -> set[CallKey]:
    """Return a small set of marks that covers all refusals, frequent and general marks first (greedy cover).

    A refusal counts fully when another call of its key is supported. Otherwise the key itself may be the cause, so a
    mark must explain several such refusals.
    """
    chosen: set[CallKey] = set()
    while refusals:
        counts = Counter(
            mark for marks, telling in refusals for mark in marks for _ in range(_SEVERAL if telling else 1)
        )
        best = min(counts, key=lambda mark: (-counts[mark], " " in mark, mark))
        if counts[best] < _SEVERAL:
            break
        chosen.add(best)
        refusals = [(marks, telling) for marks, telling in refusals if best not in marks]
    return chosen


def joint(parts: Sequence[Support]) -> Support:
    """Return the table of the calls that every target supports; `parts` are the targets' tables, and open ones admit
    all.

    A key is mixed when it is mixed for any target, and then admits the details that each such target supports.
    """
    known = [part for part in parts if not part.open]
    if len(known) <= 1:
        return known[0] if known else Support(open=True)
    common = set.intersection(*(part.taken | part.mixed for part in known))
    mixed = {key for key in common if any(key in part.mixed for part in known)}
    offered = {detail for part in known for detail in part.details if _key(detail) in mixed}
    details = {detail for detail in offered if all(detail in p.details for p in known if _key(detail) in p.mixed)}
    barred, refused = (set.union(*(getattr(part, name) for part in known)) for name in ("barred", "refused"))
    return Support(common - mixed, mixed, details, barred, refused)


def _key(detail: str) -> str:
    return detail.partition("|")[0]
