"""The seeds of a campaign: slices of the user's models, and operators with the parameters of library tests.

They are made when it starts, and then the same for every lane and session.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from miscompile.base.errors import UsageError
from miscompile.engine.grafts import grafts
from miscompile.engine.plan import Plan
from miscompile.producers.slices.collection import INDEX, Collection, collect, keep, kept, models_below
from miscompile.producers.slices.slices import SliceLimits

FOLDER = "slices"
"""Where a campaign keeps its slices, below its folder."""

OWN = "onnx"
"""Stands for the instances of onnx's own tests, in place of an archive."""


def wants_seeds(plan: Plan) -> bool:
    """Tell whether a campaign uses slices of models or instances of operators."""
    return plan.has_seeds or (plan.model is not None and plan.slices)


def seeds_of(plan: Plan, say: Callable[[str], None] | None = None) -> Collection:
    """Return the slices that the campaign keeps, or cut them where it keeps none yet; `say` hears of the cutting.

    Raises UsageError when no model in a folder can be used, and StoreError when what is kept is damaged.
    """
    place = plan.out / FOLDER
    if (place / INDEX).exists():
        return kept(place)
    cut = SliceLimits(*plan.slice_nodes)
    if plan.has_seeds:
        return _together(list(_named(plan, cut, say)))
    try:
        return collect([Path(plan.model or "")], cut, plan.seed, say=say)
    except UsageError as error:
        return Collection((), 0, (str(error),))  # the model as a whole is tested all the same


def _named(plan: Plan, cut: SliceLimits, say: Callable[[str], None] | None) -> Iterator[Collection]:
    """Yield what the user names: slices of models, instances in an archive or of onnx's own tests."""
    if plan.seed_models is not None:
        yield collect(models_below(Path(plan.seed_models)), cut, plan.seed, say=say)
    if plan.instances is not None:
        archives = () if plan.instances == OWN else (Path(plan.instances),)
        yield grafts(archives, plan.seed, say or _say_nothing)


def _together(parts: Sequence[Collection]) -> Collection:
    return Collection(
        tuple(seed for part in parts for seed in part.seeds),
        sum(part.models for part in parts),
        tuple(line for part in parts for line in part.skipped),
        tuple(line for part in parts for line in part.notes),
    )


def _say_nothing(text: str) -> None:
    """Say nothing."""


def in_own_opset(plan: Plan, collection: Collection) -> Plan:
    """Return the plan for a user's model with the opset of its slices: a compiler need not be asked about others."""
    if plan.model is None or plan.opset is not None or not collection.seeds:
        return plan
    opset = collection.seeds[0].opset
    return replace(plan, opset=opset) if opset in plan.opsets else plan


def keep_seeds(plan: Plan, collection: Collection) -> None:
    """Keep the slices with the campaign, so that every lane has the same ones. Raises StoreError."""
    if not (plan.out / FOLDER / INDEX).exists():
        keep(collection, plan.out / FOLDER)
