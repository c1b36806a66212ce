"""Operator instances as seeds of generation: an operator with the parameters of a library test, in a generated graph.

Library tests have parameters that no sampler draws; generated graphs have neighbours that no library test has.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from miscompile.base.dtypes import DTYPES
from miscompile.base.errors import MiscompileError, RejectedDraft, UsageError
from miscompile.base.wording import counted
from miscompile.core.events import ProgressListener
from miscompile.core.tensor import Tensor
from miscompile.graph.model import TensorType
from miscompile.harvest.libraries.sources import instances_of
from miscompile.instances.archive import distinct
from miscompile.instances.instance import Instance
from miscompile.ops.seed import Seed
from miscompile.ops.values import Range
from miscompile.producers.instances.onnx_model import to_model
from miscompile.producers.slices.collection import Collection

MOST = 2000
"""Seeds of one campaign."""
_ELEMENTS = 1 << 14


def grafts(archives: Sequence[Path], seed: int, on_progress: ProgressListener) -> Collection:
    """Return seeds made of the ONNX instances in `archives`, at most `MOST`, evenly over the operators.

    Raises UsageError when there are none.
    """
    instances = list(distinct(instances_of("onnx", archives, on_progress)))
    left: Counter[str] = Counter()
    seeds = tuple(seeds_from(instances, random.Random(seed), left))
    if not seeds:
        raise UsageError(f"none of the {len(instances)} instances can stand in a graph")
    notes = tuple(f"{counted(count, 'instance')} left out: {reason}" for reason, count in left.most_common(5))
    return Collection(seeds, len(instances), (), notes)


def seeds_from(instances: Iterable[Instance], rng: random.Random, left: "Counter[str]") -> list[Seed]:
    """Return at most `MOST` seeds, round robin over the operators; `left` counts the reasons for omitted instances."""
    by_operator: defaultdict[str, list[Instance]] = defaultdict(list)
    for instance in instances:
        by_operator[instance.api].append(instance)
    for group in by_operator.values():
        rng.shuffle(group)
    found: list[Seed] = []
    while by_operator and len(found) < MOST:
        for name in sorted(by_operator):
            made = _next(by_operator[name], left)
            if made is None:
                del by_operator[name]
            elif len(found) < MOST:
                found.append(made)
    return found


def _next(group: list[Instance], left: "Counter[str]") -> Seed | None:
    """Take instances from the end of `group` until one makes a seed; None when it is empty."""
    while group:
        instance = group.pop()
        try:
            return seed_of(instance)
        except RejectedDraft as error:
            left[str(error)] += 1
        except MiscompileError:
            left["no model comes of it"] += 1
    return None


def seed_of(instance: Instance) -> Seed:
    """Return the seed of one node: float operands keep the range of the test, all others keep its elements.

    Raises RejectedDraft when the instance does not fit a graph of dense tensors with fixed sizes, ModelError when no
    model can be made of it.
    """
    if "." in instance.api:
        raise RejectedDraft("an operator of another domain")
    model, feed = to_model(instance, "known")
    infos = (*model.graph.inputs, *model.graph.outputs)
    if len(model.graph.nodes) != 1 or not all(_fixed(info.type) for info in infos):
        raise RejectedDraft("sizes that are not known before it runs, or no dense tensors")
    if any(value.array.size > _ELEMENTS for value in (*feed, *model.graph.initializers.values())):
        raise RejectedDraft("large tensors")
    named = {info.name: value for info, value in zip(model.graph.inputs, feed, strict=True)}
    spans = {name: span for name, value in named.items() if (span := _span(value)) is not None}
    pinned = {name: value for name, value in named.items() if DTYPES[value.dtype].kind in ("int", "uint", "string")}
    return Seed(instance.origin or instance.api, model.graph, instance.version, spans, pinned)


def _fixed(kind: object) -> bool:
    return isinstance(kind, TensorType) and kind.static and kind.dtype != "string"


def _span(value: Tensor) -> Range | None:
    """Return the range of a float tensor's elements; None for others. Raises RejectedDraft for NaN and infinity."""
    if DTYPES[value.dtype].kind != "float" or not value.array.size:
        return None
    numbers = np.asarray(value.numbers(), np.float64)
    if not np.isfinite(numbers).all():
        raise RejectedDraft("elements that are not finite")
    return Range(float(numbers.min()), float(numbers.max()), bool((numbers == np.floor(numbers)).all()))
