"""Every version of an operator: an instance restated in each operator set that can express the same call.

Between versions, attributes become inputs and inputs attributes (`axes`, `pads`, `split`, `min` and `max`, `K`),
defaults change, and broadcasting once needed an attribute. A restated instance counts only when onnx accepts the model
and, where the reference evaluator knows that version, its results equal those of the original.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx import defs

from miscompile.base.dtypes import BY_CODE, DTYPES
from miscompile.base.errors import ModelError
from miscompile.core.events import ProgressListener
from miscompile.core.tensor import tensor
from miscompile.graph.check import check
from miscompile.graph.model import AttributeKind
from miscompile.instances.instance import Instance
from miscompile.instances.values import Drawn, Held, Value, tensor_of
from miscompile.producers.instances.evaluation import evaluated
from miscompile.producers.instances.onnx_model import split_api, to_model
from miscompile.producers.instances.onnx_values import attribute_kinds, schema_of, to_array

Schema: TypeAlias = Any
"""onnx's OpSchema, an extension type."""

_RENAMED = {"constant_value": "value"}
"""Inputs whose attribute had another name."""

_FORGOTTEN = frozenset({"consumed_inputs", "is_test", "spatial"})
"""Attributes of the first operator sets that may be left out: hints, and choices that later versions fixed."""

_LAST_AXIS = frozenset({"Softmax", "LogSoftmax", "Hardmax"})
"""Operators that apply to all axes from `axis` on before operator set 13, and to that axis alone since."""

_BROADCAST = frozenset({"Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Equal", "Greater", "Less"})


def restate_all(
    instances: Iterable[Instance], on_progress: ProgressListener
) -> tuple[tuple[Instance, ...], dict[str, int]]:
    """Return the instances restated in other operator sets, with counts by outcome.

    Instances with drawn tensors are left out, because networks without weights add nothing to smaller tests.
    """
    made: list[Instance] = []
    counts: Counter[str] = Counter()
    for place, instance in enumerate(instances):
        if place % 1000 == 999:
            on_progress(f"{place + 1} instances, {len(made)} in other operator sets")
        if any(isinstance(value, Drawn) for value in instance.inputs):
            continue
        expected: list[Any] | None = None
        for version in other_versions(instance):
            counts["tried"] += 1
            found = restated(instance, version)
            if found is None:
                counts["not sayable"] += 1
                continue
            if expected is None:
                expected = _results(instance)
            verdict = _verdict(found, expected)
            counts[verdict] += 1
            if verdict in ("agree", "not comparable"):
                made.append(found)
    return tuple(made), dict(counts)


@cache
def _versions(op: str, domain: str) -> tuple[int, ...]:
    schemas = [one for one in defs.get_all_schemas_with_history() if one.name == op and one.domain == domain]
    return tuple(sorted(one.since_version for one in schemas if not one.deprecated))


def other_versions(instance: Instance) -> tuple[int, ...]:
    """Return the operator sets in which the operator changed, except that of the instance."""
    domain, op = split_api(instance.api)
    schema = schema_of(op, instance.version, domain)
    own = schema.since_version if schema else None
    return tuple(version for version in _versions(op, domain) if version != own)


def restated(instance: Instance, version: int) -> Instance | None:
    """Return the instance in operator set `version`, None when that version cannot express it.

    The caller must still check that onnx accepts it and computes the same results.
    """
    domain, op = split_api(instance.api)
    source, target = schema_of(op, instance.version, domain), schema_of(op, version, domain)
    if source is None or target is None or not _same_axis(instance, version):
        return None
    try:
        inputs, moved = _inputs(instance, source, target)
        kwargs = _attributes(instance, source, target, inputs)
    except ModelError:
        return None
    if len(instance.results) > target.max_output:
        return None
    kwargs.update({name: value for name, value in moved.items() if name not in kwargs})
    if not _broadcast(op, inputs, kwargs, target):
        return None
    if "consumed_inputs" in target.attributes and target.attributes["consumed_inputs"].required:
        kwargs["consumed_inputs"] = (0,) * target.min_input
    while inputs and inputs[-1] is None:
        inputs.pop()
    if not target.min_input <= len(inputs) <= target.max_input:
        return None
    return replace(instance, kwargs=kwargs, inputs=tuple(inputs), version=version, source="versions")


