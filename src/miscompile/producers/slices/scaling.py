"""Smaller sizes for slices of large models: the real operators, attributes and weights, on fewer elements.

A slice of a network for images or language has values of millions of elements, with which a compiler needs seconds for
a test. All large sizes of a slice are divided by one number, in inputs, weights, constant shapes and the attributes
that count channels, so that sizes that must agree still do. Weights keep their first rows and columns. Some slices
become invalid by it (a Reshape that merges two large sizes); they are run, and stay as they were if they fail.
"""

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from miscompile.base.errors import ModelError
from miscompile.core.tensor import Array, Tensor
from miscompile.graph.edges import all_names, reads
from miscompile.graph.model import Attribute, Graph, Model, Node, TensorType, ValueInfo
from miscompile.graph.rename import rename
from miscompile.graph.typing import value_types
from miscompile.ops.seed import Seed
from miscompile.producers.slices.observation import ran

ROOM = 1 << 13
"""Elements up to which a value or a weight is not large."""

_SMALL = 12
"""Sizes up to this one stay: ranks, kernels, heads, batches."""

_DIVISORS = (2, 4, 8, 16, 32, 64)
_HUGE = 1 << 20
"""Constant integers from here on stand for "to the end" and are no sizes."""

_COUNTS = frozenset({"group", "hidden_size", "num_heads", "q_num_heads", "kv_num_heads"})
"""Attributes that count channels or heads."""

_INTEGERS = ("int64", "int32")


