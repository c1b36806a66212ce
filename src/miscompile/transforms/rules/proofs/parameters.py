"""All parameters of an operator on operands of given types, up to a bound, for proofs on small tensors.

The proposals of the certifier are random and reach larger shapes; these are complete up to their bound: axes and
permutations are all there, sizes of parts and cuts of one axis are all there, pads reach from -1 to 2, steps to 2.
Cuts of several axes at once are those that take all, turn, or leave out an element at an end.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import combinations, permutations, product
from typing import Any, TypeAlias

from miscompile.base.dtypes import DTYPES
from miscompile.transforms.rules.expressions import Bindings
from miscompile.transforms.rules.kinds import KNOWN, TermType
from miscompile.transforms.rules.proposals import Given, unpadded

Types: TypeAlias = tuple[TermType, ...]
Options = Callable[[Types, Given, Bindings], Iterator[Given]]

_FILLS = (0, 1, 2, 3, -1, 0.5, 4, 0.25, 7)


def options(op: str, types: Types, given: Mapping[str, Any], environment: Bindings) -> Iterator[Given]:
    """Yield parameters for `op` that agree with `given` by name, each once; they need not be well-formed."""
    seen: set[tuple[Any, ...]] = set()
    known = dict(given)
    for found in _OPTIONS[op](types, known, environment):
        whole = {**found, **known}
        key = tuple(whole.values())
        if key not in seen:
            seen.add(key)
            yield whole


def subsets(values: range | tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield every subset that is not empty, in order."""
    for count in range(1, len(values) + 1):
        yield from combinations(values, count)


def shapes_of_size(size: int, most: int = 3) -> Iterator[tuple[int, ...]]:
    """Yield the shapes of 1 to `most` axes that have `size` elements."""
    sizes = (0, 1, 2) if size == 0 else tuple(n for n in range(1, size + 1) if size % n == 0)
    for rank in range(0 if size == 1 else 1, most + 1):
        yield from (shape for shape in product(sizes, repeat=rank) if math.prod(shape) == size)


