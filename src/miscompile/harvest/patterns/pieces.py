"""Pieces of a harvested model: whole connected units, and the smallest contiguous block in one that triggers a pass."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from miscompile.core.case import Case
from miscompile.core.ports import Runner
from miscompile.core.tensor import Tensor
from miscompile.core.verdict import Violated
from miscompile.graph.edges import reads
from miscompile.graph.emit import to_program
from miscompile.graph.model import Model, TensorType
from miscompile.harvest.patterns.shrink import Fires
from miscompile.ops.seed import Seed
from miscompile.ops.values import Range, draw
from miscompile.patterns.extract import Operators, PieceSizes, Whole, blocks, subgraphs
from miscompile.producers.finish import ir_version_of
from miscompile.producers.slices.binding import bindings
from miscompile.producers.slices.observation import Observed, known, observed

_UNSEEN = Range(-2.0, 2.0, integral=False)
_UNSEEN_WHOLE = Range(0, 2, integral=True)
"""The range of inputs that were not observed."""

_SHAPES = ("int64", "int32")


@dataclass(frozen=True, slots=True)
class PieceLimits:
    """The limits on pieces: operators in a `unit` and in a `block`, bytes of `constants`.

    From a larger unit, `sample` random blocks are used.
    """

    unit: int = 24
    block: int = 12
    constants: int = 64 << 10
    sample: int = 40


def inferred(model: Model, name: str) -> Whole | None:
    """Return the inferred types of a model; None if the model must run before it can be cut.

    It must run if a type is unknown, or an operator reads computed integers, which may be shapes.
    """
    bound = next(bindings(model))
    found = known(bound, ())
    made = {value for node in bound.graph.nodes for value in node.outputs if value}
    passed_on = {value for node in bound.graph.nodes for value in reads(node)} & made
    enough = made <= found.values.keys() and not any(found.values[value].type.dtype in _SHAPES for value in passed_on)
    return whole_of(found, name) if enough else None


def watched(model: Model, name: str, rng: random.Random, seconds: float) -> Whole:
    """Return the observation of a model in a child process. Raises ModelError when it has no fixed sizes."""
    return whole_of(observed(model, rng, seconds), name)


def whole_of(found: Observed, name: str) -> Whole:
    """Return an observed model as a graph to be cut."""
    return Whole(
        name,
        found.model.graph,
        found.model.opset,
        {value: seen.type for value, seen in found.values.items()},
        {value: seen.range for value, seen in found.values.items() if seen.range is not None},
        {value: seen.value for value, seen in found.values.items() if seen.value is not None},
    )


def pieces(whole: Whole, limits: PieceLimits, rng: random.Random, left: Counter[str]) -> Iterator[Seed]:
    """Yield the units of a graph, or random blocks of units that are too large. `left` counts excluded pieces by
    reason."""
    found = False
    for seed in subgraphs(whole, PieceSizes(1, limits.unit, limits.constants), left):
        found = True
        yield seed
    if not found:
        sizes = PieceSizes(1, limits.block, limits.constants)
        yield from blocks(whole, sizes, Counter(), rng=rng, count=limits.sample)


def smallest(seed: Seed, fires: Fires, runner: Runner, rng: random.Random) -> Seed:
    """Return a block of `seed` that the pass changes, such that it changes no block with one operator less.

    Returns `seed` itself when there is no smaller block.
    """
    while smaller := next(_smaller(seed, fires, runner, rng), None):
        seed = smaller
    return seed


def _smaller(seed: Seed, fires: Fires, runner: Runner, rng: random.Random) -> Iterator[Seed]:
    """Yield the blocks with one operator less that the pass changes; the last operators are removed first."""
    candidates = list(_one_less(seed))
    cases = [case_of(candidate, rng) for candidate in candidates]
    runs = [fires.plan(case, rng)[0] for case in cases]
    for candidate, run, outcome in zip(candidates, runs, runner.run(runs), strict=True):
        if isinstance(fires.judge([run], [outcome]), Violated):
            yield candidate


def _one_less(seed: Seed) -> Iterator[Seed]:
    whole = Whole(seed.source, seed.graph, seed.opset, _types(seed), seed.ranges, seed.pinned)
    operators = Operators(whole, PieceSizes(1, max(1, len(seed.graph.nodes))))
    everything = frozenset(place for place, fixed in enumerate(operators.fixed) if not fixed)
    for place in sorted(everything, reverse=True):
        members = everything - {place}
        if members and operators.closed(members) == members and _connected(members, operators):
            smaller = operators.cut(operators.with_constants(members), seed.source)
            if smaller is not None:
                yield smaller


def _types(seed: Seed) -> dict[str, TensorType]:
    inputs = {info.name: info.type for info in seed.graph.inputs if isinstance(info.type, TensorType)}
    return {**seed.types, **inputs}


def _connected(members: frozenset[int], operators: Operators) -> bool:
    """Tell whether the operators are connected by tensors other than constants."""
    seen: set[int] = set()
    waiting = [min(members)]
    while waiting:
        place = waiting.pop()
        if place in members and place not in seen:
            seen.add(place)
            waiting += [*operators.before[place], *operators.after[place], *operators.beside[place]]
    return seen == members


def case_of(seed: Seed, rng: random.Random) -> Case:
    """Return the program of a seed with one feed, drawn from the observed ranges of its inputs."""
    program = to_program(Model(seed.graph, {"": seed.opset}, (), ir_version_of(seed.opset)))
    feed = tuple(_fed(seed, info.name, info.type, rng) for info in seed.graph.inputs)
    return Case(program, (feed,), {"source": seed.source})


def _fed(seed: Seed, name: str, kind: object, rng: random.Random) -> Tensor:
    assert isinstance(kind, TensorType)
    if name in seed.pinned:
        return seed.pinned[name]
    usual = _UNSEEN if kind.dtype.startswith(("float", "bfloat")) else _UNSEEN_WHOLE
    shape = tuple(int(size) for size in kind.shape or () if isinstance(size, int))
    return Tensor(kind.dtype, draw(rng, kind.dtype, shape, seed.ranges.get(name, usual)))


def with_ranges(seed: Seed, whole: Whole) -> Seed:
    """Return `seed` with the ranges of its inputs in `whole`, the observed model that it was cut from.

    Inputs whose sizes in that run differ get no range.
    """
    inputs = {info.name: info.type for info in seed.graph.inputs}
    if any(whole.types.get(name) != kind for name, kind in inputs.items()):
        return seed
    pinned = {name: whole.fixed[name] for name in inputs if name in whole.fixed}
    if len(pinned) == len(inputs):
        return seed  # there would be no hole
    ranges = {name: whole.ranges[name] for name in inputs if name in whole.ranges and name not in pinned}
    return replace(seed, ranges=ranges, pinned=pinned)
