"""Generalisation of ranks: the holes of a fragment that can have more or fewer leading dimensions, found by trial.

Additional leading dimensions are accepted when they appear as leading dimensions of the results. An operator that
counts axes from the front would use another axis then, so it rejects them.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from miscompile.graph.model import Node, TensorType
from miscompile.ops.registry import schema
from miscompile.patterns.fragment import Fragment, FragmentSetting, KnownValue
from miscompile.patterns.sizes import SizePlace

_LEADS = (149, 151, 157, 163, 167, 173, 179, 181, 191, 193)
_COUNTING = ("axis", "axes")


class Rank(NamedTuple):
    """The ranks that a hole allows: any leading dimensions, or none; and how many of its own it can lack."""

    leading: bool
    dropped: int


def ranks(
    fragment: Fragment,
    setting: FragmentSetting,
    base: Mapping[str, KnownValue],
    holes: Iterable[str],
    alone: Collection[SizePlace],
) -> dict[str, Rank]:
    """Return the allowed ranks of each of `holes`; `alone` are the sizes that can change without any other."""
    found: dict[str, Rank] = {}
    for name, lead in zip(holes, _LEADS, strict=False):
        shape = setting.given[name].shape
        wider = [_tried(fragment, setting, base, name, (*front, *shape), front) for front in ((lead, lead), (lead,))]
        if any(one is None for one in wider):
            found[name] = Rank(leading=False, dropped=0)
            continue
        dropped, whole = 0, (setting, base)
        while dropped < len(shape) - 1 and (shape[dropped] == 1 or SizePlace(name, dropped) in alone):
            narrower = _tried(fragment, setting, base, name, shape[dropped + 1 :], shape[dropped : dropped + 1])
            if narrower is None:
                break
            setting, base = narrower
            dropped += 1
        again = _tried(fragment, setting, base, name, (lead, *shape[dropped:]), (lead,))
        if again is None and dropped:  # without its own dimensions it would not match the original fragment
            dropped, (setting, base) = 0, whole
            again = _tried(fragment, setting, base, name, (lead, *shape), (lead,))
        if again is not None:  # later holes are tried together with this one's new rank
            setting, base = again
        found[name] = Rank(again is not None, dropped)
    return found


def _tried(
    fragment: Fragment,
    setting: FragmentSetting,
    base: Mapping[str, KnownValue],
    hole: str,
    shape: tuple[int, ...],
    front: tuple[int, ...],
) -> tuple[FragmentSetting, Mapping[str, KnownValue]] | None:
    """Return the setting in which a hole has another shape, and its evaluation; None where an operator rejects it.

    `front` are the leading dimensions to add, or to remove.
    """
    kind = TensorType(setting.given[hole].type.dtype, shape)
    changed = replace(setting, given={**setting.given, hole: replace(setting.given[hole], type=kind)})
    known = fragment.run(changed, base)
    if known is None:
        return None
    moved = {name for name, one in known.items() if one.shape != base[name].shape}
    if moved == {hole}:
        return None  # no operator depends on the rank of this operand, so the trial proves nothing
    for name in moved:
        short, long = sorted((known[name].shape, base[name].shape), key=len)
        if long != (*front, *short) or known[name].type.dtype != base[name].type.dtype:
            return None
    if any(
        node.inputs[0] in moved and _counts(fragment, setting, place, node)
        for place, node in enumerate(fragment.nodes)
        if node.inputs
    ):
        return None
    return changed, known


def _counts(fragment: Fragment, setting: FragmentSetting, place: int, node: Node) -> bool:
    """Tell whether an operator counts axes from the front, by an attribute, its default, or a constant."""
    known = schema(node.op, fragment.opset)
    assert known is not None, "a fragment has known operators only"
    for name in _COUNTING:
        given = setting.attributes[place].get(name)
        if given is not None and _from_front(given.value):
            return True
        said = known.attributes.get(name)
        if given is None and said is not None and said.default_value is not None and not said.required:
            default = said.default_value
            if _from_front(list(default.ints) if name == "axes" else default.i):
                return True
    for formal, name in zip(known.inputs, node.inputs, strict=False):
        value = setting.given[name].value if name in setting.given else None
        if formal.name in _COUNTING and value is not None and _from_front(value.array.ravel().tolist()):
            return True
    return False


def _from_front(axes: object) -> bool:
    return any(axis >= 0 for axis in axes) if isinstance(axes, list | tuple) else isinstance(axes, int) and axes >= 0
