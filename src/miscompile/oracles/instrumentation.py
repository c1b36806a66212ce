"""Noise instrumentation of a program: every float use and every float output is multiplied by a noise input.

Noise is per use, not per value, because `Equal(x, x)` and `Floor(x / x)` must be free to flip. It is per element,
because a cancelling sum must show how ill-conditioned it is. Functions that libraries approximate get absolute noise as
well: a sigmoid of -20 may be 2e-9 or zero, and a Ceil of it 1 or 0. Quantised values move by up to three quarters of a
step, because integer kernels that replace dequantise-compute-quantise may round to the neighbouring step by design.
Numbers that are nearly equal are equal in some of the rounds.

Bodies of If, Loop and Scan carry noise too: the noise of a value within a body is an input of the main graph that the
body captures, and the same in every iteration. So the rounding errors of a loop add up in one direction rather than at
random, which can only enlarge the sensitivity. Errors that cancel from one iteration to the next are too rare to
justify noise of another shape.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from miscompile.base.dtypes import DTYPES, SMALL, is_float
from miscompile.base.errors import ModelError
from miscompile.core.case import Dim, Port
from miscompile.core.tensor import Tensor, tensor
from miscompile.graph.attributes import attributes
from miscompile.graph.bodies import CONTROL, Typing, is_static, typing_of
from miscompile.graph.edges import map_bodies
from miscompile.graph.inline import inline
from miscompile.graph.model import Attribute, Graph, Model, Node, TensorType, ValueInfo
from miscompile.graph.rename import rename_nodes
from miscompile.ops.operand_roles import structural_operands
from miscompile.ops.registry import having, written
from miscompile.ops.spec import Role

ULPS = 8

MOST_ELEMENTS = 4096
"""Largest noise. A model of the size that people run has hundreds of uses of values with hundreds of thousands of
elements, and noise for each of them in each round would take tens of gigabytes."""

NOT_NARROWED: Mapping[str, str] = MappingProxyType({})

_QUIET: tuple[Role, ...] = ("shape", "size", "control", "domain")
"""Roles of operands that decide shapes, or whether a result exists: noise would change the program."""

_FLOAT = 1
"""The number of float32 in an attribute that names a type."""


@dataclass(frozen=True, slots=True)
class Noise:
    """A noise input: its elements lie at `centre` plus or minus `step`; at `centre` it changes nothing."""

    port: Port
    centre: float
    step: float

    def silent(self) -> Tensor:
        """Return the noise that changes nothing."""
        return tensor(np.full(self._sizes(), self.centre), self.port.dtype)

    def uniform(self, sign: float) -> Tensor:
        """Return noise that moves every element the same way."""
        return tensor(np.full(self._sizes(), self.centre + sign * self.step), self.port.dtype)

    def random(self, rng: np.random.Generator, count: int) -> list[Tensor]:
        """Return `count` noise tensors that move every element up or down at random."""
        signs = rng.integers(0, 2, (count, *self._sizes()), np.int8) * 2.0 - 1.0
        drawn = tensor(signs * self.step + self.centre, self.port.dtype)
        return [Tensor(drawn.dtype, drawn.array[place]) for place in range(count)]

    def sparse(self, rng: np.random.Generator, share: float) -> Tensor:
        """Return noise that moves a random `share` of the elements up, and all others down."""
        up = rng.random(self._sizes(), np.float32) < share
        return tensor(np.where(up, self.centre + self.step, self.centre - self.step), self.port.dtype)

    def _sizes(self) -> tuple[int, ...]:
        return tuple(size if isinstance(size, int) else 1 for size in self.port.shape or ())


def instrument(model: Model, narrowed: Mapping[str, str] = NOT_NARROWED) -> tuple[Model, list[Noise]]:
    """Return `model` with noise on every float use and output, and the noises, which are its last inputs.

    A type in `narrowed` gets the noise of the narrower type that a compiler computes it in.

    Local functions are inlined first. Raises ModelError when the model cannot be typed, or has bodies of other
    operators than If, Loop and Scan: their values would get no noise, and rounding would look like a bug.
    """
    if model.functions:
        model = inline(model)
    instrumenter = _Instrumenter(typing_of(model), narrowed)
    graph = instrumenter.graph(model.graph)
    inputs = tuple(
        ValueInfo(noise.port.name, TensorType(noise.port.dtype, noise.port.shape)) for noise in instrumenter.noises
    )
    return replace(model, graph=replace(graph, inputs=graph.inputs + inputs, types={})), instrumenter.noises


class _Instrumenter:
    """Rewrites graphs so that every float use is a product with noise."""

    def __init__(self, typing: Typing, narrowed: Mapping[str, str]) -> None:
        self.noises: list[Noise] = []
        self._enter(typing)
        self._narrowed = narrowed
        self._fresh = 0

    def _enter(self, typing: Typing) -> None:
        """Continue in the scope that `typing` describes."""
        self._place, self._types = typing, dict(typing.types)

    def graph(self, graph: Graph) -> Graph:
        nodes: list[Node] = []
        for node in graph.nodes:
            nodes += self._node(node)
        given = {info.name for info in graph.inputs} | set(graph.initializers)
        noised = {
            info.name: self._use(info.name, nodes) for info in graph.outputs if info.name not in given
        }  # an input or constant that is an output carries no rounding
        return _with_outputs(graph, nodes, noised)

    def _bodies(self, node: Node) -> Node:
        """Instrument the bodies of `node`; their results get noise where they are used."""
        if not any(True for _ in node.subgraphs()):
            return node
        if node.op not in CONTROL or node.domain:
            raise ModelError(f"bodies of {node.op} carry no noise")
        place = self._place
        instrumented = []
        for body, typing in zip(node.subgraphs(), place.bodies(node), strict=True):
            self._enter(typing)
            nodes = [new for old in body.nodes for new in self._node(old)]
            instrumented.append(replace(body, nodes=tuple(nodes), types={}))
        self._enter(place)
        rest = iter(instrumented)
        return map_bodies(node, lambda _: next(rest))

    def _node(self, node: Node) -> list[Node]:
        node = self._bodies(node)
        before: list[Node] = []
        quiet = structural_operands(*_QUIET).get(node.op, ())
        inputs = [
            name if place in quiet else self._use(name, before, self._looseness(node, name))
            for place, name in enumerate(node.inputs)
        ]
        if node.op == "QuantizeLinear" and not node.domain:
            axis = node.attributes.get("axis")
            inputs[0] = self._jitter(inputs[0], node.inputs[0], node.inputs[1], before, axis.value if axis else 1)
        elif node.op == "DynamicQuantizeLinear" and not node.domain:
            scale = f"miscompile_scale_{self._fresh}"
            self._types[scale] = TensorType("float32", ())
            before.append(Node(node.op, (inputs[0],), (f"{scale}_y", scale, f"{scale}_zero")))
            inputs[0] = self._jitter(inputs[0], node.inputs[0], scale, before)
        noised = replace(node, inputs=tuple(inputs))
        if node.op == "Equal" and not node.domain:
            return [*before, *self._coinciding(noised, node.inputs[0])]
        spec = written().get(node.op)
        if node.domain or spec is None or not spec.approximated:
            return [*before, noised]
        return [*before, *self._approximated(noised)]

    def _approximated(self, node: Node) -> list[Node]:
        """Move the results of `node` by a few times the epsilon of their type, whatever their size."""
        after: list[Node] = []
        raw = list(node.outputs)
        for place, name in enumerate(node.outputs):
            kind = self._types.get(name)
            if not isinstance(kind, TensorType) or not is_float(kind.dtype) or kind.dtype == "bfloat16":
                continue
            if not is_static(kind):
                continue
            self._fresh += 1
            port = Port(f"miscompile_error_{self._fresh}", kind.dtype, _sizes_of_noise(kind.shape))
            self.noises.append(Noise(port, 0.0, self._step(kind.dtype)))
            raw[place] = f"miscompile_raw_{self._fresh}"
            after.append(Node("Add", (raw[place], port.name), (name,)))
        return [replace(node, outputs=tuple(raw)), *after]

    def _coinciding(self, node: Node, operand: str) -> list[Node]:
        """Let numbers that differ by little be equal in some rounds, because noise on each never makes them so.

        Rounding does: 0.8375 and 0.8376 are one number in float16.
        """
        kind = self._types.get(operand)
        if not isinstance(kind, TensorType) or not is_float(kind.dtype) or kind.dtype in (*SMALL, "bfloat16"):
            return [node]
        self._fresh += 1
        wide = "float64" if kind.dtype == "float64" else "float32"  # few kernels compare float16
        port = Port(f"miscompile_error_{self._fresh}", wide, ())
        self.noises.append(Noise(port, 0.0, 2 * self._step(kind.dtype)))
        parts = ("same", "left", "right", "gap", "distance", "size", "slack", "near")
        same, left, right, gap, distance, size, slack, near = (f"miscompile_{part}_{self._fresh}" for part in parts)
        cast = attributes({"to": DTYPES[wide].code})
        return [
            replace(node, outputs=(same,)),
            Node("Cast", (node.inputs[0],), (left,), cast),
            Node("Cast", (node.inputs[1],), (right,), cast),
            Node("Sub", (left, right), (gap,)),
            Node("Abs", (gap,), (distance,)),
            Node("Abs", (right,), (size,)),
            Node("Mul", (size, port.name), (slack,)),
            Node("Less", (distance, slack), (near,)),
            Node("Or", (same, near), node.outputs),
        ]

    def _jitter(self, noised: str, name: str, step: str, before: list[Node], axis: int = 1) -> str:
        """Move `name`, which is quantised in steps of `step`, by up to three quarters of a step.

        There is one step for the whole tensor, or one for each index along `axis`. Block-wise steps get no noise,
        because no integer kernel replaces a chain that ends in one.
        """
        data, scale = self._types.get(name), self._types.get(step)
        if not isinstance(data, TensorType) or not is_static(data) or not isinstance(scale, TensorType):
            return noised
        if data.dtype != scale.dtype or data.dtype == "bfloat16":
            return noised
        self._fresh += 1
        if scale.shape not in ((), (1,)):
            sizes = _along(data, scale, axis)
            if sizes is None:
                return noised
            shape, spread = f"miscompile_sizes_{self._fresh}", f"miscompile_steps_{self._fresh}"
            before.append(Node("Constant", (), (shape,), {"value": Attribute("tensor", sizes)}))
            before.append(Node("Reshape", (step, shape), (spread,)))
            step = spread
        port = Port(f"miscompile_jitter_{self._fresh}", data.dtype, _sizes_of_noise(data.shape))
        self.noises.append(Noise(port, 0.0, 0.75))
        part, result = f"miscompile_part_{self._fresh}", f"miscompile_jittered_{self._fresh}"
        before += [Node("Mul", (port.name, step), (part,)), Node("Add", (noised, part), (result,))]
        return result

    def _looseness(self, node: Node, name: str) -> float:
        """Return the factor of an operand's noise."""
        kind, stash = self._types.get(name), node.attributes.get("stash_type")
        if (
            node.op in having("stash-type")
            and isinstance(kind, TensorType)
            and (stash is None or stash.value == _FLOAT)
        ):
            return max(1.0, DTYPES["float32"].eps / DTYPES[kind.dtype].eps) if is_float(kind.dtype) else 1
        spec = written().get(node.op)
        return 1 if spec is None else spec.noise

    def _step(self, dtype: str) -> float:
        return ULPS * DTYPES[self._narrowed.get(dtype, dtype)].eps

    def _use(self, name: str, before: list[Node], times: float = 1) -> str:
        kind = self._types.get(name)
        if not isinstance(kind, TensorType) or not is_float(kind.dtype) or kind.dtype in SMALL:
            return name  # no operator computes in small floats, and a value that is rounded to one has noise already
        shape = kind.shape if kind.shape and all(isinstance(size, int) for size in kind.shape) else ()
        self._fresh += 1
        wide = "float32" if kind.dtype == "bfloat16" else kind.dtype
        port = Port(f"miscompile_noise_{self._fresh}", wide, _sizes_of_noise(shape))
        self.noises.append(Noise(port, 1.0, times * self._step(kind.dtype)))
        result = f"miscompile_noised_{self._fresh}"
        before += _product(name, port, result, kind.dtype)
        return result


