"""The changes that lead from a call to its other forms, each in one respect."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from onnx import defs

from miscompile.base.dtypes import DTYPES
from miscompile.base.errors import RejectedDraft
from miscompile.core.tensor import Tensor
from miscompile.graph.axes import behind_new_axis, with_window_axis, without_first_axis, without_window_axis
from miscompile.graph.sizes import retargeted, stretched
from miscompile.ops.registry import schema
from miscompile.transforms.forms.call import CallForm

_MOST_BYTES = 1 << 20
"""Bytes of operands up to which sizes are changed."""

_NUMBERED_TYPES = frozenset({"to", "dtype", "output_dtype", "stash_type", "softmax_precision", "precision"})
"""Integer attributes that are numbers of element types."""


def _operand(call: CallForm, of: str) -> str:
    place = int(of) if of.isdigit() else -1
    if not 0 <= place < len(call.node.inputs) or not call.node.inputs[place]:
        raise RejectedDraft(f"the call has no operand {of}")
    return call.node.inputs[place]


def _constant(call: CallForm, of: str) -> CallForm:
    name = _operand(call, of)
    if name not in call.fed:
        raise RejectedDraft("a constant already")
    return replace(call, fed=call.fed - {name})


def _fed(call: CallForm, of: str) -> CallForm:
    name = _operand(call, of)
    if name in call.fed:
        raise RejectedDraft("an input already")
    return replace(call, fed=call.fed | {name})


def _ones(call: CallForm, of: str) -> CallForm:
    name = _operand(call, of)

    def change(other: str, value: Tensor) -> Tensor:
        if other != name or DTYPES[value.dtype].kind not in ("float", "int", "uint") or value.dtype == "bfloat16":
            return value
        return Tensor(value.dtype, np.ones_like(value.array))

    changed = call.with_values(change)
    if all((one.array == 1).all() for one in call.values[name]):
        raise RejectedDraft("ones already")
    return changed


def _omitted(call: CallForm, of: str) -> CallForm:
    name, place = _operand(call, of), int(of)
    form = schema(call.node.op, call.model.opset)
    formals = form.inputs if form is not None else ()
    if place >= len(formals) or formals[place].option != defs.OpSchema.FormalParameterOption.Optional:
        raise RejectedDraft("the operand is not optional")
    inputs = tuple("" if number == place else one for number, one in enumerate(call.node.inputs))
    while inputs and not inputs[-1]:
        inputs = inputs[:-1]
    values = {key: held for key, held in call.values.items() if key != name or name in inputs}
    return replace(call, node=replace(call.node, inputs=inputs), values=values, fed=call.fed & frozenset(values))


def _default(call: CallForm, of: str) -> CallForm:
    if of not in call.node.attributes:
        raise RejectedDraft(f"the call has no attribute {of}")
    rest = {name: attribute for name, attribute in call.node.attributes.items() if name != of}
    return replace(call, node=replace(call.node, attributes=rest))


def _moved(step: int) -> Callable[[CallForm, str], CallForm]:
    def change(call: CallForm, of: str) -> CallForm:
        attribute = call.node.attributes.get(of)
        if attribute is None or attribute.kind != "int" or of in _NUMBERED_TYPES:
            raise RejectedDraft(f"the call has no integer {of}")
        moved = {**call.node.attributes, of: replace(attribute, value=attribute.value + step)}
        return replace(call, node=replace(call.node, attributes=moved))

    return change


def _deeper(call: CallForm, of: str) -> CallForm:
    del of
    names = _deepest(call)
    stacked = call.with_values(
        lambda name, value: Tensor(value.dtype, np.stack([value.array] * 2)) if name in names else value
    )
    return replace(stacked, node=behind_new_axis(call.node))


def _flatter(call: CallForm, of: str) -> CallForm:
    del of
    names = _deepest(call)
    if any(not held[0].shape or not held[0].shape[0] for name, held in call.values.items() if name in names):
        raise RejectedDraft("no first axis")
    flat = call.with_values(
        lambda name, value: Tensor(value.dtype, np.array(value.array[0])) if name in names else value
    )
    return replace(flat, node=without_first_axis(call.node))


def _wider(call: CallForm, of: str) -> CallForm:
    del of
    names = _windowed(call, 3)
    more = call.with_values(
        lambda name, value: Tensor(value.dtype, value.array[..., np.newaxis]) if name in names else value
    )
    return replace(more, node=with_window_axis(call.node))


def _narrower(call: CallForm, of: str) -> CallForm:
    del of
    names = _windowed(call, 4)
    if any(not held[0].shape[-1] for name, held in call.values.items() if name in names):
        raise RejectedDraft("an empty last axis")
    less = call.with_values(
        lambda name, value: Tensor(value.dtype, np.ascontiguousarray(value.array[..., 0])) if name in names else value
    )
    return replace(less, node=without_window_axis(call.node, last=True))


def _windowed(call: CallForm, least: int) -> frozenset[str]:
    """Return the operands with the axes of a window: those of the highest rank, which is at least `least`."""
    names = _deepest(call)
    if any(len(call.values[name][0].shape) < least for name in names):
        raise RejectedDraft("no window, or none of so many axes")
    return names


def _deepest(call: CallForm) -> frozenset[str]:
    """Return the operands of the highest rank."""
    ranks = {name: len(call.values[name][0].shape) for name in call.data}
    if not ranks:
        raise RejectedDraft("no operand with axes")
    return frozenset(name for name, rank in ranks.items() if rank == max(ranks.values()))


def _resized(call: CallForm, of: str) -> CallForm:
    old, _, new = of.partition("to")
    if not (old.isdigit() and new.isdigit()):
        raise RejectedDraft(f"no sizes: {of}")
    size, goal, structural = int(old), int(new), call.structural
    if not any(size in call.values[name][0].shape for name in call.data):
        raise RejectedDraft(f"no operand has the size {size}")
    if sum(one.array.nbytes for held in call.values.values() for one in held) > _MOST_BYTES:
        raise RejectedDraft("large operands")
    return call.with_values(
        lambda name, value: (
            retargeted(value, size, goal, scale=False)
            if name in structural
            else stretched(value, size, goal)
            if size in value.shape
            else value
        )
    )


CHANGES: Mapping[str, Callable[[CallForm, str], CallForm]] = {
    "constant": _constant, "fed": _fed, "ones": _ones, "omitted": _omitted, "default": _default, "more": _moved(1),
    "less": _moved(-1), "deeper": _deeper, "flatter": _flatter, "wider": _wider, "narrower": _narrower,
    "resized": _resized,
}  # fmt: skip
"""By name; each takes the call and what it is a change of, and raises RejectedDraft where it does not apply."""
