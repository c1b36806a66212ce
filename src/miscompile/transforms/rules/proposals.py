"""Proposed parameters of operators on operands of given types, for examples of patterns, special cases first."""

import math
import random
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, TypeAlias

from miscompile.transforms.rules.draws import DRAWS
from miscompile.transforms.rules.expressions import Bindings, inverse, swap
from miscompile.transforms.rules.kinds import KNOWN, TermType

Given: TypeAlias = dict[str, Any]
"""Parameters by name."""

Propose = Callable[[tuple[TermType, ...], Given, Bindings, random.Random], Given | None]

_FILLS = (0, 1, 2, 3, -1, 0.5, 4, 0.25, 7)


def propose(
    op: str, types: tuple[TermType, ...], given: Mapping[str, Any], environment: Bindings, rng: random.Random
) -> Given | None:
    """Return parameters for `op` that agree with `given` by name; None without a proposal.

    They need not be well-formed: the caller infers the type.
    """
    known = dict(given)
    found = _PROPOSALS[op](types, known, environment, rng)
    return None if found is None else {**found, **known}


def _some_axis(rng: random.Random, rank: int) -> int | None:
    return rng.randrange(rank) if rank else None


def _transpose(types: tuple[TermType, ...], given: Given, environment: Bindings, rng: random.Random) -> Given | None:
    rank = len(types[0].shape)
    what = rng.random()
    if what < 0.1 or rank < 2:
        return {"perm": tuple(range(rank))}
    if what < 0.35:
        return {"perm": swap(rank, rank - 1, rank - 2)}
    bound = [value for value in environment.values() if isinstance(value, tuple) and sorted_axes(value) == rank]
    if what < 0.5 and bound:
        return {"perm": inverse(rng.choice(bound))}
    return {"perm": DRAWS["permutation"](rng, rank)}


def sorted_axes(value: tuple[Any, ...]) -> int:
    """Return how many axes `value` permutes; -1 when it is no permutation (a Type is a tuple as well)."""
    return len(value) if not isinstance(value, TermType) and set(value) == set(range(len(value))) else -1


def _axis(types: tuple[TermType, ...], given: Given, environment: Bindings, rng: random.Random) -> Given | None:
    axis = _some_axis(rng, len(types[0].shape))
    if axis is None:
        return None
    joined = [place for place in range(len(types[0].shape)) if len({t.shape[place : place + 1] for t in types}) > 1]
    return {"axis": joined[0] if joined and rng.random() < 0.8 else axis}


def _split(types: tuple[TermType, ...], given: Given, environment: Bindings, rng: random.Random) -> Given | None:
    shape = types[0].shape
    axis = given.get("axis", _some_axis(rng, len(shape)))
    if axis is None or not 0 <= axis < len(shape):
        return None
    bounds = [
        value.shape[axis] for value in environment.values() if isinstance(value, TermType) and axis < len(value.shape)
    ]
    cuts = sorted(rng.randint(0, shape[axis]) for _ in range(rng.choice((1, 1, 1, 2))))
    if rng.random() < 0.5 and bounds:
        cuts = [min(rng.choice(bounds), shape[axis])]
    ends = [0, *cuts, shape[axis]]
    return {"axis": axis, "sizes": tuple(b - a for a, b in pairwise(ends))}


def _reshape(types: tuple[TermType, ...], given: Given, environment: Bindings, rng: random.Random) -> Given | None:
    shape = types[0].shape
    size = math.prod(shape)
    same = [v.shape for v in environment.values() if isinstance(v, TermType) and math.prod(v.shape) == size]
    if same and rng.random() < 0.3:
        return {"shape": rng.choice(same)}
    if rng.random() < 0.25 and shape:
        axis = rng.randint(0, len(shape))
        return {"shape": (math.prod(shape[:axis]), math.prod(shape[axis:]))}
    return {"shape": DRAWS["factorisation"](rng, size) or (0, rng.randint(0, 2))}


def _flatten(types: tuple[TermType, ...], given: Given, environment: Bindings, rng: random.Random) -> Given | None:
    return {"axis": rng.randint(0, len(types[0].shape))}


def _squeeze(types: tuple[TermType, ...], given: Given, environment: Bindings, rng: random.Random) -> Given | None:
    ones = [axis for axis, size in enumerate(types[0].shape) if size == 1]
    return {"axes": tuple(axis for axis in ones if rng.random() < 0.8)}


def _unsqueeze(types: tuple[TermType, ...], given: Given, environment: Bindings, rng: random.Random) -> Given | None:
    count = rng.choice((1, 1, 2))
    return {"axes": tuple(sorted(rng.sample(range(len(types[0].shape) + count), count)))}


