"""Orders by statement coverage, white-box baselines of OPERA (section IV-B), and a test as text for the black-box one.

Total coverage ranks by what a test reaches, additional coverage by what it adds to those before it (G. Rothermel et
al., "Prioritizing Test Cases for Regression Testing", IEEE TSE 27(10), 2001). When no test adds anything any more,
additional coverage starts anew with the tests that are left, as published.
"""

import heapq
from collections.abc import Hashable, Sequence, Set

import numpy as np

from miscompile.instances.instance import Instance
from miscompile.instances.values import Drawn, Held, Made, Name, SliceValue, Slot, Value


def total(covered: Sequence[Set[Hashable]], ties: Sequence[int]) -> list[int]:
    """Return places by falling number of statements; of equal ones, the first in `ties` comes first."""
    return sorted(ties, key=lambda place: -len(covered[place]))


def additional(covered: Sequence[Set[Hashable]], ties: Sequence[int]) -> list[int]:
    """Return places by falling number of statements that are new; of equal ones, the first in `ties` comes first.

    Tests that reach the same statements are one group. A round ends when nothing is new; as long as no group is used
    up, all rounds are alike, so one is found and repeated.
    """
    groups: dict[int, list[int]] = {}
    masks = _masks(covered)
    for place in ties:
        groups.setdefault(masks[place], []).append(place)
    idle = groups.pop(0, [])
    for members in groups.values():
        members.reverse()
    found: list[int] = []
    while groups:
        picked = _round(list(groups))
        for _ in range(min(len(groups[mask]) for mask in picked)):
            found.extend(groups[mask].pop() for mask in picked)
        groups = {mask: members for mask, members in groups.items() if members}
    return [*found, *idle]


def _round(masks: Sequence[int]) -> list[int]:
    """Return masks by what they add, until one adds nothing.

    What a mask adds can only shrink while others are taken; so the entry at the top of the heap is final as soon as it
    has been counted anew and is still at the top.
    """
    heap = [(-mask.bit_count(), number) for number, mask in enumerate(masks)]
    heapq.heapify(heap)
    reached = 0
    picked: list[int] = []
    while heap:
        claimed, number = heap[0]
        gain = (masks[number] & ~reached).bit_count()
        if gain == 0:
            heapq.heappop(heap)
        elif -claimed != gain:
            heapq.heapreplace(heap, (-gain, number))
        else:
            heapq.heappop(heap)
            reached |= masks[number]
            picked.append(masks[number])
    return picked


def _masks(covered: Sequence[Set[Hashable]]) -> list[int]:
    """Return every set as the bits of an integer."""
    numbers: dict[Hashable, int] = {}
    for one in covered:
        for statement in one:
            numbers.setdefault(statement, len(numbers))
    bits = np.zeros(len(numbers), np.uint8)
    masks = []
    for one in covered:
        bits[:] = 0
        bits[[numbers[statement] for statement in one]] = 1
        masks.append(int.from_bytes(np.packbits(bits, bitorder="little").tobytes(), "little"))
    return masks


def text_of(instance: Instance) -> str:
    """Return an instance as the text that similarity is measured on: the call, with tensors as type and shape."""
    given = ", ".join(f"{name}={_text(value)}" for name, value in instance.parameters().items())
    return f"{instance.api}({given})"


def _text(value: Value) -> str:
    match value:
        case Held() | Drawn() | Slot():
            dtype, shape = (
                (value.tensor.dtype, value.tensor.shape) if isinstance(value, Held) else (value.dtype, value.shape)
            )
            return f"{dtype}{list(shape)}"
        case tuple() | list():
            return f"[{', '.join(_text(item) for item in value)}]"
        case dict():
            return f"{{{', '.join(f'{_text(key)}: {_text(item)}' for key, item in value.items())}}}"
        case Name(_, name):
            return name
        case SliceValue(start, stop, step):
            return f"{_text(start)}:{_text(stop)}:{_text(step)}"
        case Made(api, args, kwargs):
            named = [f"{name}={_text(item)}" for name, item in kwargs.items()]
            return f"{api}({', '.join([*map(_text, args), *named])})"
        case _:
            return repr(value)
