"""A function of tensors called several times: what `graph.copies` does with a model, for compilers that trace.

Scripts contain these functions, so this module needs the standard library alone. Tensors are those of torch or of JAX.
"""

from collections.abc import Callable, Sequence
from typing import Any

Part = Callable[..., Sequence[Any]]


def repeated_calls(
    part: Part, pattern: str, copies: int, wires: Sequence[int | None], first: int, floats: Sequence[bool]
) -> Part:
    """Return a function that calls `part` as often as the program holds `copies` by a `chain` or a `fan`.

    `wires` has for each input the output that replaces it in the next call, None where it stays; `first` is the place
    of the first input of floating-point numbers, and `floats` tells which outputs are such numbers.
    """

    def chain(*given: Any) -> Sequence[Any]:  # noqa: ANN401 - tensors
        made = part(*given)
        for _ in range(copies - 1):
            made = part(*wired(given, made, wires, first))
        return made

    def fan(*given: Any) -> Sequence[Any]:  # noqa: ANN401 - tensors
        sums: list[Any] = []
        for number in range(copies):
            moved = given[first] + number / 64
            made = part(*given[:first], moved, *given[first + 1 :])
            old = sums or made
            sums = [
                value + before if number and summed else value
                for value, before, summed in zip(made, old, floats, strict=True)
            ]
        return tuple(sums)

    return {"chain": chain, "fan": fan}[pattern]


def wired(given: Sequence[Any], made: Sequence[Any], wires: Sequence[int | None], first: int) -> tuple[Any, ...]:
    """Return the inputs of the next call: outputs where they fit, else the first input plus the largest element."""
    if any(place is not None for place in wires):
        return tuple(value if place is None else made[place] for value, place in zip(given, wires, strict=True))
    value, moved = made[0], given[first]
    number = value.to(moved.dtype) if hasattr(value, "to") else value.astype(moved.dtype)
    return (*given[:first], moved + number.max(), *given[first + 1 :])