def _expand(types: tuple[TermType, ...], given: Given, environment: Bindings, rng: random.Random) -> Given | None:
    shape = types[0].shape
    ones = [axis for axis, size in enumerate(shape) if size == 1]
    if ones and rng.random() < 0.3:
        axis = rng.choice(ones)
        return {"shape": (*shape[:axis], 2, *shape[axis + 1 :])}
    wide = tuple(rng.choice((1, 2, 3)) if size == 1 else size for size in shape)
    return {"shape": (*[rng.choice((1, 2)) for _ in range(rng.choice((0, 0, 1)))], *wide)}


def _slice(types: tuple[TermType, ...], given: Given, environment: Bindings, rng: random.Random) -> Given | None:
    shape = types[0].shape
    if not shape:
        return None
    count = rng.choice((1, 1, 1, len(shape)))
    axes = given.get("axes", tuple(sorted(rng.sample(range(len(shape)), min(count, len(shape))))))
    if any(axis >= len(shape) for axis in axes):
        return None
    style = rng.random()
    padded = [value for value in environment.values() if isinstance(value, tuple) and len(value) == 2 * len(shape)]
    if padded and not isinstance(padded[0], TermType) and rng.random() < 0.5:
        return unpadded(shape, padded[0])
    cuts = [_cut(rng, shape[axis], style) for axis in axes]
    found = {"axes": axes}
    for place, name in enumerate(("begins", "ends", "steps")):
        found[name] = tuple(cut[place] for cut in cuts)
    return found


def unpadded(shape: tuple[int, ...], pads: tuple[int, ...]) -> Given:
    """Return the parameters of the Slice that removes the padding of a Pad."""
    rank = len(shape)
    ends = tuple(size - high for size, high in zip(shape, pads[rank:], strict=True))
    return {"axes": tuple(range(rank)), "begins": pads[:rank], "ends": ends, "steps": (1,) * rank}


def _cut(rng: random.Random, size: int, style: float) -> tuple[int, int, int]:
    if style < 0.1:
        return 0, size, 1
    if style < 0.25 and size:
        return size - 1, -1, -1
    if style < 0.4 and size:
        begin = rng.randrange(size)
        return begin, rng.randint(-1, begin - 1), -rng.choice((1, 2))
    begin, end = sorted((rng.randint(0, size), rng.randint(0, size)))
    return (begin, end, 1 if style < 0.85 else 2) if begin < end else (0, 0, 1)


def _pad(types: tuple[TermType, ...], given: Given, environment: Bindings, rng: random.Random) -> Given | None:
    dtype, shape = types[0]
    rank = len(shape)
    if not rank:
        return None
    style, pads = rng.random(), [rng.randint(0, 2) for _ in range(2 * rank)]
    if style < 0.25:
        keep = rng.randrange(2 * rank)
        pads = [rng.randint(1, 2) if place == keep else 0 for place in range(2 * rank)]
    elif style < 0.55 and rank > 2:
        pads = [0 if place % rank < 2 else pad for place, pad in enumerate(pads)]
    elif style < 0.6:
        pads = [0] * (2 * rank)
    elif style < 0.7:
        pads = [rng.randint(-1, 2) for _ in range(2 * rank)]
    mode = rng.choice(("constant", "constant", "edge", "reflect")) if dtype != "bool" else "constant"
    fills = (True,) if dtype == "bool" else (1, 2) if dtype.startswith("uint") else (1, 2, -1)
    value = (dtype, rng.choice(fills)) if rng.random() < 0.4 else 0
    return {"pads": tuple(pads), "mode": mode, "value": value if given.get("mode", mode) == "constant" else 0}


def _gather(types: tuple[TermType, ...], given: Given, environment: Bindings, rng: random.Random) -> Given | None:
    shape = types[0].shape
    axis = given.get("axis", _some_axis(rng, len(shape)))
    if axis is None or axis >= len(shape) or not shape[axis]:
        return None
    size, style = shape[axis], rng.random()
    if style < 0.2:
        return {"axis": axis, "indices": tuple(range(size))}
    if style < 0.3:
        return {"axis": axis, "indices": tuple(reversed(range(size)))}
    if style < 0.5:
        return {"axis": axis, "indices": rng.randrange(size)}
    if style < 0.65:
        begin = rng.randrange(size)
        return {"axis": axis, "indices": tuple(range(begin, rng.randint(begin + 1, size)))}
    return {"axis": axis, "indices": tuple(rng.randrange(size) for _ in range(rng.randint(1, 4)))}


