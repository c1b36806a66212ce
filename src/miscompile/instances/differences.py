"""The differences of a neighbour from its parent, and the instances between the two.

A difference is one aspect of one parameter, so that each can be undone alone: a tensor has its element type, its shape
and its elements, anything else its value. An instance between neighbour and parent has some of the differences.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from miscompile.base.dtypes import DTYPES
from miscompile.core.tensor import Tensor
from miscompile.instances.code import value_json
from miscompile.instances.conversion import converted, refitted
from miscompile.instances.instance import OPERAND_POLICIES, Instance, Parent
from miscompile.instances.values import Drawn, Held, Value, tensor_of
from miscompile.instances.wording import POLICY_WORDS, brief, class_of_elements

DifferenceKind = Literal["value", "type", "shape", "elements"]

OPERANDS, RESULTS = "(operands)", "(results)"
"""The keys of what is no parameter of the operator: which operands are fed, and which results are named."""

_LISTED = 8
"""Greatest length of a list of integers that is one value, because it holds axes, sizes or pads."""


@dataclass(frozen=True, slots=True, order=True)
class ParameterDifference:
    """One aspect of the parameter `key`, as in `Instance.parameters`."""

    key: str
    kind: DifferenceKind


def differences(one: Instance, parent: Instance) -> tuple[ParameterDifference, ...]:
    """Return in what an instance differs from another one of the same operator."""
    own, other = _values(one), _values(parent)
    keys = dict.fromkeys((*other, *own))
    return tuple(ParameterDifference(key, kind) for key in keys for kind in _kinds(own.get(key), other.get(key)))


def between(one: Instance, parent: Instance, kept: Collection[ParameterDifference]) -> Instance:
    """Return `parent` with those differences of `one` from it that are in `kept`."""
    own, other = _values(one), _values(parent)
    mixed = {}
    for key in dict.fromkeys((*other, *own)):
        kinds = {found.kind for found in kept if found.key == key}
        mixed[key] = _mixed(own.get(key), other.get(key), kinds)
    return _rebuilt(one, parent, mixed)


def described(one: Instance, parent: Parent, kept: Collection[ParameterDifference]) -> tuple[str, ...]:
    """Return differences in words, those of several tensors that are alike together."""
    own, other = _values(one), _values(parent.instance)
    words: dict[str, list[str]] = {}
    for found in sorted(kept, key=list(differences(one, parent.instance)).index):
        before, now = other.get(found.key), own.get(found.key)
        name = parent.names.get(found.key) or named(found.key)
        words.setdefault(_words(found, before, now), []).append(name)
    return tuple(text.format(", ".join(names)) for text, names in words.items())


def named(key: str) -> str:
    """Return the name in a text of a parameter whose library's name is unknown."""
    return f"argument {key}" if key.isdigit() else key


def _values(instance: Instance) -> dict[str, Value]:
    """Return the parameters that are given by key; None for one that is given as None counts as left out."""
    given = {key: value for key, value in instance.parameters().items() if value is not None}
    return {**given, OPERANDS: instance.operands, RESULTS: instance.results}


def _kinds(own: Value, other: Value) -> Iterator[DifferenceKind]:
    if _same(own, other):
        return
    first, second = _tensor(own), _tensor(other)
    if first is None or second is None or "string" in (first.dtype, second.dtype):
        yield "value"
        return
    if _listed(first) and _listed(second) and first.dtype == second.dtype:
        yield "value"
        return
    if first.dtype != second.dtype:
        yield "type"
    if first.shape != second.shape:
        yield "shape"
    if not _formed(second, first.dtype, first.shape).same(first):
        yield "elements"


def _same(own: Value, other: Value) -> bool:
    return json.dumps(value_json(own)) == json.dumps(value_json(other))


def _tensor(value: Value) -> Tensor | None:
    return tensor_of(value) if isinstance(value, Held | Drawn) else None


def _listed(value: Tensor) -> bool:
    return DTYPES[value.dtype].kind == "int" and len(value.shape) == 1 and value.shape[0] <= _LISTED


def _formed(value: Tensor, dtype: str, shape: tuple[int, ...]) -> Tensor:
    """Return a tensor with the elements of `value` in another type and shape."""
    array = value.array if value.shape == shape else refitted(value.array, shape)
    fitted = Tensor(value.dtype, np.ascontiguousarray(array).reshape(shape))
    return fitted if value.dtype == dtype else converted(fitted, dtype)


def _mixed(own: Value, other: Value, kinds: Collection[DifferenceKind]) -> Value:
    every = set(_kinds(own, other))
    if not every & set(kinds):
        return other
    if every <= set(kinds):
        return own
    first, second = _tensor(own), _tensor(other)
    assert first is not None
    assert second is not None
    elements = first if "elements" in kinds else second
    dtype = first.dtype if "type" in kinds else second.dtype
    shape = first.shape if "shape" in kinds else second.shape
    return Held(_formed(elements, dtype, shape))


def _rebuilt(one: Instance, parent: Instance, values: Mapping[str, Value]) -> Instance:
    """Return an instance with these parameters; trailing positional ones without a value are left out."""
    names = dict.fromkeys((*parent.kwargs, *one.kwargs))
    options = dict.fromkeys((*parent.options, *one.options))
    results = values[RESULTS]
    return replace(
        parent,
        args=_positional(values, [str(place) for place in range(max(len(one.args), len(parent.args)))]),
        kwargs={name: values[name] for name in names if values.get(name) is not None},
        inputs=_positional(values, [f"input {place}" for place in range(max(len(one.inputs), len(parent.inputs)))]),
        options={name: values[f"input {name}"] for name in options if values.get(f"input {name}") is not None},
        results=tuple(bool(item) for item in results) if isinstance(results, tuple) else (),
        operands=next(policy for policy in OPERAND_POLICIES if policy == values[OPERANDS]),
        source=one.source,
        origin=one.origin,
        parent=None,
    )


def _positional(values: Mapping[str, Value], keys: list[str]) -> tuple[Value, ...]:
    found = [values.get(key) for key in keys]
    while found and found[-1] is None:
        found.pop()
    return tuple(found)


def _words(found: ParameterDifference, before: Value, now: Value) -> str:
    """Return a difference in words, with `{}` in the place of the name."""
    if found.key == OPERANDS:
        return _escaped(_policy(now))
    if found.key == RESULTS:
        return _escaped(f"named results {_marks(before)} -> {_marks(now)}")
    if found.kind == "value":
        return f"{{}} {_escaped(_changed(before, now))}"
    first, second = _tensor(before), _tensor(now)
    assert first is not None
    assert second is not None
    if found.kind == "type":
        return f"{{}} {first.dtype} -> {second.dtype}"
    if found.kind == "shape":
        return f"shape of {{}} {list(first.shape)} -> {list(second.shape)}"
    was, is_now = class_of_elements(first), class_of_elements(second)
    return f"elements of {{}} {was} -> {is_now}" if was != is_now else "other elements in {}"


def _changed(before: Value, now: Value) -> str:
    if now is None:
        return "left out"
    return f"given as {_short(now)}" if before is None else f"{_short(before)} -> {_short(now)}"


def _short(value: Value) -> str:
    found = _tensor(value)
    return brief(found.array.tolist()) if found is not None and _listed(found) else brief(value)


def _policy(value: Value) -> str:
    words = {**POLICY_WORDS, "shared": "equal operands are one value"}
    return next((text for policy, text in words.items() if policy == value), "operands fed as usual")


def _marks(value: Value) -> str:
    return "".join("1" if item else "0" for item in value) or "by default" if isinstance(value, tuple) else "by default"


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
