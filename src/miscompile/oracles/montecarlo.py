"""Monte-Carlo arithmetic: how far may a correct result move when every float operation rounds differently?

The unoptimised program is rebuilt with every float operand *use*, and every float output, multiplied by noise of a few
ulps; the spread of its results is each element's sensitivity. Noise is per use, not per value (`Equal(x, x)` and
`Floor(x / x)` must be free to flip), and per element (so that a cancelling sum shows how ill-conditioned it is).
The method also covers discontinuities, because noise flips them.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from miscompile.base.dtypes import DTYPES, is_float
from miscompile.core.case import Case, Feed, Port, Program
from miscompile.core.outcome import Values
from miscompile.core.tensor import Array, Tensor, tensor
from miscompile.graph.attributes import attributes
from miscompile.graph.emit import emit
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo, ValueType
from miscompile.graph.read import read
from miscompile.graph.typing import value_types

ULPS = 8
ROUNDS = 12
FLOOR = 0.1
"""An element's sensitivity counts for at least this share of its tensor's largest: errors spread."""
THRESHOLD = 2.0

_STRUCTURAL = {
    ("Resize", 1), ("Resize", 2), ("Upsample", 1), ("Dropout", 1), ("OneHot", 1), ("Range", 0), ("Range", 1),
    ("Range", 2),
}  # fmt: skip
"""Float operands that decide shapes: noise there would change the program, not its rounding."""


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """Largest ratio of difference to sensitivity over all outputs, and where it was found."""

    ratio: float
    feed: int
    output: int
    difference: float
    allowed: float


def noisy(case: Case, seed: int) -> Case:
    """Return the noise-carrying twin of `case`: its first feed noise-free, then `ROUNDS` noisy feeds for each feed.

    The noise-free feeds come first, one for each feed of `case`. Raises ModelError when the program cannot be read
    or typed.
    """
    model = read(case.program.payload)
    instrumented, noises = _instrument(model)
    rng = np.random.Generator(np.random.PCG64(seed))
    feeds: list[Feed] = [feed + tuple(_ones(noise) for noise in noises) for feed in case.feeds]
    for feed in case.feeds:
        feeds += [feed + drawn for drawn in _draw(noises, rng)]
    program = Program("onnx", emit(instrumented), case.program.inputs + tuple(noises), case.program.outputs)
    return Case(program, tuple(feeds), {"noise": seed})


def judge_noise(reference: Values, other: Values, noise: Values) -> Sensitivity | None:
    """Return how far `other` lies from `reference` in units of sensitivity; None when noise makes the program fail.

    `noise` are the results of the case that `noisy` made.
    """
    feeds = len(reference.results)
    worst = Sensitivity(0.0, 0, 0, 0.0, 0.0)
    for feed in range(feeds):
        rounds = noise.results[feeds + feed * ROUNDS : feeds + (feed + 1) * ROUNDS]
        for index, (want, got) in enumerate(zip(reference.results[feed], other.results[feed], strict=True)):
            if want is None or got is None or want.dtype == "string":
                continue
            base = noise.results[feed][index]
            moved = [results[index] for results in rounds]
            found = _ratio(want, got, base, moved)
            if found is None:
                return None
            if found[0] > worst.ratio:
                worst = Sensitivity(found[0], feed, index, found[1], found[2])
    return worst


def _ratio(
    want: Tensor, got: Tensor, base: Tensor | None, moved: list[Tensor | None]
) -> tuple[float, float, float] | None:
    centre = want.numbers().astype(np.float64)
    gap = np.abs(centre - got.numbers().astype(np.float64))
    if not gap.size or not gap.max():
        return (0.0, 0.0, 0.0)
    spread = np.zeros_like(gap)
    for tensor_ in [base, *moved]:
        if tensor_ is None or tensor_.shape != want.shape:
            return None
        numbers = tensor_.numbers().astype(np.float64)
        if not np.isfinite(numbers).all():
            return None
        np.maximum(spread, np.abs(numbers - centre), out=spread)
    scale = np.maximum(spread, FLOOR * spread.max())
    if not np.isfinite(gap).all():
        return (float("inf"), float("inf"), float(scale.max()))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(gap == 0, 0.0, gap / scale)
    place = int(np.argmax(ratio))
    return (float(ratio.flat[place]), float(gap.flat[place]), float(THRESHOLD * scale.flat[place]))


def _ones(port: Port) -> Tensor:
    return tensor(np.ones(_sizes(port)), port.dtype)


def _sizes(port: Port) -> tuple[int, ...]:
    return tuple(size if isinstance(size, int) else 1 for size in port.shape or ())


def _step(port: Port) -> float:
    return ULPS * DTYPES[port.dtype].eps


def _draw(noises: list[Port], rng: np.random.Generator) -> Iterator[Feed]:
    for sign in (1.0, -1.0):
        yield tuple(tensor(np.full(_sizes(port), 1 + sign * _step(port)), port.dtype) for port in noises)
    for _ in range(ROUNDS - 2):
        yield tuple(tensor(_signs(rng, _sizes(port)) * _step(port) + 1, port.dtype) for port in noises)


def _signs(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.integers(0, 2, shape) * 2.0 - 1.0


def _instrument(model: Model) -> tuple[Model, list[Port]]:
    weaver = _Weaver(value_types(model))
    graph = weaver.graph(model.graph, {}, outermost=True)
    inputs = tuple(ValueInfo(port.name, TensorType(port.dtype, port.shape)) for port in weaver.noises)
    return replace(model, graph=replace(graph, inputs=graph.inputs + inputs, types={})), weaver.noises


class _Weaver:
    """Rewrites graphs so that float uses go through a product with noise."""

    def __init__(self, types: Mapping[str, ValueType]) -> None:
        self.noises: list[Port] = []
        self._types = types
        self._fresh = 0

    def graph(self, graph: Graph, outer: Mapping[str, ValueType], *, outermost: bool) -> Graph:
        known = {**outer, **(self._types if outermost else _declared(graph))}
        nodes: list[Node] = []
        for node in graph.nodes:
            nodes += self._node(node, known, noise=outermost)
        outputs = []
        if not outermost:
            return replace(graph, nodes=tuple(nodes))
        for info in graph.outputs:
            outputs.append(self._use(info.name, known, nodes))
        return _with_outputs(graph, nodes, outputs)

    def _node(self, node: Node, known: Mapping[str, ValueType], *, noise: bool) -> list[Node]:
        before: list[Node] = []
        inputs = [
            self._use(name, known, before) if noise and (node.op, place) not in _STRUCTURAL else name
            for place, name in enumerate(node.inputs)
        ]
        return [*before, replace(node, inputs=tuple(inputs))]

    def _use(self, name: str, known: Mapping[str, ValueType], before: list[Node]) -> str:
        kind = known.get(name)
        if not isinstance(kind, TensorType) or not is_float(kind.dtype):
            return name
        shape = kind.shape if kind.shape and all(isinstance(size, int) for size in kind.shape) else ()
        self._fresh += 1
        port = Port(f"noise_{self._fresh}", "float32" if kind.dtype == "bfloat16" else kind.dtype, shape)
        self.noises.append(port)
        result = f"noised_{self._fresh}"
        before += _product(name, port, result, kind.dtype)
        return result


def _product(name: str, port: Port, result: str, dtype: str) -> list[Node]:
    if dtype != "bfloat16":
        return [Node("Mul", (name, port.name), (result,))]
    wide, product = f"{result}_wide", f"{result}_product"
    return [
        Node("Cast", (name,), (wide,), attributes({"to": DTYPES["float32"].code})),
        Node("Mul", (wide, port.name), (product,)),
        Node("Cast", (product,), (result,), attributes({"to": DTYPES["bfloat16"].code})),
    ]


def _declared(graph: Graph) -> dict[str, ValueType]:
    found = {info.name: info.type for info in graph.inputs + graph.outputs if info.type is not None}
    return {**found, **graph.types}


def _with_outputs(graph: Graph, nodes: list[Node], outputs: list[str]) -> Graph:
    """Give the noised outputs their old names, and what bore those names before a new one."""
    rename: dict[str, str] = {}
    for info, noised in zip(graph.outputs, outputs, strict=True):
        if noised != info.name:
            rename[info.name] = f"{info.name}_clean"
            rename[noised] = info.name
    untouchable = {info.name for info in graph.inputs} | set(graph.initializers)
    for name in untouchable & set(rename):
        del rename[name]  # an input that is an output at once keeps its name; it carries no rounding
    renamed = tuple(_rename(node, rename) for node in nodes)
    return replace(graph, nodes=renamed)


def _rename(node: Node, names: Mapping[str, str]) -> Node:
    inputs = tuple(names.get(name, name) for name in node.inputs)
    outputs = tuple(names.get(name, name) for name in node.outputs)
    if not any(True for _ in node.subgraphs()):
        return replace(node, inputs=inputs, outputs=outputs)
    changed = {
        key: replace(attribute, value=_rename_graph(attribute.value, names)) if attribute.kind == "graph" else attribute
        for key, attribute in node.attributes.items()
    }
    return replace(node, inputs=inputs, outputs=outputs, attributes=changed)


def _rename_graph(graph: Graph, names: Mapping[str, str]) -> Graph:
    own = {info.name for info in graph.inputs} | {name for node in graph.nodes for name in node.outputs}
    outer = {old: new for old, new in names.items() if old not in own}
    return replace(graph, nodes=tuple(_rename(node, outer) for node in graph.nodes))


def noise_seed(case: Case) -> int:
    """Return the seed of a case's noise: a function of its bytes, so that judging stays pure."""
    return random.Random(case.program.digest).getrandbits(63)