def _formals(schema: Schema) -> list[str]:
    return [one.name.lower() for one in schema.inputs]


def _inputs(instance: Instance, source: Schema, target: Schema) -> tuple[list[Value], dict[str, Value]]:
    """Return the operands in the target's order, and those that become attributes there. Raises ModelError."""
    ours, theirs = _formals(source), _formals(target)
    names = {name.lower(): name for name in target.attributes}
    inputs: list[Value] = [None] * len(theirs)
    moved: dict[str, Value] = {}
    for place, value in enumerate(instance.inputs):
        formal = ours[min(place, len(ours) - 1)]
        attribute = names.get(_RENAMED.get(formal, formal))
        if value is None:
            continue
        if place >= len(ours):  # further operands of a variadic last input
            inputs.append(value)
        elif formal in theirs:
            inputs[theirs.index(formal)] = value
        elif attribute is not None:
            moved[attribute] = _as_attribute(value, attribute_kinds_of(target)[attribute])
        elif place < len(theirs) and theirs[place] not in ours:
            inputs[place] = value
        else:
            raise ModelError(f"there is no place for {formal}")
    return inputs, moved


def attribute_kinds_of(schema: Schema) -> Mapping[str, AttributeKind]:
    """Return the kinds of a schema's attributes."""
    return attribute_kinds(schema.name, schema.since_version, schema.domain)


def _as_attribute(value: Value, kind: AttributeKind) -> Value:
    if not isinstance(value, Held) or value.tensor.dtype in ("string", "complex64", "complex128"):
        raise ModelError("no tensor whose elements could be an attribute")
    items = tuple(value.tensor.numbers().ravel().tolist())
    number = int if kind in ("int", "ints") else float
    if kind in ("ints", "floats"):
        return tuple(number(item) for item in items)
    if kind in ("int", "float") and len(items) == 1:
        return number(items[0])
    raise ModelError(f"{len(items)} elements are no attribute of kind {kind}")


def _attributes(instance: Instance, source: Schema, target: Schema, inputs: list[Value]) -> dict[str, Value]:
    """Return the attributes in the target, and put those that became inputs into `inputs`. Raises ModelError."""
    kinds, known = attribute_kinds_of(target), attribute_kinds_of(source)
    theirs, defaults = _formals(target), _defaults(source)
    kept: dict[str, Value] = {}
    for name, value in {**defaults, **instance.kwargs}.items():
        given = name in instance.kwargs
        alias = next((formal for formal in theirs if _RENAMED.get(formal, formal) == name.lower()), None)
        if name in kinds:
            if given or _defaults(target).get(name) != value:
                if isinstance(value, str) and _names(source, name, value) and not _names(target, name, value):
                    raise ModelError(f"{name} had no value {value}")
                kept[name] = _recast(value, known.get(name), kinds[name])
        elif given and alias is not None:
            inputs[theirs.index(alias)] = _as_input(value, alias, target, inputs)
        elif given and defaults.get(name) != value and not _forgettable(instance.operator, name):
            raise ModelError(f"there is no place for {name}")
    return kept


def _names(schema: Schema, attribute: str, value: str) -> bool:
    """Tell whether the page names a value of a text attribute: schemas have no list of such values.

    The modes of GridSample were bilinear and bicubic before they were linear and cubic.
    """
    return re.search(rf"\b{re.escape(value)}\b", schema.attributes[attribute].description) is not None


def _forgettable(op: str, name: str) -> bool:
    return (
        name in _FORGOTTEN
        or (name in ("broadcast", "axis") and op in _BROADCAST)
        or (op, name) == ("Gemm", "broadcast")
    )


@cache
def _schema_defaults(op: str, version: int, domain: str) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for name, one in schema_of(op, version, domain).attributes.items():
        if one.default_value.type in (1, 2, 3, 6, 7, 8):
            value = onnx.helper.get_attribute_value(one.default_value)
            plain = value.decode() if isinstance(value, bytes) else value
            found[name] = tuple(plain) if isinstance(plain, list) else plain
    return found


def _defaults(schema: Schema) -> dict[str, Value]:
    return _schema_defaults(schema.name, schema.since_version, schema.domain)


