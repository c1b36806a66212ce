"""What can be done with one stored finding after its campaign: reduce, bisect, replay; and the support matrix."""

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from miscompile.base.dtypes import PLAIN
from miscompile.base.errors import UsageError
from miscompile.base.rng import stream
from miscompile.campaign.clerk import triage
from miscompile.campaign.lead import probe_support
from miscompile.campaign.plan import Plan
from miscompile.campaign.suspicion import stored_pair
from miscompile.campaign.wiring import make_pool
from miscompile.core.verdict import Holds, Inconclusive, Needs, Violated
from miscompile.findings.folder import Stored
from miscompile.findings.store import Store
from miscompile.ops.registry import specs
from miscompile.targets.registry import parse_target
from miscompile.triage.bisect import culprits
from miscompile.triage.examine import examine_fully
from miscompile.triage.reduce.engine import Budget


def reduce(out: Path, identifier: str, seconds: float) -> None:
    """Triage a finding anew, with `seconds` for its reduction, and store the result.

    Raises StoreError when there is no such finding.
    """
    with Store.open(out) as store:
        stored = store.load(identifier)
        plan = plan_of(store, stored)
        deadline = time.monotonic() + seconds
        with make_pool(plan) as pool:
            done = triage(restated(stored), plan, pool, Budget(expired=lambda: time.monotonic() > deadline))
        store.update(done.stored)
        for slip in done.slips:
            store.add_pending(slip)


def bisect(out: Path, identifier: str) -> None:
    """Find the culprit passes of a finding again and store them. Raises StoreError when there is no such finding."""
    with Store.open(out) as store:
        stored = store.load(identifier)
        plan = plan_of(store, stored)
        about = parse_target(plan.target).about
        case = stored.finding.case
        with make_pool(plan) as pool:
            rng = stream(plan.seed, "bisect", case.program.digest)
            guilty = culprits(case, stored_pair(stored, plan.compare), pool, about.passes, about.twins, rng)
        held = stored.finding.property
        signature = replace(held.signature, culprits=guilty, text="" if guilty else held.signature.text)
        store.update(replace(stored, finding=replace(stored.finding, property=replace(held, signature=signature))))


def replay(out: Path, identifier: str) -> tuple[bool, str]:
    """Run a finding's case again under its builds; return whether the violation shows, and a line on what was seen."""
    with Store.open(out, create=False) as store:
        stored = store.load(identifier)
        plan = plan_of(store, stored)
    with make_pool(plan) as pool:
        seen = examine_fully(stored.finding.case, stored_pair(stored, plan.compare), pool, stream(plan.seed, "replay"))
    match seen.verdict:
        case Violated(evidence):
            return True, evidence.message
        case Holds(note):
            return False, note or "both builds agree"
        case Inconclusive(reason):
            return False, f"nothing can be said: {reason}"
        case Needs():
            raise AssertionError("an examination never ends with Needs")


def matrix(target: str) -> Mapping[str, Mapping[str, bool]]:
    """Return operator -> dtype -> whether `target` takes it in some form, by probing (cached)."""
    pairs = probe_support(Plan(target)).pairs
    return {op: {dtype: (op, dtype) in pairs for dtype in PLAIN} for op in sorted(specs())}


def plan_of(store: Store, stored: Stored) -> Plan:
    """Return the plan of the finding's campaign. Raises UsageError when the finding names another target."""
    campaign = store.campaign()
    plan = Plan(stored.finding.property.target, out=store.path)
    if campaign is None:
        return plan
    if campaign.target != plan.target:
        raise UsageError(f"finding {stored.finding.identifier} is of {plan.target}, its campaign of {campaign.target}")
    return replace(plan.resumed(campaign.options, ()), seed=campaign.seed)


def restated(stored: Stored) -> Stored:
    """Return a finding as it was before triage, so that triage can begin anew."""
    original = stored.original or stored.finding.case
    return replace(stored, finding=replace(stored.finding, case=original), status="pending", original=None)