def _sizes_of_noise(shape: tuple[Dim, ...] | None) -> tuple[Dim, ...] | None:
    """Return the sizes of the noise for a value of `shape`: those of the value, or 1 for the first axes of a large one.

    Noise that is the same along an axis adds up in sums over it, so that the sensitivity is too large rather than too
    small.
    """
    sizes = list(shape or ())
    for axis, size in enumerate(sizes):
        if math.prod(one for one in sizes if isinstance(one, int)) <= MOST_ELEMENTS:
            break
        sizes[axis] = 1 if isinstance(size, int) else size
    return tuple(sizes) if shape is not None else None


def _along(data: TensorType, scale: TensorType, axis: int) -> Tensor | None:
    """Return the sizes that make one step for each place along `axis` broadcast with the data; None if they cannot."""
    shape, rank = data.shape or (), len(data.shape or ())
    if scale.shape is None or len(scale.shape) != 1 or not -rank <= axis < rank or scale.shape[0] != shape[axis]:
        return None
    sizes = np.ones(rank, np.int64)
    sizes[axis] = -1
    return Tensor("int64", sizes)


def _product(name: str, port: Port, result: str, dtype: str) -> list[Node]:
    if dtype != "bfloat16":
        return [Node("Mul", (name, port.name), (result,))]
    wide, product = f"{result}_wide", f"{result}_product"
    return [
        Node("Cast", (name,), (wide,), attributes({"to": DTYPES["float32"].code})),
        Node("Mul", (wide, port.name), (product,)),
        Node("Cast", (product,), (result,), attributes({"to": DTYPES["bfloat16"].code})),
    ]


def _with_outputs(graph: Graph, nodes: list[Node], noised: Mapping[str, str]) -> Graph:
    """Give the noised outputs their old names, and rename the values that had those names."""
    rename: dict[str, str] = {}
    for name, result in noised.items():
        if result != name:
            rename[name] = f"miscompile_clean_{name}"
            rename[result] = name
    return replace(graph, nodes=rename_nodes(nodes, rename))
