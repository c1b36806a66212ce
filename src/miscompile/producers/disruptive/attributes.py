"""Constraint violations in attributes, in the number of operands and results, and in declared result types.

A violation changes a draft of a valid call in one place; a proof decides whether the result is invalid.
"""

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from miscompile.base.dtypes import PLAIN
from miscompile.core.tensor import Tensor
from miscompile.graph.model import Attribute, AttributeKind, TensorType
from miscompile.ops.registry import schema
from miscompile.producers.disruptive.draft import InvalidDraft
from miscompile.producers.disruptive.operands import Broken, give_up

_KINDS: dict[str, AttributeKind] = {
    "INT": "int", "FLOAT": "float", "STRING": "string", "TENSOR": "tensor", "INTS": "ints", "FLOATS": "floats",
    "STRINGS": "strings",
}  # fmt: skip
_HUGE = 2**31
_OTHER_KIND: dict[AttributeKind, Attribute] = {
    "int": Attribute("float", 1.0),
    "float": Attribute("int", 1),
    "string": Attribute("int", 1),
    "ints": Attribute("floats", (1.0, 1.0)),
    "floats": Attribute("ints", (1, 1)),
    "strings": Attribute("ints", (1,)),
    "tensor": Attribute("int", 1),
}


def break_attribute(rng: random.Random, draft: InvalidDraft) -> Broken:
    """Put an attribute out of its range: an axis beyond the rank, a list too long, a negative size, an unknown mode."""
    known = _schema_attributes(draft)
    if not known:
        give_up("no attributes")
    name, kind = rng.choice(known)
    given = draft.attributes.get(name)
    value = given.value if given is not None and given.kind == kind else _stand_in(kind, draft)
    label, other = rng.choice(list(_variants(kind, value, _rank(draft))) or [("", None)])
    if not label:
        give_up("nothing to vary")
    changed = replace(draft, attributes={**draft.attributes, name: Attribute(kind, other)})
    was = "its default" if given is None else shown(given.value)
    detail = f"attribute {name} is {shown(other)} where a valid call has {was}"
    return Broken(changed, detail, f"{name}:{label}", "form", f"attribute {name}")


def break_signature(rng: random.Random, draft: InvalidDraft) -> Broken:
    """Give too few or too many operands or results, omit a required attribute, or add an unknown one."""
    known = schema(draft.op, draft.opset, draft.domain)
    if known is None:
        give_up("no schema")
    breaks = [
        _too_many_results,
        _too_many_operands,
        _too_few_operands,
        _absent_operand,
        _missing,
        _unknown,
        _other_kind,
    ]
    found = [broken for one in breaks if (broken := one(rng, draft, known)) is not None]
    if not found:
        give_up("nothing to break")
    return rng.choice(found)


def break_declared(rng: random.Random, draft: InvalidDraft) -> Broken:
    """Declare a result with another type, rank or size than the inferred one."""
    place = int(rng.random() * len(draft.outputs))
    kind = draft.outputs[place]
    shape = kind.shape or ()
    how = rng.choice(("dtype", "more", "fewer", "sizes"))
    if how == "dtype":
        dtype = rng.choice([name for name in PLAIN if name != kind.dtype])
        other = TensorType(dtype, shape)
    elif how == "more":
        other = TensorType(kind.dtype, (*shape, None))
    elif not shape:
        give_up("a scalar has no sizes")
    elif how == "fewer":
        other = TensorType(kind.dtype, shape[1:])
    else:
        size = rng.choice((0, 1, 2, 3, 17))
        axis = int(rng.random() * len(shape))
        other = TensorType(kind.dtype, (*shape[:axis], size, *shape[axis + 1 :]))
    outputs = (*draft.outputs[:place], other, *draft.outputs[place + 1 :])
    detail = f"result {place} is declared as {other.dtype}{shown(other.shape)}"
    return Broken(replace(draft, outputs=outputs), detail, f"{place}:{how}", place=f"result {place}")


def _too_many_results(rng: random.Random, draft: InvalidDraft, known: Any) -> Broken | None:  # noqa: ANN401 - onnx's schema
    del rng
    if known.max_output > 8:
        return None
    count = known.max_output + 1
    first = draft.outputs[0]
    outputs = tuple(draft.outputs[n] if n < len(draft.outputs) else first for n in range(count))
    return Broken(replace(draft, outputs=outputs), f"{count} results are asked for", "results+", place="results")


def _too_many_operands(rng: random.Random, draft: InvalidDraft, known: Any) -> Broken | None:  # noqa: ANN401
    del rng
    if known.max_input > 16 or not draft.parts:
        return None
    more = known.max_input + 1 - len(draft.parts)
    parts = (*draft.parts, *([draft.parts[0]] * more))
    return Broken(replace(draft, parts=parts), f"{len(parts)} operands are given", "operands+", place="operands")


def _too_few_operands(rng: random.Random, draft: InvalidDraft, known: Any) -> Broken | None:  # noqa: ANN401
    if known.min_input == 0:
        return None
    count = int(rng.random() * known.min_input)
    changed = replace(draft, parts=draft.parts[:count])
    return Broken(changed, f"{count} operands are given", f"operands={count}", place="operands")