def _constant(types: tuple[TermType, ...], given: Given, environment: Bindings, rng: random.Random) -> Given | None:
    tensors = [value for value in environment.values() if isinstance(value, TermType)]
    near = rng.choice(tensors) if tensors else TermType("float32", ())
    style = rng.random()
    shape = near.shape if style > 0.6 else tuple(1 for _ in near.shape) if style > 0.4 else ()
    if style > 0.85:
        shape = (*[2] * rng.randint(0, 1), *[rng.randint(1, 2) if size == 1 else size for size in shape])
    dtype = given.get("dtype", near.dtype)
    floats = dtype.startswith(("float", "bfloat"))
    value = rng.choice([fill for fill in _FILLS if floats or (isinstance(fill, int) and fill >= 0)])
    return {"dtype": dtype, "shape": shape, "value": value}


def _cast(types: tuple[TermType, ...], given: Given, environment: Bindings, rng: random.Random) -> Given | None:
    tensors = [value.dtype for value in environment.values() if isinstance(value, TermType)]
    return {"to": rng.choice(tensors) if tensors and rng.random() < 0.4 else rng.choice(KNOWN)}


def _reduce(types: tuple[TermType, ...], given: Given, environment: Bindings, rng: random.Random) -> Given | None:
    rank = len(types[0].shape)
    style = rng.random()
    if style < 0.15:
        axes: tuple[int, ...] | None = (rank - 1,) if rank else None
    elif style < 0.3 and rank > 2:
        axes = tuple(range(2, rank))
    elif style < 0.45:
        axes = tuple(axis for axis, size in enumerate(types[0].shape) if size == 1)
    else:
        axes = DRAWS["subset"](rng, range(rank))
    return {"axes": axes, "keepdims": rng.randint(0, 1)} if axes else None


def _place(types: tuple[TermType, ...], given: Given, environment: Bindings, rng: random.Random) -> Given | None:
    axis = _some_axis(rng, len(types[0].shape))
    return None if axis is None else {"axis": axis, "keepdims": rng.randint(0, 1), "last": rng.randint(0, 1)}


def _gemm(types: tuple[TermType, ...], given: Given, environment: Bindings, rng: random.Random) -> Given | None:
    factors = (1.0, 1.0, 2.0) if not types[0].dtype.startswith(("float", "bfloat")) else (1.0, 0.5, 2.0)
    return {
        "alpha": rng.choice(factors), "beta": rng.choice(factors),
        "transA": rng.randint(0, 1), "transB": rng.randint(0, 1),
    }  # fmt: skip


def _window(rng: random.Random, rank: int) -> Given:
    plain = rng.random() < 0.35
    found = {"pads": (0,) * (2 * rank), "strides": (1,) * rank, "dilations": (1,) * rank}
    if plain:
        return found
    return {
        "pads": tuple(rng.randint(0, 2) for _ in range(2 * rank)) if rng.random() < 0.6 else found["pads"],
        "strides": tuple(rng.randint(1, 2) for _ in range(rank)),
        "dilations": tuple(rng.randint(1, 2) for _ in range(rank)) if rng.random() < 0.4 else found["dilations"],
    }


def _conv(types: tuple[TermType, ...], given: Given, environment: Bindings, rng: random.Random) -> Given | None:
    data, weight = types[0].shape, types[1].shape
    if len(data) != len(weight) or len(data) < 3 or not weight[1]:
        return None
    return {"group": max(data[1] // weight[1], 1), "kernel": weight[2:], **_window(rng, len(data) - 2)}


def _pool(types: tuple[TermType, ...], given: Given, environment: Bindings, rng: random.Random) -> Given | None:
    sizes = types[0].shape[2:]
    if not sizes:
        return None
    style = rng.random()
    kernel = tuple(rng.randint(1, min(3, size) if size else 1) for size in sizes)
    if style < 0.2:
        kernel = sizes
    elif style < 0.3:
        kernel = (1,) * len(sizes)
    elif style < 0.45:
        kernel = (2, 1)[: len(sizes)]
    return {"kernel": kernel, "counted": rng.randint(0, 1), **_window(rng, len(sizes))}


def _epsilon(types: tuple[TermType, ...], given: Given, environment: Bindings, rng: random.Random) -> Given | None:
    """Numbers that float32 represents, because ONNX stores float attributes as float32."""
    return {"epsilon": rng.choice((2.0**-17, 0.5, 1.0))}


_PROPOSALS: Mapping[str, Propose] = {
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
