"""Operations on one stored finding after its campaign: reduce, bisect, releases, replay; and the support matrix."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from miscompile.base.dtypes import PLAIN
from miscompile.base.errors import ExecutionError, NothingTested, UsageError
from miscompile.base.rng import stream
from miscompile.base.specs import parse_spec
from miscompile.base.wording import counted
from miscompile.core.events import ProgressListener, WorkPhase, WorkPhaseListener
from miscompile.core.examination import examine
from miscompile.core.finding import Finding
from miscompile.core.verdict import Holds, Inconclusive, Needs, Violated
from miscompile.engine.coordinator import probe_support
from miscompile.engine.plan import Plan
from miscompile.engine.releases import History, first_release
from miscompile.engine.wiring import triage_settings
from miscompile.environments import cache
from miscompile.execution.limits import Limits
from miscompile.findings.encode import against_of, builds_of
from miscompile.findings.folder import Stored
from miscompile.findings.store import Store, record_of
from miscompile.ops.registry import specs
from miscompile.oracles import library, memory
from miscompile.targets.registry import compiler_of, parse_target, settled_transform
from miscompile.triage.attribution import stored_property
from miscompile.triage.bisect import culprits
from miscompile.triage.queue import TriageQueue
from miscompile.triage.settings import TriageSettings
from miscompile.triage.signature import blamed

_TURN = 0.05
_FRONT_END = (library.ORACLE, "migration")
"""Oracles whose findings keep the signature of a conversion function."""
_MIGRATED_SECONDS, _MIGRATED_MEMORY = 60.0, 8 << 30
"""Limits of a run of a migrated finding, in seconds and bytes: libraries and exporters need memory as well."""


def reduce(out: Path, identifier: str, seconds: float, on_phase: WorkPhaseListener) -> Stored | None:
    """Triage a finding anew, with `seconds` for its reduction, store the result and return it.

    Returns None when it proved to be the bug of another finding, which now counts it. Raises StoreError when there is
    no such finding, ExecutionError when triage failed.
    """
    with Store.open(out) as store:
        stored = store.load(identifier)
        queue = TriageQueue(replace(settings_of(store, stored), seconds=seconds))
        try:
            queue.submit(identifier)
            while not (answers := queue.collect()):
                on_phase(WorkPhase(f"reducing {identifier}", detail=queue.doing.removeprefix(f"{identifier}: ")))
                time.sleep(_TURN)
        finally:
            queue.close()
        (answer,) = answers
        if answer.problem:
            raise ExecutionError(answer.problem)
        settled = store.settle(identifier)
        for name in answer.slippages:
            found = store.load(name)
            store.register(record_of(found), found.finding.property.signature)
        return settled


def bisect(out: Path, identifier: str, on_phase: WorkPhaseListener) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Find the culprit passes of a finding again and store them; return those before and those now.

    Raises StoreError when there is no such finding."""
    with Store.open(out) as store:
        stored = store.load(identifier)
        settings = settings_of(store, stored)
        held, case = stored_property(stored, settings.context), stored.finding.case
        about = parse_target(held.target).about
        with settings.pool() as pool:
            on_phase(WorkPhase(f"{identifier}: switching {counted(len(about.passes), 'pass')} off, by halves"))
            rng = stream(settings.seed, "bisect", case.program.digest)
            guilty = blamed(culprits(case, held, pool, about.passes, about.twins, rng), held.faulty)
        found = _blaming(stored, guilty)
        store.update(found)
        return blamed_passes(stored), blamed_passes(found)


def blamed_passes(stored: Stored) -> tuple[str, ...]:
    """Return the passes that a finding blames; a front end's finding has them beside its conversion function."""
    facts, signature = stored.finding.facts, stored.finding.property.signature
    front_end = parse_spec(stored.finding.property.oracle).name in _FRONT_END
    return tuple(facts.get("passes", ())) if front_end else signature.culprits


def _blaming(stored: Stored, guilty: tuple[str, ...]) -> Stored:
    """Return the finding with these culprits; a front end's finding keeps the signature of its conversion function."""
    finding = stored.finding
    if parse_spec(finding.property.oracle).name in _FRONT_END:
        return replace(stored, finding=replace(finding, facts={**finding.facts, "passes": list(guilty)}))
    signature = finding.property.signature
    signature = replace(signature, culprits=guilty, text=_text(finding) if guilty else signature.text)
    return replace(stored, finding=replace(finding, property=replace(finding.property, signature=signature)))


