"""Operator instances as drafts for reduction: parameters, shapes, element types and values get simpler.

The library oracle computes the right results of each candidate anew, and decides whether they can be compared. So a
reduction need not know any operator: a call that the library refuses shows no violation.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from miscompile.base.dtypes import DTYPES, SMALL
from miscompile.base.errors import ModelError
from miscompile.core.case import Case
from miscompile.core.tensor import Tensor, tensor
from miscompile.core.verdict import Evidence
from miscompile.instances.code import digest_of
from miscompile.instances.instance import Instance
from miscompile.instances.values import Drawn, Held, Name, Value, leaves, mapped, tensor_of
from miscompile.oracles.library import instance_of
from miscompile.producers.instances.migrated import migrate
from miscompile.triage.reduce.cost import oddity
from miscompile.triage.reduce.reduction import Cost, Reduction

_PLAIN = {"float32": 0, "int64": 1, "int32": 2, "bool": 2, "float64": 3, "float16": 4, "uint8": 5, "int8": 5}
_UNUSUAL = 6
_LARGE = 1 << 16


@dataclass(frozen=True, slots=True)
class InstanceDrafts:
    """The draft kind of operator instances; with `constants`, all tensors but the first are part of the program."""

    constants: bool = False

    def take_apart(self, case: Case, evidence: Evidence) -> Instance:
        """Return the instance that the case was made of."""
        del evidence
        return instance_of(case)

    def tidy(self, draft: Instance) -> Instance:
        """Return the instance without the trailing optional inputs that have no value."""
        inputs = draft.inputs
        while inputs and inputs[-1] is None and draft.form == "node":
            inputs = inputs[:-1]
        return replace(draft, inputs=inputs)

    def cost(self, draft: Instance) -> Cost:
        """Return the cost: parameters, elements, ranks, unusual element types, unusual values, bytes, in this order."""
        values = [leaf for one in draft.parameters().values() for leaf in leaves(one)]
        tensors = [one for one in values if isinstance(one, Held | Drawn)]
        shapes = [one.tensor.shape if isinstance(one, Held) else one.shape for one in tensors]
        dtypes = [one.tensor.dtype if isinstance(one, Held) else one.dtype for one in tensors]
        return (
            sum(one is not None for one in values),
            sum(map(math.prod, shapes)),
            sum(map(len, shapes)),
            sum(_PLAIN.get(dtype, _UNUSUAL) for dtype in dtypes),
            sum(map(_tensor_oddity, tensors)) + sum(map(_scalar_oddity, values)),
            sum(len(str(one)) for one in values if isinstance(one, bool | int | float | str)),
        )

    def digest(self, draft: Instance) -> str:
        """Return the digest of everything but the instance's origin."""
        return digest_of(draft)

    def put_together(self, draft: Instance, recipe: Mapping[str, Any]) -> Case:
        """Return the case of an instance. Raises ModelError when it makes no program."""
        test = migrate(draft, constants=self.constants)
        if test is None:
            raise ModelError("the instance makes no program")
        return replace(test.case, recipe={**recipe, **test.case.recipe})

    def defined(self, draft: Instance) -> bool:
        """Return True, because the oracle itself ignores results that the library leaves undefined."""
        del draft
        return True

    def reductions(self) -> Sequence[Reduction[Instance]]:
        """Return the standard reductions of instances."""
        return (
            FewerParameters(),
            SmallerTensors(),
            LowerTensorRanks(),
            PlainerElementTypes(),
            PlainerElements(),
            PlainerParameters(),
        )


@dataclass(frozen=True, slots=True)
class FewerParameters:
    """Removes optional parameters: those given by name, the last positional ones, and inputs of a node."""

    def edits(self, draft: Instance) -> Iterator[Instance]:
        """Yield instances with fewer parameters, all named ones at once first."""
        if len(draft.kwargs) > 1:
            yield replace(draft, kwargs={})
        for name in draft.kwargs:
            yield replace(draft, kwargs={key: value for key, value in draft.kwargs.items() if key != name})
        for name in draft.options:
            yield replace(draft, options={key: value for key, value in draft.options.items() if key != name})
        if draft.args:
            yield replace(draft, args=draft.args[:-1])
        if draft.inputs:
            yield replace(draft, inputs=draft.inputs[:-1])
        if draft.form == "node":
            for place, value in enumerate(draft.inputs):
                if value is not None:
                    yield replace(draft, inputs=(*draft.inputs[:place], None, *draft.inputs[place + 1 :]))


