"""What can be done with one stored finding after its campaign: reduce, bisect, replay; and the support matrix."""

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from miscompile.base.dtypes import PLAIN
from miscompile.base.errors import StoreError, UsageError
from miscompile.base.progress import ProgressListener
from miscompile.base.rng import stream
from miscompile.core.examination import examine
from miscompile.core.verdict import Holds, Inconclusive, Needs, Violated
from miscompile.engine.coordinator import probe_support
from miscompile.engine.plan import Plan
from miscompile.engine.releases import History, first_release
from miscompile.engine.wiring import make_pool
from miscompile.findings.encode import against_of, builds_of
from miscompile.findings.folder import Stored
from miscompile.findings.store import Store
from miscompile.ops.registry import specs
from miscompile.targets.registry import compiler_of, parse_target, settled_form
from miscompile.triage.attribution import stored_pair
from miscompile.triage.bisect import culprits
from miscompile.triage.reduce.engine import Budget
from miscompile.triage.signature import blamed
from miscompile.triage.worker import triage


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
        for slip in done.slippages:
            store.add_pending(slip)


def bisect(out: Path, identifier: str) -> None:
    """Find the culprit passes of a finding again and store them. Raises StoreError when there is no such finding."""
    with Store.open(out) as store:
        stored = store.load(identifier)
        plan = plan_of(store, stored)
        about = parse_target(stored.finding.property.target).about
        case = stored.finding.case
        with make_pool(plan) as pool:
            rng = stream(plan.seed, "bisect", case.program.digest)
            pair = stored_pair(stored, plan.compare)
            guilty = blamed(culprits(case, pair, pool, about.passes, about.twins, rng), pair.faulty)
        held = stored.finding.property
        signature = replace(held.signature, culprits=guilty, text="" if guilty else held.signature.text)
        store.update(replace(stored, finding=replace(stored.finding, property=replace(held, signature=signature))))


def releases(out: Path, identifier: str, keep: bool, say: ProgressListener) -> History:
    """Find the first release of the compiler that shows a finding, and store it among the finding's facts.

    Environments that are made for it are removed again unless `keep`. Raises StoreError when there is no such finding
    or it has no script, UsageError when the releases cannot be listed or the bug no longer shows where it was found.
    """
    with Store.open(out, create=False) as store:
        stored = store.load(identifier)
    if not stored.script:
        raise StoreError(f"finding {identifier} has no script that releases could run; `miscompile reduce` writes one")
    held = stored.finding.property
    version = dict(stored.versions).get(compiler_of(parse_target(held.target).about) or "", "")
    history = first_release(held.target, version, held.signature.kind, stored.script, keep=keep, say=say)
    facts = {**stored.finding.facts, "releases": history.as_json()}
    with Store.open(out) as store:
        store.update(replace(stored, finding=replace(stored.finding, facts=facts)))
    return history


def replay(out: Path, identifier: str) -> tuple[bool, str]:
    """Run a finding's case again under its builds; return whether the violation shows, and a line on what was seen."""
    with Store.open(out, create=False) as store:
        stored = store.load(identifier)
        plan = plan_of(store, stored)
    with make_pool(plan) as pool:
        seen = examine(stored.finding.case, stored_pair(stored, plan.compare), pool, stream(plan.seed, "replay"))
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
    pairs = probe_support(Plan(target), target).pairs
    return {op: {dtype: (op, dtype) in pairs for dtype in PLAIN} for op in sorted(specs())}


def plan_of(store: Store, stored: Stored) -> Plan:
    """Return the plan of the finding's campaign.

    Raises UsageError when the finding names another target, or when what its program is made of has gone or changed.
    """
    campaign = store.campaign()
    target = stored.finding.property.target
    if campaign is None or not campaign.options.get("migration"):
        settled_form(target, builds_of(stored.finding.facts)[0].form)
    if campaign is None:
        other = against_of(stored.finding.facts)
        return Plan(target, (other,) if other else (), out=store.path)
    if campaign.options.get("migration"):
        raise UsageError(
            f"finding {stored.finding.identifier} is of a migration, a single operator: its script shows it "
            f"(`miscompile repro {store.path} {stored.finding.identifier}`); there is nothing to reduce or bisect"
        )
    targets = campaign.target.split(" ")
    if target not in targets:
        raise UsageError(f"finding {stored.finding.identifier} is of {target}, its campaign of {campaign.target}")
    plan = Plan(targets[0], tuple(targets[1:]), out=store.path)
    return replace(plan.resumed(campaign.options, ()), seed=campaign.seed)


def restated(stored: Stored) -> Stored:
    """Return a finding as it was before triage, so that triage can begin anew."""
    original = stored.original or stored.finding.case
    return replace(stored, finding=replace(stored.finding, case=original), status="pending", original=None)