def compositions(size: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Yield every way to write `size` as a sum of `parts` numbers, zero included."""
    if parts == 1:
        yield (size,)
        return
    for first in range(size + 1):
        yield from ((first, *rest) for rest in compositions(size - first, parts - 1))


def _transpose(types: Types, given: Given, environment: Bindings) -> Iterator[Given]:
    yield from ({"perm": perm} for perm in permutations(range(len(types[0].shape))))


def _axis(types: Types, given: Given, environment: Bindings) -> Iterator[Given]:
    yield from ({"axis": axis} for axis in range(len(types[0].shape)))


def _split(types: Types, given: Given, environment: Bindings) -> Iterator[Given]:
    shape = types[0].shape
    for axis in (given["axis"],) if "axis" in given else range(len(shape)):
        if 0 <= axis < len(shape):
            for parts in (2, 3):
                yield from ({"axis": axis, "sizes": sizes} for sizes in compositions(shape[axis], parts))


def _reshape(types: Types, given: Given, environment: Bindings) -> Iterator[Given]:
    yield from ({"shape": shape} for shape in shapes_of_size(math.prod(types[0].shape)))


def _flatten(types: Types, given: Given, environment: Bindings) -> Iterator[Given]:
    yield from ({"axis": axis} for axis in range(len(types[0].shape) + 1))


def _squeeze(types: Types, given: Given, environment: Bindings) -> Iterator[Given]:
    ones = tuple(axis for axis, size in enumerate(types[0].shape) if size == 1)
    yield from ({"axes": axes} for axes in subsets(ones))


def _unsqueeze(types: Types, given: Given, environment: Bindings) -> Iterator[Given]:
    for count in (1, 2):
        yield from ({"axes": axes} for axes in combinations(range(len(types[0].shape) + count), count))


def _expand(types: Types, given: Given, environment: Bindings) -> Iterator[Given]:
    for front in ((), (1,), (2,)):
        for wide in product(*[(1, 2, 3) if size == 1 else (size,) for size in types[0].shape]):
            yield {"shape": (*front, *wide)}


def cuts(size: int) -> list[tuple[int, int, int]]:
    """Return every canonical slice of an axis with steps of up to 2, forwards and backwards."""
    found = [(b, e, step) for b in range(size + 1) for e in range(b, size + 1) for step in (1, 2)]
    return [*found, *((b, e, -step) for b in range(size) for e in range(-1, b) for step in (1, 2))]


def _few_cuts(size: int) -> list[tuple[int, int, int]]:
    found = [(0, size, 1), (1, size, 1), (0, size - 1, 1), (1, size - 1, 1), (size - 1, -1, -1)]
    return found if size > 1 else [(0, size, 1)]


def _slice(types: Types, given: Given, environment: Bindings) -> Iterator[Given]:
    shape = types[0].shape
    padded = [v for v in environment.values() if type(v) is tuple and len(v) == 2 * len(shape) and shape]
    yield from (unpadded(shape, pads) for pads in padded[:1])
    for axes in (given["axes"],) if "axes" in given else subsets(range(len(shape))):
        if any(axis >= len(shape) for axis in axes):
            continue
        cut = cuts if len(axes) == 1 else _few_cuts
        for chosen in product(*[cut(shape[axis]) for axis in axes]):
            begins, ends, steps = zip(*chosen, strict=True)
            yield {"axes": axes, "begins": begins, "ends": ends, "steps": steps}


def _pad(types: Types, given: Given, environment: Bindings) -> Iterator[Given]:
    dtype, shape = types[0]
    fill = (dtype, dtype == "bool" or 1)
    modes = (("constant", 0), ("constant", fill)) if dtype == "bool" else (
        ("constant", 0), ("constant", fill), ("edge", 0), ("reflect", 0)
    )  # fmt: skip
    sizes = (-1, 0, 1, 2) if len(shape) < 2 else (0, 1, 2) if len(shape) == 2 else (0, 1)
    for pads in product(sizes, repeat=2 * len(shape)):
        yield from ({"pads": pads, "mode": mode, "value": value} for mode, value in modes)


def _gather(types: Types, given: Given, environment: Bindings) -> Iterator[Given]:
    shape = types[0].shape
    for axis in (given["axis"],) if "axis" in given else range(len(shape)):
        if axis < len(shape):
            places = range(shape[axis])
            yield from ({"axis": axis, "indices": place} for place in places)
            for count in range(1, 4):
                yield from ({"axis": axis, "indices": taken} for taken in product(places, repeat=count))


def _constant(types: Types, given: Given, environment: Bindings) -> Iterator[Given]:
    tensors = [value for value in environment.values() if isinstance(value, TermType)]
    dtype = given.get("dtype", tensors[0].dtype if tensors else "float32")
    floats, unsigned = DTYPES[dtype].kind == "float", DTYPES[dtype].kind in ("uint", "bool")
    values = [v for v in _FILLS if (floats or isinstance(v, int)) and (v >= 0 or not unsigned)]
    near = [shape for t in tensors for shape in (t.shape, tuple(1 for _ in t.shape), (2, *t.shape))]
    for shape in dict.fromkeys([(), *near]):
        yield from ({"dtype": dtype, "shape": shape, "value": value} for value in values)


def _cast(types: Types, given: Given, environment: Bindings) -> Iterator[Given]:
    yield from ({"to": dtype} for dtype in KNOWN)


def _reduce(types: Types, given: Given, environment: Bindings) -> Iterator[Given]:
    for axes in subsets(range(len(types[0].shape))):
        yield from ({"axes": axes, "keepdims": keep} for keep in (0, 1))


def _place(types: Types, given: Given, environment: Bindings) -> Iterator[Given]:
    for axis in range(len(types[0].shape)):
        for keep, last in product((0, 1), repeat=2):
            yield {"axis": axis, "keepdims": keep, "last": last}


def _gemm(types: Types, given: Given, environment: Bindings) -> Iterator[Given]:
    factors = (1.0, 0.5, 2.0) if DTYPES[types[0].dtype].kind == "float" else (1.0, 2.0)
    for alpha, beta, left, right in product(factors, factors, (0, 1), (0, 1)):
        yield {"alpha": alpha, "beta": beta, "transA": left, "transB": right}


def _window(rank: int) -> Iterator[Given]:
    for pads in product((0, 1), repeat=2 * rank):
        for strides, dilations in product(product((1, 2), repeat=rank), repeat=2):
            yield {"pads": pads, "strides": strides, "dilations": dilations}


def _conv(types: Types, given: Given, environment: Bindings) -> Iterator[Given]:
    data, weight = types[0].shape, types[1].shape
    if len(data) == len(weight) and len(data) > 2 and weight[1]:
        group = max(data[1] // weight[1], 1)
        yield from ({"group": group, "kernel": weight[2:], **window} for window in _window(len(data) - 2))


def _pool(types: Types, given: Given, environment: Bindings) -> Iterator[Given]:
    sizes = types[0].shape[2:]
    for kernel in product(*[range(1, min(size, 3) + 1) for size in sizes]):
        for counted in (0, 1):
            yield from ({"kernel": kernel, "counted": counted, **window} for window in _window(len(sizes)))


def _epsilon(types: Types, given: Given, environment: Bindings) -> Iterator[Given]:
    yield from ({"epsilon": value} for value in (2.0**-17, 0.5, 1.0))


_OPTIONS: Mapping[str, Options] = {
    "Transpose": _transpose,
    "Concat": _axis,
    "Softmax": _axis,
    "Split": _split,
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Expand": _expand,
    "Slice": _slice,
    "Pad": _pad,
    "Gather": _gather,
    "Constant": _constant,
    "Cast": _cast,
    **dict.fromkeys(("ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean"), _reduce),
    "ArgMax": _place,
    "ArgMin": _place,
    "Gemm": _gemm,
    "Conv": _conv,
    "MaxPool": _pool,
    "AveragePool": _pool,
    "BatchNormalization": _epsilon,
}