def scaled(seeds: Sequence[Seed], rng: random.Random, seconds: float) -> list[Seed]:
    """Return `seeds` of one model, the large ones with smaller sizes where the smaller slice still runs.

    The smaller slices run together in a child process, for at most `seconds`. Slices with bodies are not changed.
    """
    found = [seed if is_large(seed) else filled(seed, rng) for seed in seeds]
    waiting = {place: _divisor(seed) for place, seed in enumerate(found) if is_large(seed) and not _has_bodies(seed)}
    for _ in range(2):
        typed = {place: _typed(filled(_divided(found[place], by), rng)) for place, by in waiting.items()}
        drafts = {place: draft for place, draft in typed.items() if draft is not None}
        good = _running(drafts, rng, seconds / 2)
        for place in good:
            found[place] = drafts[place]
        waiting = {place: by // 2 for place, by in waiting.items() if place not in good and by > 2}
    return found


def is_large(seed: Seed) -> bool:
    """Tell whether a value or a weight of a seed is large."""
    return _most(seed, 1) > ROOM


def _divisor(seed: Seed) -> int:
    """Return the smallest divisor that makes no value large, or the greatest of all."""
    return next((one for one in _DIVISORS if _most(seed, one) <= ROOM), _DIVISORS[-1])


def _most(seed: Seed, divisor: int) -> int:
    kinds = [*seed.types.values(), *(info.type for info in seed.graph.inputs)]
    shapes = [kind.shape or () for kind in kinds if isinstance(kind, TensorType)]
    shapes += [value.shape for value in seed.graph.initializers.values()]
    return max(
        (math.prod(_size(int(size or 1), divisor) for size in shape if size != 0) for shape in shapes), default=0
    )


def _size(size: int, divisor: int) -> int:
    return size if abs(size) <= _SMALL else int(math.copysign(-(-abs(size) // divisor), size))


def _divided(seed: Seed, divisor: int) -> Seed:
    """Return `seed` with every large size divided, not yet typed."""

    def smaller(value: Tensor) -> Tensor:
        array: Array = value.array[tuple(slice(0, _size(size, divisor)) for size in value.shape)]
        if value.dtype in _INTEGERS and array.size:
            sizes = [_size(int(one), divisor) if abs(int(one)) < _HUGE else int(one) for one in array.ravel()]
            array = np.array(sizes, array.dtype).reshape(array.shape)
        return Tensor(value.dtype, np.ascontiguousarray(array).reshape(array.shape))

    graph = seed.graph
    constants = {name: smaller(value) for name, value in graph.initializers.items()}
    inputs = tuple(ValueInfo(info.name, _smaller_type(info.type, divisor)) for info in graph.inputs)
    nodes = tuple(replace(node, attributes=_counted(node, divisor)) for node in graph.nodes)
    outputs = tuple(ValueInfo(info.name, None) for info in graph.outputs)
    new = replace(graph, inputs=inputs, outputs=outputs, nodes=nodes, initializers=constants, types={})
    return replace(seed, graph=new, pinned={name: smaller(value) for name, value in seed.pinned.items()})


def _smaller_type(kind: object, divisor: int) -> TensorType:
    assert isinstance(kind, TensorType)  # inputs of seeds are tensors of fixed sizes
    return TensorType(kind.dtype, tuple(_size(int(size or 0), divisor) for size in kind.shape or ()))


def _counted(node: Node, divisor: int) -> Mapping[str, Attribute]:
    return {
        name: replace(given, value=_size(given.value, divisor)) if name in _COUNTS else given
        for name, given in node.attributes.items()
    }


def _typed(seed: Seed) -> Seed | None:
    """Return `seed` with the inferred types of its values; None when these are invalid or not fixed."""
    graph = seed.graph
    known = replace(
        graph,
        inputs=tuple(info for info in graph.inputs if info.name not in seed.pinned),
        initializers={**graph.initializers, **seed.pinned},
    )
    try:
        types = value_types(Model(known, {"": seed.opset}))
    except ModelError:
        return None
    fixed = {name: kind for name, kind in types.items() if isinstance(kind, TensorType) and kind.static}
    made = {name for node in graph.nodes for name in node.outputs if name}
    if not made <= fixed.keys():
        return None
    outputs = tuple(ValueInfo(info.name, fixed[info.name]) for info in graph.outputs)
    inner = {name: fixed[name] for name in made if name not in {info.name for info in outputs}}
    return replace(seed, graph=replace(graph, outputs=outputs, types=inner))


def _running(drafts: Mapping[int, Seed], rng: random.Random, seconds: float) -> set[int]:
    """Return the places of the drafts whose nodes all run on onnx's reference evaluator."""
    if not drafts:
        return set()
    parts = {place: _apart(seed, f"s{place}_") for place, seed in drafts.items()}
    whole = Graph(
        "slices",
        tuple(info for part in parts.values() for info in part.inputs),
        tuple(info for part in parts.values() for info in part.outputs),
        tuple(node for part in parts.values() for node in part.nodes),
        {name: value for part in parts.values() for name, value in part.initializers.items()},
    )
    opset = next(iter(drafts.values())).opset
    seen = ran(Model(whole, {"": opset}), rng, seconds)
    return {place for place, part in parts.items() if set(_results(part.nodes)) <= seen}


def _apart(seed: Seed, prefix: str) -> Graph:
    """Return the graph of a seed with names of its own, in which pinned inputs are constants."""
    graph = replace(
        seed.graph,
        inputs=tuple(info for info in seed.graph.inputs if info.name not in seed.pinned),
        initializers={**seed.graph.initializers, **seed.pinned},
    )
    return rename(graph, {name: prefix + name for name in all_names(graph) if name})


def _results(nodes: Iterable[Node]) -> Iterator[str]:
    return (name for node in nodes for name in node.outputs if name)


def _has_bodies(seed: Seed) -> bool:
    return any(True for node in seed.graph.nodes for _ in node.subgraphs())


def filled(seed: Seed, rng: random.Random) -> Seed:
    """Return `seed` with drawn weights where the model has tensors of one repeated float other than zero.

    Models that are published without their weights have these, and no wrong order of elements would show in them. The
    drawn elements keep the sign and the magnitude.
    """
    graph = seed.graph
    drawn: dict[str, Tensor] = {}
    for node in graph.nodes:
        shape = graph.initializers.get(node.inputs[0]) if node.op == "ConstantOfShape" else None
        given = node.attributes.get("value")
        number = 0.0 if given is None or given.value.dtype != "float32" else float(given.value.array.ravel()[0])
        if shape is not None and number and math.isfinite(number):
            sizes = tuple(int(size) for size in shape.array.ravel())
            factors = np.random.default_rng(rng.getrandbits(32)).uniform(0.5, 1.5, sizes)
            drawn[node.outputs[0]] = Tensor("float32", np.asarray(number * factors, np.float32))
    if not drawn or any(info.name in drawn for info in graph.outputs):
        return seed
    nodes = tuple(node for node in graph.nodes if node.outputs[0] not in drawn)
    used = {name for node in nodes for name in reads(node)}
    constants = {name: value for name, value in {**graph.initializers, **drawn}.items() if name in used}
    types = {name: kind for name, kind in graph.types.items() if name not in drawn}
    return replace(seed, graph=replace(graph, nodes=nodes, initializers=constants, types=types))
