"""Validation of patterns that parse, when their file is read and before a campaign uses them.

Synthesis does not validate patterns again: a graph with an undefined value or an unknown operator would end its
process.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from onnx import defs

from miscompile.base.dtypes import DTYPES, PLAIN, is_float
from miscompile.base.errors import ModelError
from miscompile.graph.check import check
from miscompile.graph.model import Model, TensorType, ValueType
from miscompile.graph.text.printer import print_type
from miscompile.ops.registry import specs
from miscompile.ops.seed import Seed
from miscompile.patterns.fragment import is_plain
from miscompile.patterns.language import (
    TYPING,
    Argument,
    AttributeSetting,
    Elements,
    Full,
    Ints,
    MotifCall,
    MotifValue,
    Number,
    Numbers,
    Size,
    Statement,
    Weight,
    Word,
)

_LARGEST = 1 << 16
"""Greatest number of elements of a constant, because seeds have no room for more."""

_LARGEST_HOLE = 1 << 24
"""Greatest number of elements of a hole, so that no bridge is tried to one that is large by a typing error."""

_WHOLE = (-(2**63), 2**63 - 1)
"""Range of whole numbers that become int64: sizes, indices, and attributes."""

_NUMBERS = (-(2**63), 2**64 - 1)
"""Range of whole numbers that become an element of any type."""


def vet_statement(statement: Statement) -> None:
    """Raise ValueError for a statement that parses but is invalid in every opset.

    A call has a known operator, attributes of its names and kinds, and no more operands and results than some opset
    allows; the least numbers depend on the opset. Sizes and numbers are within the limits of tensors.
    """
    match statement:
        case MotifValue(_, sizes, within=within):
            _vet_sizes(sizes or (), _LARGEST_HOLE)
            _vet_whole(within or (), _NUMBERS)
        case Weight(_, sizes, within):
            _vet_sizes(sizes)
            _vet_whole(within or (), _NUMBERS)
        case Numbers(_, elements):
            _vet_elements(elements)
        case MotifCall():
            _vet_call(statement)


def _vet_call(call: MotifCall) -> None:
    if call.op not in specs():
        raise ValueError(f"there is no operator '{call.op}' that can be generated")
    most_in, most_out = _arity(call.op)
    if len(call.arguments) > most_in:
        raise ValueError(f"{call.op} takes at most {most_in} operands")
    if len(call.names) > most_out:
        raise ValueError(f"{call.op} has at most {most_out} results")
    for argument in call.arguments:
        _vet_argument(argument)
    kinds = _kinds(call.op)
    for name, given in call.attributes:
        if name not in kinds:
            raise ValueError(f"{call.op} has no attribute '{name}'; there are {', '.join(kinds) or 'none'}")
        if not any(_is(kind, name, given) for kind in kinds[name]):
            raise ValueError(f"the attribute '{name}' of {call.op} is of kind {' or '.join(sorted(kinds[name]))}")
        if isinstance(given, Elements):
            _vet_elements(given)
        else:
            _vet_whole(given if isinstance(given, tuple) else (given,))


def _vet_argument(argument: Argument) -> None:
    match argument:
        case Ints(values):
            _vet_whole(values)
        case Full(value, sizes):
            _vet_sizes(sizes)
            _vet_whole((value,), _NUMBERS)
        case Number(value):
            _vet_whole((value,), _NUMBERS)


def _vet_sizes(sizes: Sequence[Size], most: int = _LARGEST) -> None:
    known = [size for size in sizes if isinstance(size, int)]
    if any(size < 0 for size in known):
        raise ValueError("a size is not negative")
    if math.prod(known) > most:
        raise ValueError(f"there are at most {most:,} elements here")


def _vet_elements(elements: Elements) -> None:
    """Raise ValueError for elements that their own dtype, if any, cannot represent."""
    if elements.dtype is None or is_float(elements.dtype):
        _vet_whole(elements.values, _NUMBERS)
        return
    if any(isinstance(value, float) and not value.is_integer() for value in elements.values):
        raise ValueError(f"{elements.dtype} has whole numbers only")
    info = DTYPES[elements.dtype]
    _vet_whole(elements.values, (int(info.low), int(info.high)) if info.kind != "bool" else (0, 1))


def _vet_whole(items: Iterable[object], ends: tuple[int, int] = _WHOLE) -> None:
    """Raise ValueError for a whole number outside `ends`; words, names and fractions are not checked."""
    for item in items:
        if isinstance(item, int) and not ends[0] <= item <= ends[1]:
            raise ValueError(f"a whole number lies between {ends[0]} and {ends[1]} here")


@cache
def _versions(op: str) -> tuple["defs.OpSchema", ...]:
    """Return the schema of an operator in every version that it has had."""
    domain = specs()[op].domain
    return tuple(one for one in defs.get_all_schemas_with_history() if (one.name, one.domain) == (op, domain))


@cache
def _arity(op: str) -> tuple[int, int]:
    """Return how many operands and results an operator has at most, in any version."""
    return max(one.max_input for one in _versions(op)), max(one.max_output for one in _versions(op))


@cache
def _kinds(op: str) -> Mapping[str, frozenset[str]]:
    """Return the kinds of the attributes that some version of an operator has; `axes` can be written for its input."""
    found: dict[str, frozenset[str]] = {}
    for one in _versions(op):
        for name, said in one.attributes.items():
            found[name] = found.get(name, frozenset()) | {said.type.name.lower()}
        if any(formal.name == "axes" for formal in one.inputs):
            found["axes"] = found.get("axes", frozenset()) | {"ints"}
    return dict(sorted(found.items()))


def _is(kind: str, name: str, given: AttributeSetting) -> bool:
    """Tell whether a setting can be an attribute of `kind`; names among whole numbers are sizes."""
    items = given if isinstance(given, tuple) else None
    match kind:
        case "int":
            return isinstance(given, int | str) and (name in TYPING or not isinstance(given, Word))
        case "float":
            return isinstance(given, int | float)
        case "string":
            return isinstance(given, Word)
        case "ints":
            return items is not None and not any(isinstance(item, float | Word) for item in items)
        case "floats":
            return items is not None and not any(isinstance(item, str) for item in items)
        case "strings":
            return items is not None and all(isinstance(item, Word) for item in items)
        case _:
            return kind == "tensor" and isinstance(given, Elements)


def sound(seed: Seed) -> bool:
    """Tell whether `vet_seed` accepts a seed; a library with another one could not be read again."""
    try:
        vet_seed(seed)
    except ModelError:
        return False
    return True


def vet_seed(seed: Seed) -> None:
    """Raise ModelError for a graph that breaks ONNX's rules, or that replay does not support."""
    graph = seed.graph
    check(Model(graph, {"": seed.opset}))
    if graph.sparse_initializers or not graph.nodes or not graph.outputs:
        raise ModelError("a seed has nodes and outputs, and no sparse constants")
    types: dict[str, ValueType | None] = {}
    for info in graph.inputs:
        if not is_plain(info.type):
            said = "has no type" if info.type is None else f"is {print_type(info.type)}"
            raise ModelError(f"input {info.name!r} must be a tensor of fixed sizes, and {said}")
        types[info.name] = info.type
    for name, value in graph.initializers.items():
        if value.dtype not in PLAIN:
            raise ModelError(f"constant {name!r} has elements of {value.dtype}, which nothing is generated with")
    for name, value in seed.pinned.items():
        kind = TensorType(value.dtype, value.shape)
        if types.get(name) != kind:
            raise ModelError(f"pinned {name!r} is no input of the type {print_type(kind)}")
    for name, span in seed.ranges.items():
        if not (span.lo <= span.hi and math.isfinite(span.lo) and math.isfinite(span.hi)):
            raise ModelError(f"no number lies in the range of {name!r}, or it has no ends")
