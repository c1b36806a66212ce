"""Whole programs that passes fire on, for the ablation of patterns: generated ones and onnx's node cases, or pairs.

Each comes as a seed: a graph with fixed sizes, and what is known of its inputs.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import TypeVar

from miscompile.base.errors import MiscompileError, RejectedDraft, UsageError
from miscompile.base.rng import stream
from miscompile.core.case import Case
from miscompile.core.outcome import Values
from miscompile.core.ports import Runner
from miscompile.core.run import Build, Run
from miscompile.graph.model import TensorType
from miscompile.graph.read import load
from miscompile.harvest.patterns.fragment import seed_of
from miscompile.harvest.patterns.pairs import LINES, Pair, read_record
from miscompile.harvest.patterns.pass_miner import origin_of
from miscompile.harvest.patterns.pieces import inferred, watched
from miscompile.ops.seed import Seed
from miscompile.ops.support import Support
from miscompile.patterns.extract import Operators, PieceSizes, Whole
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.slices.binding import normalised
from miscompile.producers.slices.node_cases import node_cases
from miscompile.producers.strict import Strict
from miscompile.producers.synthesis.host import seed_of as seed_from

_Item = TypeVar("_Item")

_BATCH = 32
_SECONDS = 20.0
"""How long the model of a pair may take to be observed."""


def pairs_in(path: Path) -> list[Pair]:
    """Return the pairs that `miscompile harvest --keep` left at `path`: a file of records, or a folder with some.

    Raises UsageError when there is none, StoreError for a record that is damaged.
    """
    files = [path] if path.is_file() else sorted(path.rglob(LINES))
    found = [pair for file in files for pair in read_record(file.parent).pairs]
    if not found:
        raise UsageError(f"there are no pairs at {path}; `miscompile harvest ... --keep DIR` leaves some in DIR")
    return found


def harvested(pairs: Sequence[Pair], seed: int) -> Iterator[Seed]:
    """Yield the models of `pairs`, each file once; models that cannot be observed as a whole are skipped."""
    for path, origin in {pair.model: pair.test for pair in pairs}.items():
        with suppress(MiscompileError, ValueError):  # protobuf's own limits are bare ValueErrors
            model = normalised(load(path))
            whole = inferred(model, origin) or watched(model, origin, stream(seed, "bench", "pair", origin), _SECONDS)
            found = entire(whole)
            if found is not None:
                yield found


def entire(whole: Whole) -> Seed | None:
    """Return all of a graph as one seed; None when some of it cannot stand in one."""
    places = frozenset(range(len(whole.graph.nodes)))
    operators = Operators(whole, PieceSizes(1, max(1, len(places))))
    return operators.cut(places, whole.name) if places and all(operators.fit) else None


def made(
    target: str, runner: Runner, support: Support, opsets: tuple[int, ...], count: int, seed: int, more: Sequence[Case]
) -> Iterator[Seed]:
    """Yield `count` generated programs, then those in `more`: as far as `target` builds and runs them."""
    strict = Strict(GeneratorOptions(opsets=opsets, control=0.0, containers=0.0, spread=0.0, variants=1), support)
    for cases in batches(chain(islice(_generated(strict, seed), count), more), _BATCH):
        yield from _ran(cases, target, runner)


def node_programs() -> list[Case]:
    """Return the node cases of onnx that a seed can hold."""
    return [item.case for item in node_cases() if item.case is not None and not item.random]


def _generated(strict: Strict, seed: int) -> Iterator[Case]:
    number = 0
    while True:
        yield strict.propose(stream(seed, "bench", "programs", number))
        number += 1


def batches(items: Iterable[_Item], size: int) -> Iterator[list[_Item]]:
    """Yield `items` in lists of `size`, the last of which may be shorter."""
    source = iter(items)
    while batch := list(islice(source, size)):
        yield batch


def _ran(cases: Sequence[Case], target: str, runner: Runner) -> Iterator[Seed]:
    outcomes = runner.run([Run(case, target, Build("full"), "probe") for case in cases])
    for case, outcome in zip(cases, outcomes, strict=True):
        if isinstance(outcome, Values):
            found = seed_of(case, outcome, origin_of(case))
            if found is not None and found.graph.nodes:
                yield found


def plain_graphs(support: Support, opsets: tuple[int, ...], seed: int) -> Iterator[Whole]:
    """Yield generated graphs without motifs and no-ops, without end; nobody has written them for a pass."""
    generator_options = GeneratorOptions(
        nodes=20, opsets=opsets, motifs=0.0, noops=0.0, control=0.0, containers=0.0, spread=0.0
    )
    strict, number = Strict(generator_options, support), 0
    while True:
        number += 1
        with suppress(RejectedDraft):
            scope, outputs, _ = strict.grow(stream(seed, "bench", "random", number))
            yield whole_of(seed_from(scope, outputs, f"random graph {number}"))


def whole_of(seed: Seed) -> Whole:
    """Return a seed as a graph to be cut."""
    inputs = {info.name: info.type for info in seed.graph.inputs if isinstance(info.type, TensorType)}
    return Whole(seed.source, seed.graph, seed.opset, {**seed.types, **inputs}, seed.ranges, seed.pinned)