def _absent_operand(rng: random.Random, draft: InvalidDraft, known: Any) -> Broken | None:  # noqa: ANN401
    if known.min_input == 0:
        return None
    place = int(rng.random() * known.min_input)
    parts = (*draft.parts[:place], None, *draft.parts[place + 1 :])
    return Broken(replace(draft, parts=parts), f"operand {place}, which is required, is left out", f"absent{place}")


def _missing(rng: random.Random, draft: InvalidDraft, known: Any) -> Broken | None:  # noqa: ANN401
    names = sorted(name for name in draft.attributes if name in known.attributes and known.attributes[name].required)
    if not names:
        return None
    name = rng.choice(names)
    rest = {other: value for other, value in draft.attributes.items() if other != name}
    return Broken(
        replace(draft, attributes=rest), f"attribute {name}, which is required, is left out", f"{name}:absent"
    )


def _unknown(rng: random.Random, draft: InvalidDraft, known: Any) -> Broken | None:  # noqa: ANN401
    del rng, known
    attributes = {**draft.attributes, "no_such_attribute": Attribute("int", 1)}
    return Broken(replace(draft, attributes=attributes), "an attribute is given that the operator lacks", "unknown")


def _other_kind(rng: random.Random, draft: InvalidDraft, known: Any) -> Broken | None:  # noqa: ANN401
    del known
    names = _schema_attributes(draft)
    if not names:
        return None
    name, kind = rng.choice(names)
    other = _OTHER_KIND[kind]
    detail = f"attribute {name} is of kind {other.kind} instead of {kind}"
    changed = replace(draft, attributes={**draft.attributes, name: other})
    return Broken(changed, detail, f"{name}:kind", place=f"attribute {name}")


def _schema_attributes(draft: InvalidDraft) -> list[tuple[str, AttributeKind]]:
    known = schema(draft.op, draft.opset, draft.domain)
    if known is None:
        return []
    kinds = {name: _KINDS.get(attribute.type.name) for name, attribute in known.attributes.items()}
    return sorted((name, kind) for name, kind in kinds.items() if kind is not None)


def _rank(draft: InvalidDraft) -> int:
    return next((len(part.shape) for part in draft.parts if part is not None), 0)


def _stand_in(kind: AttributeKind, draft: InvalidDraft) -> Any:  # noqa: ANN401 - the value of an attribute
    """Return a value to start from for an attribute that the call leaves to its default."""
    length = max(1, _rank(draft) - 2)
    plain: dict[AttributeKind, Any] = {
        "int": 1, "float": 1.0, "string": "x", "ints": (1,) * length, "floats": (1.0,) * length, "strings": ("x",),
    }  # fmt: skip
    return plain[kind] if kind in plain else Tensor("float32", np.ones(1, np.float32))


def _variants(kind: AttributeKind, value: Any, rank: int) -> Iterator[tuple[str, Any]]:  # noqa: ANN401
    """Yield other values for an attribute of `kind`, each with a label."""
    if kind == "int":
        numbers = {"rank": rank, "-rank-1": -rank - 1, "-1": -1, "0": 0, "2": 2, "3": 3, "7": 7, "-7": -7}
        numbers |= {"huge": _HUGE, "-huge": -_HUGE, "largest": 2**63 - 1, "smallest": -(2**63)}
        yield from ((label, number) for label, number in numbers.items() if number != value)
    elif kind == "float":
        yield from {"nan": math.nan, "inf": math.inf, "-inf": -math.inf, "-1": -1.0, "0": 0.0, "1e38": 1e38}.items()
    elif kind == "string":
        yield from (("unknown", "nonsense"), ("empty", ""), ("case", value.swapcase()))
    elif kind in ("ints", "floats"):
        yield from _lists(value, (float if kind == "floats" else int), rank)
    elif kind == "strings":
        yield from (("empty", ()), ("unknown", ("nonsense", *value[1:])), ("longer", (*value, *value)))
    elif kind == "tensor":
        yield from (
            ("two", _resized(value, (2,))),
            ("none", _resized(value, (0,))),
            ("matrix", _resized(value, (2, 2))),
        )


def _lists(value: Sequence[Any], make: type, rank: int) -> Iterator[tuple[str, tuple[Any, ...]]]:
    yield "empty", ()
    yield "longer", (*value, make(1))
    if value:
        yield "shorter", tuple(value[1:])
        yield "copies", (value[0],) * len(value)
        for label, number in {
            "-1": -1,
            "0": 0,
            "-9": -9,
            "rank": rank,
            "99": 99,
            "huge": _HUGE,
            "-huge": -_HUGE,
        }.items():
            yield f"first={label}", (make(number), *value[1:])
            yield f"last={label}", (*value[:-1], make(number))


def _resized(value: Tensor, shape: tuple[int, ...]) -> Tensor:
    return Tensor(value.dtype, np.resize(value.array, shape))


def shown(value: Any) -> str:  # noqa: ANN401
    """Return the value of an attribute, or a tensor's type and sizes, as at most 80 letters for a line for people."""
    if isinstance(value, Tensor):
        return f"{value.dtype}{list(value.shape)}"
    return str(list(value) if isinstance(value, tuple) else value)[:80]
