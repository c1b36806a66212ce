"""The support table: which calls a target takes, found by probing and never guessed.

A call's *key* is its operator, the schema version in force, the dtypes of its inputs and outputs, and the
string attributes, which choose an algorithm. Where calls of one
key are taken and refused alike, the table looks at the *detail* too: ranks, and attributes that select an algorithm.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from miscompile.graph.model import TensorType
from miscompile.ops.registry import schema
from miscompile.ops.spec import Call

Key = str


def key_of(call: Call, types: Sequence[TensorType], opset: int) -> Key:
    """Return the key of a call, such as `Conv-11(float32,float32)float32`."""
    known = schema(call.op, opset, call.domain)
    version = known.since_version if known is not None else opset
    inputs = ",".join("" if operand is None else operand.dtype for operand in call.inputs)
    outputs = ",".join(kind.dtype for kind in types)
    chosen = "".join(
        f" {name}={given.value}" for name, given in sorted(call.attributes.items()) if given.kind == "string"
    )
    return f"{call.op}-{version}({inputs}){outputs}{chosen}"


def detail_of(call: Call, types: Sequence[TensorType], opset: int) -> Key:
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


def _asked(call: Call, opset: int) -> tuple[object, ...]:
    """Return what a key is made of, but for the outputs."""
    dtypes = tuple(["" if operand is None else operand.dtype for operand in call.inputs])
    if not call.attributes:
        return call.op, call.domain, opset, dtypes
    chosen = [(name, given.value) for name, given in call.attributes.items() if given.kind == "string"]
    return call.op, call.domain, opset, dtypes, tuple(chosen)


def _beginning(key: Key) -> str:
    """Return the part of a key that stands before the outputs, and the string attributes after them."""
    inputs, _, rest = key.partition(")")
    return inputs + ")" + rest[len(rest.partition(" ")[0]) :]


@dataclass(slots=True)
class Support:
    """What a target takes. `open` tables admit everything (before probing, or when a user asks for it)."""

    taken: set[Key] = field(default_factory=set)
    mixed: set[Key] = field(default_factory=set)
    details: set[Key] = field(default_factory=set)
    open: bool = False
    _answers: dict[tuple[object, ...], bool | None] = field(default_factory=dict, compare=False, repr=False)
    """Answers by everything that a key is made of, so that the text of a key is made once; None is "mixed"."""
    _beginnings: dict[tuple[object, ...], bool] = field(default_factory=dict, compare=False, repr=False)
    _begun: frozenset[str] | None = field(default=None, compare=False, repr=False)

    def admits(self, call: Call, types: Sequence[TensorType], opset: int) -> bool:
        """Tell whether the target is known to take calls like this one."""
        if self.open:
            return True
        asked = (*_asked(call, opset), tuple([kind.dtype for kind in types]))
        answer = self._answers.get(asked, _UNKNOWN)
        if answer is _UNKNOWN:
            key = key_of(call, types, opset)
            answer = self._answers[asked] = None if key in self.mixed else key in self.taken
        return detail_of(call, types, opset) in self.details if answer is None else bool(answer)

    def may_admit(self, call: Call, opset: int) -> bool:
        """Tell whether calls like this one can be admitted, before its output types are known."""
        if self.open:
            return True
        asked = _asked(call, opset)
        answer = self._beginnings.get(asked)
        if answer is None:
            if self._begun is None:
                self._begun = frozenset(_beginning(key) for key in self.taken | self.mixed)
            answer = self._beginnings[asked] = _beginning(key_of(call, (), opset)) in self._begun
        return answer

    @property
    def pairs(self) -> set[tuple[str, str]]:
        """(operator, dtype of the first operand) pairs that are taken in some form, for tables and samplers."""
        found = set()
        for key in self.taken | self.mixed:
            op, _, rest = key.partition("-")
            inputs, _, outputs = rest.partition("(")[2].partition(")")
            first = next((d for d in (*inputs.split(","), *outputs.partition(" ")[0].split(",")) if d), "")
            found.add((op, first))
        return found


def gather(probes: Iterable[tuple[Key, Key, bool]]) -> Support:
    """Make a table from probed calls: (key, detail, taken)."""
    yes: set[Key] = set()
    no: set[Key] = set()
    taken_details: set[Key] = set()
    refused_details: set[Key] = set()
    for key, detail, taken in probes:
        (yes if taken else no).add(key)
        (taken_details if taken else refused_details).add(detail)
    mixed = yes & no
    return Support(yes - mixed, mixed, taken_details - refused_details)