@dataclass(frozen=True, slots=True)
class SmallerTensors:
    """Shrinks sizes: one size wherever it occurs in tensors and numbers, then single dimensions of single tensors."""

    def edits(self, draft: Instance) -> Iterator[Instance]:
        """Yield instances with smaller tensors."""
        for size in sorted({size for one in _tensors(draft) for size in one.shape if size > 1}, reverse=True):
            for smaller in dict.fromkeys((1, 2, size // 2, size - 1)):
                if 0 < smaller < size:
                    yield _changed(draft, partial(_resized, size=size, smaller=smaller, numbers=True))
                    yield _changed(draft, partial(_resized, size=size, smaller=smaller, numbers=False))
        for place, one in enumerate(_tensors(draft)):
            for axis, size in enumerate(one.shape):
                for smaller in dict.fromkeys((1, size // 2, size - 1)):
                    if 0 < smaller < size:
                        yield _with_tensor(draft, place, _cut(one, axis, smaller))


@dataclass(frozen=True, slots=True)
class LowerTensorRanks:
    """Drops dimensions of size 1, from all tensors together and from single ones."""

    def edits(self, draft: Instance) -> Iterator[Instance]:
        """Yield instances with tensors of lower rank."""
        found = _tensors(draft)
        if len(found) > 1 and all(one.shape[:1] == (1,) for one in found):
            yield _changed(draft, lambda value: _squeezed(value, 0))
        for place, one in enumerate(found):
            for axis, size in enumerate(one.shape):
                if size == 1:
                    yield _with_tensor(draft, place, Tensor(one.dtype, one.array.squeeze(axis)))


@dataclass(frozen=True, slots=True)
class PlainerElementTypes:
    """Replaces element types by plainer ones, in all tensors and names of types together, then in single tensors."""

    def edits(self, draft: Instance) -> Iterator[Instance]:
        """Yield instances with plainer element types."""
        for dtype in sorted({one.dtype for one in _tensors(draft)}):
            for plainer in _plainer_types(dtype):
                yield _changed(draft, partial(_retyped, dtype=dtype, plainer=plainer))
        for place, one in enumerate(_tensors(draft)):
            for plainer in _plainer_types(one.dtype):
                yield _with_tensor(draft, place, _cast(one, plainer))


@dataclass(frozen=True, slots=True)
class PlainerElements:
    """Replaces elements by zeros, ones, counting numbers, rounded ones, and single elements by zero."""

    def edits(self, draft: Instance) -> Iterator[Instance]:
        """Yield instances with plainer elements: all tensors at once first."""
        for make in _FILLS:
            yield _changed(draft, partial(_refilled, make=make))
        for place, one in enumerate(_tensors(draft)):
            for make in _FILLS:
                made = make(one)
                if made is not None:
                    yield _with_tensor(draft, place, made)
            yield from (_with_tensor(draft, place, zeroed) for zeroed in _zeroed(one))


@dataclass(frozen=True, slots=True)
class PlainerParameters:
    """Replaces numbers among the parameters by plainer ones, and shortens lists."""

    def edits(self, draft: Instance) -> Iterator[Instance]:
        """Yield instances in which one number or list is plainer."""
        count = sum(1 for value in _fields(draft) for _ in leaves(value))
        for place in range(count):
            for choice in range(_MOST_CHOICES):
                yield _with_leaf(draft, place, choice)


_MOST_CHOICES = 4


def _plainer_numbers(value: Value) -> list[Value]:
    """Return plainer values for a number; none for anything else."""
    if isinstance(value, bool):
        return [False] if value else []
    if isinstance(value, int):
        found: list[Value] = [one for one in (0, 1, 2, value // 2) if abs(one) < abs(value) or one == 0 < abs(value)]
        return list(dict.fromkeys(found)) if value not in (0, 1) else ([0] if value == 1 else [])
    if isinstance(value, float):
        rounded = [0.0, 1.0, float(round(value)), round(value, 1)] if math.isfinite(value) else [0.0, 1.0]
        return [one for one in dict.fromkeys(rounded) if one != value]
    return []


def _with_leaf(draft: Instance, place: int, choice: int) -> Instance:
    """Return the draft with the leaf number `place` replaced by its plainer value number `choice`, if there is one."""
    seen = -1

    def change(value: Value) -> Value:
        nonlocal seen
        seen += 1
        plainer = _plainer_numbers(value) if seen == place else []
        return plainer[choice] if choice < len(plainer) else value

    return _changed(draft, change)


_Fill = Callable[[Tensor], Tensor | None]


def _filled(dtype: str, array: "np.ndarray[Any, Any]") -> Tensor | None:
    if dtype == "string" or DTYPES[dtype].kind == "complex":
        return None
    if DTYPES[dtype].kind == "bool":
        return Tensor(dtype, array.astype(bool))
    return tensor(array.astype(np.float32) if DTYPES[dtype].kind == "float" else array.astype(np.int64), dtype)


def _zeros(one: Tensor) -> Tensor | None:
    return _filled(one.dtype, np.zeros(one.shape))


def _ones(one: Tensor) -> Tensor | None:
    return _filled(one.dtype, np.ones(one.shape))


def _counting(one: Tensor) -> Tensor | None:
    return _filled(one.dtype, np.arange(one.array.size).reshape(one.shape) % 8)


def _rounded(one: Tensor) -> Tensor | None:
    if DTYPES[one.dtype].kind != "float" or not np.isfinite(one.numbers()).all():
        return None
    return tensor(np.asarray(np.round(one.numbers().astype(np.float64))), one.dtype)


def _quarters(one: Tensor) -> Tensor | None:
    if DTYPES[one.dtype].kind != "float" or not np.isfinite(one.numbers()).all():
        return None
    return tensor(np.asarray(np.round(one.numbers().astype(np.float64) * 4) / 4), one.dtype)


_FILLS: tuple[_Fill, ...] = (_zeros, _ones, _counting, _rounded, _quarters)


def _zeroed(one: Tensor) -> Iterator[Tensor]:
    """Yield the tensor with half of its elements zero, then a quarter, and so on, down to single elements."""
    size = one.array.size
    if one.dtype == "string" or not 1 < size <= _LARGE:
        return
    step = size // 2
    while step:
        for start in range(0, size, step):
            flat = one.array.copy().reshape(-1)
            if step <= size // 32 and step > 1:
                break
            if np.any(flat[start : start + step] != 0):
                flat[start : start + step] = 0
                yield Tensor(one.dtype, flat.reshape(one.shape))
        if size > 32 and step <= size // 16:
            return
        step //= 2


def _fields(draft: Instance) -> list[Value]:
    return [*draft.args, *draft.kwargs.values(), *draft.inputs, *draft.options.values()]


def _changed(draft: Instance, change: Callable[[Value], Value]) -> Instance:
    """Return the instance with `change` applied to every leaf of its parameters, in order."""
    return replace(
        draft,
        args=tuple(mapped(value, change) for value in draft.args),
        kwargs={name: mapped(value, change) for name, value in draft.kwargs.items()},
        inputs=tuple(mapped(value, change) for value in draft.inputs),
        options={name: mapped(value, change) for name, value in draft.options.items()},
    )


def _tensors(draft: Instance) -> list[Tensor]:
    """Return the tensors among the parameters, in order, without those that are too large to examine."""
    return [tensor_of(one) for value in _fields(draft) for one in leaves(value) if isinstance(one, Held | Drawn)]


def _with_tensor(draft: Instance, place: int, new: Tensor) -> Instance:
    seen = -1

    def change(value: Value) -> Value:
        nonlocal seen
        if not isinstance(value, Held | Drawn):
            return value
        seen += 1
        return Held(new) if seen == place else value

    return _changed(draft, change)


def _cut(one: Tensor, axis: int, size: int) -> Tensor:
    places = (slice(None),) * axis + (slice(0, size),)
    return Tensor(one.dtype, one.array[places].copy())


def _resized(value: Value, size: int, smaller: int, *, numbers: bool) -> Value:
    """Return the value with every dimension of `size` cut to `smaller`; with `numbers`, integers that equal it too."""
    if isinstance(value, Held | Drawn):
        found = tensor_of(value)
        for axis, have in enumerate(found.shape):
            found = _cut(found, axis, smaller) if have == size else found
        return Held(found)
    if numbers and isinstance(value, int) and not isinstance(value, bool) and value == size:
        return smaller
    return value


def _squeezed(value: Value, axis: int) -> Value:
    if not isinstance(value, Held | Drawn):
        return value
    found = tensor_of(value)
    return Held(Tensor(found.dtype, found.array.squeeze(axis)))


def _plainer_types(dtype: str) -> list[str]:
    kinds = {"float": ("float32",), "int": ("int64", "int32"), "uint": ("int64", "uint8"), "bool": ()}
    found = kinds.get(DTYPES[dtype].kind, ("float32",) if DTYPES[dtype].kind == "complex" else ())
    own = _PLAIN.get(dtype, _UNUSUAL)
    return [one for one in found if _PLAIN[one] < own]


def _retyped(value: Value, dtype: str, plainer: str) -> Value:
    if isinstance(value, Name) and value.kind == "dtype" and value.name == dtype:
        return replace(value, name=plainer)
    if isinstance(value, Held | Drawn) and tensor_of(value).dtype == dtype:
        return Held(_cast(tensor_of(value), plainer))
    return value


def _cast(one: Tensor, dtype: str) -> Tensor:
    numbers = np.real(one.numbers())
    if DTYPES[dtype].kind == "float" and dtype not in SMALL:
        return tensor(np.asarray(numbers, np.float64), dtype)
    with np.errstate(invalid="ignore"):
        return tensor(np.asarray(numbers).astype(np.int64), dtype)


def _refilled(value: Value, make: _Fill) -> Value:
    if not isinstance(value, Held | Drawn):
        return value
    made = make(tensor_of(value))
    return value if made is None else Held(made)


def _tensor_oddity(value: Held | Drawn) -> int:
    return oddity(tensor_of(value)) + (0 if isinstance(value, Held) else 1)


def _scalar_oddity(value: Value) -> int:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        return 0 if value == 0 else 1 if value == 1 else 2 if 0 < value <= 16 else 3
    if isinstance(value, float):
        if value in (0.0, 1.0):
            return int(value)
        return 2 if math.isfinite(value) and value == round(value) else 3 if round(value, 1) == value else 4
    return 0
