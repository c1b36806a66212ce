"""Steps on ranks and sizes: scalars, batches, empty dimensions, dimensions of one, and sizes around vector widths."""

from collections.abc import Callable, Iterator

import numpy as np

from miscompile.core.tensor import Array, Tensor
from miscompile.harvest.neighbours.call import StepView, Variation
from miscompile.instances.conversion import refitted
from miscompile.instances.values import Held

_SIZES = (0, 1, 3, 7, 8, 17, 33)
_LARGEST = 1 << 13
"""Greatest number of elements of a tensor that a step makes."""

_DEEPEST = 8
"""Greatest rank that a step makes."""

_RANKS: tuple[tuple[str, Callable[[Array], Array | None]], ...] = (
    ("with a leading dimension of 1", lambda array: array[np.newaxis]),
    ("with a trailing dimension of 1", lambda array: array[..., np.newaxis]),
    ("as a batch of 2", lambda array: np.stack([array, np.flip(array)]) if array.ndim else None),
    ("without its first dimension", lambda array: array[0] if array.ndim and len(array) else None),
    ("as a scalar", lambda array: array.reshape(()) if array.ndim and array.size == 1 else None),
    ("as a vector", lambda array: array.reshape(-1) if array.ndim != 1 else None),
)


def ranks(scene: StepView) -> Iterator[Variation]:
    """Yield the instance with each tensor, and with all of the same rank, in another rank."""
    found = scene.data()
    groups: set[tuple[str, ...]] = {(name,) for name in found}
    for rank in {len(value.shape) for value in found.values()}:
        groups.add(tuple(name for name, value in found.items() if len(value.shape) == rank))
    for names in sorted(groups):
        for words, change in _RANKS:
            made = {name: change(found[name].array) for name in names}
            if all(array is not None and array.ndim <= _DEEPEST and array.size <= _LARGEST for array in made.values()):
                values = {name: _held(found[name], array) for name, array in made.items() if array is not None}
                yield Variation(values, f"{', '.join(names)} {words}")


def sizes(scene: StepView) -> Iterator[Variation]:
    """Yield the instance with a size changed in all tensors that have it, and with single dimensions of 0 and 1."""
    found = scene.data()
    for size in sorted({size for value in found.values() for size in value.shape}):
        for other in dict.fromkeys((*_SIZES, size + 1)):
            if other == size:
                continue
            values = {
                name: _held(value, refitted(value.array, tuple(other if one == size else one for one in value.shape)))
                for name, value in found.items()
                if size in value.shape
            }
            if all(one.tensor.array.size <= _LARGEST for one in values.values()):
                yield Variation(values, f"every size {size} -> {other}")
    for name, value in found.items():
        for place, size in enumerate(value.shape):
            for other in (0, 1, size + 1):
                shape = (*value.shape[:place], other, *value.shape[place + 1 :])
                if other != size and np.prod(shape) <= _LARGEST:
                    yield Variation(
                        {name: _held(value, refitted(value.array, shape))}, f"size {place} of {name} {size} -> {other}"
                    )


def _held(value: Tensor, array: Array) -> Held:
    return Held(Tensor(value.dtype, np.ascontiguousarray(array).reshape(array.shape)))
