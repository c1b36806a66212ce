"""Instantiation of a plan: the program with symbolic sizes, and candidate sizes at which to run it."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from miscompile.base.errors import RejectedDraft
from miscompile.core.case import Dim
from miscompile.core.tensor import Tensor
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo, ValueType
from miscompile.graph.rename import redirect
from miscompile.graph.typing import value_types
from miscompile.ops.spec import Operand
from miscompile.producers.dynamic.plan import Base, Linear, Place, SizePlan, Sizes
from miscompile.producers.dynamic.search import GENERIC, FoundSymbols
from miscompile.producers.dynamic.shape_arithmetic import Chains, ShapeChain
from miscompile.producers.finish import InputSetting

_LOOSE = 0.4
"""Share of Reshape targets whose one symbolic element is written as -1, or as 0 where the size is copied."""
_WHOLE = 0.5
"""Share of structural operands equal to the shape of another value that are computed by one Shape node."""


@dataclass(frozen=True, slots=True)
class Symbolic:
    """A model with symbolic sizes, the types that onnx infers for its values, and its computed operands.

    `computed` names the operands that shape arithmetic computes, such as `Reshape:1`.
    """

    model: Model
    types: Mapping[str, ValueType]
    computed: tuple[str, ...]


def loosened(base: Base, found: FoundSymbols, rng: random.Random) -> SizePlan:
    """Return the plan with some targets of Reshape written as -1 and 0, which onnx resolves."""
    plan = found.plan
    for node in base.nodes:
        name = node.inputs[1] if node.op == "Reshape" else ""
        elements = plan.adapted.get(name, {})
        if len(elements) != 1 or base.scope.uses[name] != 1 or rng.random() >= _LOOSE:
            continue
        ((position, element),) = elements.items()
        value = base.scope.operands[name].value
        if value is None or not element.symbol or (value < 0).any():
            continue
        allows_zero = "allowzero" in node.attributes and node.attributes["allowzero"].value
        copied = not allows_zero and position < len(found.generic[0][node.inputs[0]].shape)
        if copied and all(
            operands[node.inputs[0]].shape[position] == element.at(sizes)
            for operands, sizes in zip(found.generic, GENERIC, strict=True)
        ):
            offset = rng.choice((0, -1))
        else:
            offset = -1
        plan = plan.following(name, position, Linear("", 0, offset))
    return plan


def symbolic(base: Base, found: FoundSymbols, rng: random.Random, barred: frozenset[str]) -> Symbolic:
    """Return the model of a plan. `barred` are operands that the target refuses when they are computed.

    Raises RejectedDraft for one of these, or when the target does not support shape arithmetic, and ModelError when
    onnx cannot infer the model's types.
    """
    plan = found.plan
    model = base.finisher.model(base.outputs, InputSetting(opened=base.opened(plan)))
    chains = Chains(base, rng)
    computed: list[str] = []
    before: dict[int, list[Node]] = {}
    renamed: dict[str, str] = {}
    constants = dict(model.graph.initializers)
    for name, elements in plan.adapted.items():
        if name in base.scope.pinned:
            continue
        if not any(element.symbol for element in elements.values()):
            constants[name] = Tensor(base.scope.operands[name].dtype, base.value(name, plan, {}))
            continue
        marks = [f"{node.op}:{place}" for node in base.nodes for place, used in enumerate(node.inputs) if used == name]
        if barred.intersection(marks):
            raise RejectedDraft("the target does not take such an operand when it is computed")
        computed += marks
        place = next(place for place, node in enumerate(base.nodes) if name in node.inputs)
        chain = _chain(base, found, rng, chains, name, place)
        constants.update(chain.constants)
        renamed[name] = chain.result
        before.setdefault(id(base.nodes[place]), []).extend(chain.nodes)
    return _typed(base, found, _rewritten(model, before, renamed, constants, plan), computed)


def _chain(base: Base, found: FoundSymbols, rng: random.Random, chains: Chains, name: str, place: int) -> ShapeChain:
    available = [*base.sources, *(name for node in base.nodes[:place] for name in node.outputs)]
    available = [value for value in available if value in base.scope.inputs or value not in base.openable]
    axes = {symbol: list(_axes(found, available, symbol)) for symbol in found.plan.symbols()}
    whole = [value for value in available if _is_shape_of(base, found, name, value)]
    chosen = rng.choice(whole) if whole and rng.random() < _WHOLE else None
    return chains.write(name, found.plan.adapted[name], axes, chosen)


def _axes(found: FoundSymbols, available: Sequence[str], symbol: str) -> Iterator[Place]:
    """Yield the axes of available values whose size is `symbol` at both generic sizes."""
    for name in available:
        shapes = [operands[name].shape for operands in found.generic]
        for axis, pair in enumerate(zip(*shapes, strict=True)):
            if all(size == sizes[symbol] for size, sizes in zip(pair, GENERIC, strict=True)):
                yield name, axis


def _is_shape_of(base: Base, found: FoundSymbols, name: str, value: str) -> bool:
    """Tell whether known operand `name` is the shape of `value` at both generic sizes."""
    if base.scope.operands[name].rank != 1:
        return False
    return all(
        tuple(base.value(name, found.plan, sizes).tolist()) == operands[value].shape
        for operands, sizes in zip(found.generic, GENERIC, strict=True)
    )


def _rewritten(
    model: Model,
    before: Mapping[int, Sequence[Node]],
    renamed: Mapping[str, str],
    constants: dict[str, Tensor],
    plan: SizePlan,
) -> Model:
    """Insert chains before their first users, and symbols into the types of the inputs."""
    nodes: list[Node] = []
    for node in model.graph.nodes:
        nodes += before.get(id(node), ())
        if node.op == "Constant" and node.outputs[0] in renamed:
            continue
        if node.op == "Constant" and node.outputs[0] in constants:
            continue  # an initialiser with the new elements replaces this Constant
        nodes.append(redirect(node, renamed))
    kept = {name: value for name, value in constants.items() if name not in renamed}
    inputs = tuple(replace(info, type=_symbolic(info, plan)) for info in model.graph.inputs)
    return replace(model, graph=replace(model.graph, nodes=tuple(nodes), inputs=inputs, initializers=kept))


def _symbolic(info: ValueInfo, plan: SizePlan) -> TensorType:
    assert isinstance(info.type, TensorType)
    assert info.type.shape is not None
    shape = tuple(plan.ties.get((info.name, axis), size) for axis, size in enumerate(info.type.shape))
    return TensorType(info.type.dtype, shape)


def _typed(base: Base, found: FoundSymbols, model: Model, computed: Sequence[str]) -> Symbolic:
    """Declare each output with its inferred type, and with symbols where its sizes equal them at generic sizes."""
    untyped = tuple(
        ValueInfo(info.name, TensorType(base.scope.operands[info.name].dtype, None)) for info in model.graph.outputs
    )
    types = value_types(replace(model, graph=replace(model.graph, outputs=untyped)))
    outputs = []
    for name in base.outputs:
        kind = types.get(name)
        known = kind.shape if isinstance(kind, TensorType) else None
        outputs.append(ValueInfo(name, TensorType(base.scope.operands[name].dtype, _declared(found, name, known))))
    graph: Graph = replace(model.graph, outputs=tuple(outputs))
    return Symbolic(replace(model, graph=graph), types, tuple(computed))


def _declared(found: FoundSymbols, name: str, known: Sequence[Dim] | None) -> tuple[Dim, ...]:
    shapes = [operands[name].shape for operands in found.generic]
    declared: list[Dim] = []
    for axis, pair in enumerate(zip(*shapes, strict=True)):
        size = known[axis] if known is not None and len(known) == len(shapes[0]) else None
        if isinstance(size, int):
            declared.append(size)
            continue
        names = found.plan.symbols()
        fits = [s for s in names if all(a == sizes[s] for a, sizes in zip(pair, GENERIC, strict=True))]
        declared.append(fits[0] if fits else None)
    return tuple(declared)


def contradicts(made: Symbolic, known: Mapping[str, Operand], sizes: Sizes) -> bool:
    """Tell whether some value has another shape at `sizes` than the model declares, or onnx infers for it."""
    declared = {info.name: info.type for info in made.model.graph.outputs}
    for name, operand in known.items():
        for kind in (made.types.get(name), declared.get(name)):
            if isinstance(kind, TensorType) and kind.shape is not None and not _fits(kind.shape, operand.shape, sizes):
                return True
    return False


def _fits(declared: Sequence[Dim], shape: tuple[int, ...], sizes: Sizes) -> bool:
    if len(declared) != len(shape):
        return False
    return all(
        have == (sizes.get(want, have) if isinstance(want, str) else want)
        for want, have in zip(declared, shape, strict=True)
        if want is not None
    )


def candidates(rng: random.Random, original: Sizes, usual: Sequence[int]) -> list[dict[str, int]]:
    """Return sizes to try, in random order: `usual` ones and the original for one symbol, a sample of pairs for two."""
    symbols = sorted(original)
    if len(symbols) == 1:
        found = [{symbols[0]: size} for size in dict.fromkeys([*usual, original[symbols[0]]])]
    else:
        first, second = symbols
        pairs = {(original[first], original[second]), (0, original[second]), (1, 1), (original[first], 1)}
        pairs |= {(rng.choice(usual), rng.choice(usual)) for _ in range(8)}
        found = [{first: one, second: other} for one, other in sorted(pairs)]
    rng.shuffle(found)
    return found


def fed(base: Base, plan: SizePlan, name: str, sizes: Sizes) -> Tensor | None:
    """Return the fed elements of pinned input `name` at these sizes, None for an input that is drawn."""
    if name not in base.scope.pinned:
        return None
    return Tensor(base.scope.operands[name].dtype, np.asarray(base.value(name, plan, sizes)))
