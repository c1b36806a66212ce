"""The seeds of a campaign: cut from the user's models when it starts, then the same for every lane and session."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from miscompile.base.errors import UsageError
from miscompile.campaign.plan import Plan
from miscompile.corpus.collection import INDEX, Collection, collect, keep, kept, models_below
from miscompile.corpus.slices import Cut

FOLDER = "slices"
"""Where a campaign keeps its slices, below its folder."""


def wants_seeds(plan: Plan) -> bool:
    """Tell whether a campaign uses slices of models."""
    return plan.seed_models is not None or (plan.model is not None and plan.slices)


def seeds_of(plan: Plan, say: Callable[[str], None] | None = None) -> Collection:
    """Return the slices that the campaign keeps, or cut them where it keeps none yet; `say` hears of the cutting.

    Raises UsageError when no model in a folder can be used, and StoreError when what is kept is damaged.
    """
    place = plan.out / FOLDER
    if (place / INDEX).exists():
        return kept(place)
    cut = Cut(*plan.slice_nodes)
    if plan.seed_models is not None:
        return collect(models_below(Path(plan.seed_models)), cut, plan.seed, say=say)
    try:
        return collect([Path(plan.model or "")], cut, plan.seed, say=say)
    except UsageError as error:
        return Collection((), 0, (str(error),))  # the model as a whole is tested all the same


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