def _text(finding: Finding) -> str:
    """Return what tells errors of the same passes apart, as `signature_of` has it: the message without the setting."""
    signature, predicate = finding.property.signature, finding.facts.get("predicate")
    if signature.kind != "exception" or finding.facts.get("rule") == memory.RULE:
        return ""
    return str(predicate["message"]) if isinstance(predicate, Mapping) and "message" in predicate else signature.text


def releases(
    out: Path, identifiers: Sequence[str], keep: bool, on_progress: ProgressListener
) -> Iterator[tuple[str, History | str]]:
    """Find the first release of the compiler that shows each finding, and store it among the finding's facts.

    Yields the identifier with the history, or with the reason why there is none. Several findings share the new
    environments, which are removed at the end unless `keep`; those for a single finding are removed one by one. Raises
    StoreError when there is no such finding.
    """
    with Store.open(out, create=False) as store:
        found = [store.load(identifier) for identifier in identifiers]
    before = {one.name for one in cache.environments()}
    try:
        for stored in found:
            try:
                history = _history(stored, keep or len(found) > 1, on_progress)
            except UsageError as error:
                yield stored.finding.identifier, str(error)
                continue
            facts = {**stored.finding.facts, "releases": history.as_json()}
            with Store.open(out) as store:
                store.update(replace(stored, finding=replace(stored.finding, facts=facts)))
            yield stored.finding.identifier, history
    finally:
        made = [one.name for one in cache.environments() if one.name not in before]
        for name in [] if keep else made:
            cache.remove(name, on_progress)


def _history(stored: Stored, keep: bool, on_progress: ProgressListener) -> History:
    """Search the releases for one finding. Raises UsageError when it has no script, or nothing can be said."""
    if not stored.script:
        raise UsageError("it has no script that releases could run; `miscompile reduce` writes one")
    held, boundary = stored.finding.property, stored.finding.facts.get("boundary") or {}
    version = dict(stored.versions).get(compiler_of(parse_target(held.target).about) or "", "")
    opsets = tuple(int(one) for one in boundary.get("opset", {}).get("shows", ()))
    return first_release(
        held.target, version, held.signature.kind, stored.script, opsets=opsets, keep=keep, on_progress=on_progress
    )


def replay(out: Path, identifier: str) -> tuple[bool, str]:
    """Run a finding's case again under its builds; return whether the violation shows, and a line on the verdict.

    Raises NothingTested when the runs allow no verdict.
    """
    with Store.open(out, create=False) as store:
        stored = store.load(identifier)
        settings = settings_of(store, stored)
    held = stored_property(stored, settings.context)
    with settings.pool() as pool:
        seen = examine(stored.finding.case, held, pool, stream(settings.seed, "replay"))
    match seen.verdict:
        case Violated(evidence):
            return True, evidence.message
        case Holds(note):
            return False, note or "both builds agree"
        case Inconclusive(reason):
            raise NothingTested(f"{identifier}: nothing can be said: {reason}")
        case Needs():
            raise AssertionError("an examination never ends with Needs")


def matrix(target: str, on_phase: WorkPhaseListener) -> Mapping[str, Mapping[str, bool]]:
    """Return operator -> dtype -> whether `target` accepts it in some form, by probing (cached)."""
    pairs = probe_support(Plan(target), target, on_phase).pairs
    return {op: {dtype: (op, dtype) in pairs for dtype in PLAIN} for op in sorted(specs())}


def settings_of(store: Store, stored: Stored) -> TriageSettings:
    """Return the settings under which a stored finding is triaged, replayed or bisected: those of its campaign.

    Raises UsageError when the finding names another target, or when a file that its program needs is absent or changed.
    """
    campaign = store.campaign_of(stored.finding.identifier)
    target = stored.finding.property.target
    options = {} if campaign is None else dict(campaign.options)
    if options.get("migration"):
        return _settings_of_migration(store, stored, options, campaign.seed if campaign else 0)
    transform = builds_of(stored.finding.facts)[0].transform
    if transform is not None:
        settled_transform(target, transform)
    if campaign is None:
        other = against_of(stored.finding.facts)
        return triage_settings(Plan(target, (other,) if other else (), out=store.path))
    targets = campaign.target.split(" ")
    if target not in targets:
        raise UsageError(f"finding {stored.finding.identifier} is of {target}, its campaign of {campaign.target}")
    plan = Plan(targets[0], tuple(targets[1:]), out=store.path)
    return triage_settings(replace(plan.resumed(options, ()), seed=campaign.seed))


def _settings_of_migration(store: Store, stored: Stored, options: Mapping[str, Any], seed: int) -> TriageSettings:
    limits = Limits(seconds=_MIGRATED_SECONDS, memory=_MIGRATED_MEMORY)
    return TriageSettings(store.path, (stored.finding.property.target,), seed, options["compare"], limits)
