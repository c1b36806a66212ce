"""The seeds of a campaign: slices of the user's models, and operators with the parameters of library tests.

They are made when the campaign starts, and are the same for every lane and session.
"""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from miscompile.base.errors import UsageError
from miscompile.core.events import ProgressListener
from miscompile.engine.grafts import grafts
from miscompile.engine.plan import Plan
from miscompile.harvest.models.cache import seeds_of_corpus, stored_slices
from miscompile.producers.slices.collection import INDEX, Collection, collect, keep, kept, models_below
from miscompile.producers.slices.slices import SliceLimits

FOLDER = "slices"
"""The subfolder of a campaign with its slices."""

OWN = "onnx"
"""The name of the instances of onnx's own tests, in place of an archive."""


def wants_seeds(plan: Plan) -> bool:
    """Tell whether a campaign uses slices of models or instances of operators, or the inputs that a model fits."""
    return plan.has_seeds or plan.model is not None


def seeds_of(plan: Plan, on_progress: ProgressListener | None = None, seconds: float | None = None) -> Collection:
    """Return the stored slices of the campaign, or cut them if there are none.

    `on_progress` receives lines of progress. `seconds` is the time for cutting the user's model (None: no limit): the
    campaign tests the model as a whole without any slice. Raises UsageError when no model in a folder can be used, and
    StoreError when the stored slices are damaged.
    """
    place = plan.own / FOLDER
    if (place / INDEX).exists():
        return kept(place)
    cut = SliceLimits(*plan.slice_nodes)
    if plan.has_seeds:
        return _together(list(_named(plan, cut, on_progress)))
    there = stored_slices(Path(plan.model or ""), cut)
    if there is not None:
        return there
    if seconds is not None and seconds <= 0:
        return Collection((), 0, ("there is no time to cut the model into slices; it is tested as a whole",))
    observing, end = 60.0, math.inf
    if seconds is not None:
        observing, end = min(observing, seconds / 2), time.monotonic() + seconds
    try:
        return collect([Path(plan.model or "")], cut, plan.seed, observing, on_progress, end)
    except UsageError as error:
        return Collection((), 0, (str(error),))  # the model as a whole is tested anyway


def _named(plan: Plan, cut: SliceLimits, on_progress: ProgressListener | None) -> Iterator[Collection]:
    """Yield the collections of a campaign: slices of models, instances in an archive or of onnx's own tests, slices of
    the corpus.
    """
    if plan.seed_models is not None:
        yield collect(models_below(Path(plan.seed_models)), cut, plan.seed, on_progress=on_progress)
    if plan.instances is not None:
        archives = () if plan.instances == OWN else (Path(plan.instances),)
        yield grafts(archives, plan.seed, on_progress or (lambda _: None))
    if plan.corpus:
        yield seeds_of_corpus(plan.corpus, cut, plan.seed, on_progress)


def _together(parts: Sequence[Collection]) -> Collection:
    return Collection(
        tuple(seed for part in parts for seed in part.seeds),
        sum(part.models for part in parts),
        tuple(line for part in parts for line in part.skipped),
        tuple(line for part in parts for line in part.notes),
    )


def in_own_opset(plan: Plan, collection: Collection) -> Plan:
    """Return the plan for a user's model with the opset of its slices, so that no other opset is probed."""
    if plan.model is None or plan.opset is not None or not collection.seeds:
        return plan
    opset = collection.seeds[0].opset
    return replace(plan, opset=opset) if opset in plan.opsets else plan


def keep_seeds(plan: Plan, collection: Collection) -> None:
    """Store the slices with the campaign, so that every lane uses the same ones. Raises StoreError."""
    if not (plan.own / FOLDER / INDEX).exists():
        keep(collection, plan.own / FOLDER)