def _recast(value: Value, known: AttributeKind | None, wanted: AttributeKind) -> Value:
    if known == wanted:
        return value
    if known == "int" and wanted == "string" and isinstance(value, int) and value in BY_CODE:
        return _TYPE_NAMES.get(BY_CODE[value].name, BY_CODE[value].name.upper())  # Cast before operator set 6
    if known == "string" and wanted == "int" and isinstance(value, str):
        names = {_TYPE_NAMES.get(name, name.upper()): one.code for name, one in DTYPES.items()}
        if value in names:
            return names[value]
    raise ModelError(f"an attribute of kind {known} is of kind {wanted} there")


_TYPE_NAMES = {"float32": "FLOAT", "float64": "DOUBLE"}


def _as_input(value: Value, formal: str, target: Schema, inputs: list[Value]) -> Held:
    place = _formals(target).index(formal)
    allowed = set(target.inputs[place].types)
    first = next((one for one in inputs if isinstance(one, Held | Drawn)), None)
    if isinstance(value, int) or (isinstance(value, tuple) and all(isinstance(item, int) for item in value)):
        array = np.array([value] if formal == "k" else value, np.int64)
        return Held(tensor(array.reshape(1) if formal == "k" else array))
    if isinstance(value, float) or (isinstance(value, tuple) and all(isinstance(item, float) for item in value)):
        own = tensor_of(first).dtype if first is not None else "float32"
        name = {"float32": "float", "float64": "double"}.get(own, own)
        dtype = own if f"tensor({name})" in allowed and own in DTYPES else "float32"
        return Held(tensor(np.array(value, np.float32), dtype))
    raise ModelError("an attribute that is no number")


def _same_axis(instance: Instance, version: int) -> bool:
    """Tell whether `axis` means the same on both sides of operator set 13."""
    op = instance.operator
    if op not in _LAST_AXIS or (instance.version < 13) == (version < 13):
        return True
    first = instance.inputs[0]
    axis = instance.kwargs.get("axis", 1 if instance.version < 13 else -1)
    return isinstance(first, Held) and axis in (-1, len(first.tensor.shape) - 1)


def _broadcast(op: str, inputs: list[Value], kwargs: dict[str, Value], target: Schema) -> bool:
    """Set `broadcast` where shapes differ and only the attribute allows it; False where no attribute can.

    Before operator set 7 the shape of the second operand had to be a scalar's or a contiguous part of the first's.
    """
    if op == "PRelu" and target.since_version < 7:  # its slope was one number or one for each channel
        return isinstance(inputs[1], Held) and inputs[1].tensor.array.size == 1
    if "broadcast" not in target.attributes:
        if op in _BROADCAST or op == "Gemm":
            kwargs.pop("broadcast", None)
        if op in _BROADCAST:
            kwargs.pop("axis", None)
        return True
    shapes = [value.tensor.shape for value in inputs if isinstance(value, Held)]
    if op == "Gemm":
        kwargs["broadcast"] = 1
        return len(shapes) == 3
    if len(shapes) != 2 or shapes[0] == shapes[1]:
        return len(shapes) == 2
    kwargs["broadcast"] = 1
    first, second = shapes
    return len(second) <= len(first) and (math.prod(second) == 1 or second == first[len(first) - len(second) :])


def _results(instance: Instance) -> list[Any] | None:
    """Return the reference evaluator's results for the instance; None when it fails."""
    try:
        model, feed = to_model(instance)
        names = [info.name for info in model.graph.inputs]
        found = evaluated(model, {name: to_array(value) for name, value in zip(names, feed, strict=True)})
    except ModelError:
        return None
    return list(found.values())


def _verdict(instance: Instance, expected: list[Any] | None) -> str:
    try:
        model, _ = to_model(instance)
        check(model)
    except ModelError:
        return "rejected by onnx"
    found = _results(instance)
    if expected is None or found is None:
        return "not comparable"
    same = len(found) == len(expected) and all(map(_equal, found, expected))
    return "agree" if same else "disagree"


def _equal(first: Any, second: Any) -> bool:  # noqa: ANN401 - whatever the evaluator returns
    one, other = np.asarray(first), np.asarray(second)
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if one.dtype.kind in "OUSV":
        return bool((one == other).all())
    return bool(np.array_equal(one, other, equal_nan=one.dtype.kind in "fc"))
