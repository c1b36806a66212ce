"""A campaign and its ledger: which of its findings are known bugs, which are regressions, and which are new.

The coordinator asks after triage. An entry stands for a bug if it has the finding's signature, or if its predicate
matches the finding. Bugs of the ledger are also steered past from the start of the campaign, as its own are.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from miscompile import __version__
from miscompile.base.errors import ModelError, StoreError
from miscompile.base.versions import is_version
from miscompile.core.finding import Signature
from miscompile.environments.resolve import versions_of
from miscompile.findings.encode import builds_of
from miscompile.findings.folder import REPEATED, FindingStatus, Stored
from miscompile.findings.ledger import Ledger
from miscompile.findings.ledger_entry import LedgerEntry, key_of, of_all_releases, reaches, utc_now
from miscompile.findings.store import Campaign, Store
from miscompile.graph.read import read
from miscompile.targets.registry import compiler_of, parse_target
from miscompile.triage.predicate import Described, described, predicate_from, told_apart
from miscompile.triage.recognition import SignedPredicate, with_variant
from miscompile.triage.signature import similar

ENTERED = "ledger"
"""The fact of a finding that the ledger knows: the signature of its entry."""

REGRESSION = "regression"
"""The fact of a finding that is a regression: an object with `fixed_in`, `release` and `link`."""


def release_under_test(target: str) -> str:
    """Return the version of a target's compiler where it runs; that of this package for a target that is part of it.

    Raises UsageError when it is not installed.
    """
    compiler = compiler_of(parse_target(target).about)
    return __version__ if compiler is None else versions_of(target)[compiler]


def release_of(stored: Stored) -> str:
    """Return the release that a finding was found in; an empty text when it is not noted."""
    compiler = compiler_of(parse_target(stored.finding.property.target).about)
    return __version__ if compiler is None else stored.versions.get(compiler, "")


@dataclass(slots=True)
class KnownBugs:
    """The bugs that a campaign's ledger knows. `campaign` is the name of the campaign in the ledger.

    `releases` are the releases under test, by target spec.
    """

    ledger: Ledger
    campaign: str
    releases: Mapping[str, str]
    _unsaved: Counter[tuple[str, str]] = field(default_factory=Counter)

    def steered(self) -> tuple[list[SignedPredicate], list[str]]:
        """Return the bugs that the tests of this campaign steer past, and a line for each damaged predicate.

        A bug that is fixed in the release under test is not among them, because it would be a regression. The
        predicates are those of the entries, for the targets of this campaign.
        """
        bugs: list[SignedPredicate] = []
        problems = []
        for entry in self.ledger.entries():
            if entry.predicate is None:
                continue
            try:
                bugs += self._steered(entry)
            except StoreError as error:
                problems.append(f"{self.ledger.path}: {entry.key}: {error}")
        return bugs, problems

    def _steered(self, entry: LedgerEntry) -> Iterator[SignedPredicate]:
        for target in self._targets_of(entry):
            if self.ledger.root(entry).absorbs(self.releases[target]):
                predicate = replace(predicate_from(entry.predicate or {}), target=target)
                yield SignedPredicate(predicate, replace(entry.signature, target=parse_target(target).release))

    def _targets_of(self, entry: LedgerEntry) -> list[str]:
        """Return the campaign's targets that are releases of the compiler of `entry`."""
        releases = {target: Signature(parse_target(target).release, "wrong", "", (), "") for target in self.releases}
        return [target for target, one in releases.items() if of_all_releases(one).target == entry.signature.target]

    def enter(self, stored: Stored) -> Stored:
        """Hold a triaged finding against the ledger, enter it, and return its new state.

        A look-alike of a known bug gets the status `known` and the fact `known`; a regression stays confirmed and gets
        the fact `regression`. A finding that the ledger tells apart from the entry of its signature gets another
        signature. A finding that is neither confirmed nor known, or was entered before, is returned as it is.
        """
        if stored.status not in REPEATED or ENTERED in stored.finding.facts:
            return stored
        with self.ledger.changing():
            stored, entry = self._entry_of(stored)
            if entry is None:
                entry = new_entry(stored, self.campaign)
                self.ledger.put(entry)
                return _with_facts(stored, stored.status, {ENTERED: entry.key})
            return self._met(stored, entry)

    def _met(self, stored: Stored, entry: LedgerEntry) -> Stored:
        """Return the new state of a finding that `entry` stands for, and update the entries."""
        release, own = release_of(stored), (self.campaign, stored.finding.identifier)
        root = self.ledger.root(entry)
        if entry.predicate is None and entry.state != "duplicate-of":
            self.ledger.change(entry.key, lambda one: replace(one, predicate=stored.finding.facts.get("predicate")))
        if (root.campaign, root.finding) == own:  # the campaign was killed before it noted this in its store
            again = {REGRESSION: _regression(root)} if root.regressed_in else {}
            return _with_facts(stored, stored.status, {ENTERED: entry.key, **again})
        if root.absorbs(release):
            self.ledger.sight(dict.fromkeys({entry.key, root.key}, 1), release)
            return _with_facts(stored, "known", {ENTERED: entry.key, "known": _announcement(root)})
        back = self.ledger.change(root.key, lambda one: one.regressed(release, *own, utc_now()))
        assert back is not None
        status: FindingStatus = "non-default" if stored.status == "non-default" else "confirmed"
        return _with_facts(stored, status, {ENTERED: entry.key, REGRESSION: _regression(back)})

    def _entry_of(self, stored: Stored) -> tuple[Stored, LedgerEntry | None]:
        """Return the entry that a finding belongs to, None for a new bug, and the finding with its final signature."""
        held = stored.finding.property
        entry = self.ledger.get(key_of(held.signature))
        if entry is not None and entry.predicate is not None:
            known = replace(stored, finding=replace(stored.finding, facts={"predicate": entry.predicate}))
            own = told_apart(stored, known)
            if own is not None:
                stored = replace(stored, finding=replace(stored.finding, property=replace(held, signature=own)))
                entry = self.ledger.get(key_of(own))
        return stored, entry or self._matching(stored)

    def _matching(self, stored: Stored) -> LedgerEntry | None:
        """Return the first entry whose predicate matches a finding in symptom, build and program."""
        own = stored.finding.facts.get("predicate")
        if not isinstance(own, Mapping) or stored.finding.case.program.kind != "onnx":
            return None
        target = of_all_releases(stored.finding.property.signature).target
        candidates = [one for one in self.ledger.entries() if one.predicate and one.signature.target == target]
        if not candidates:
            return None
        symptom, build, program = predicate_from(own).symptom, builds_of(stored.finding.facts)[0], _program(stored)
        for entry in candidates:
            predicate = predicate_from(entry.predicate or {})
            if predicate.possible(build) and similar(symptom, predicate.symptom) and predicate.matches(program):
                return entry
        return None

    def outlived(self, stored: Stored) -> bool:
        """Tell whether a finding of an older release is fixed in the release under test, so that it owns no signature.

        A look-alike is then triaged and announced as a regression.
        """
        entry = self.ledger.get(str(stored.finding.facts.get(ENTERED, "")))
        release, found_in = self.releases.get(stored.finding.property.target, ""), release_of(stored)
        if entry is None or not is_version(found_in):
            return False
        root = self.ledger.root(entry)
        return not root.absorbs(release) and not reaches(found_in, root.fixed_in)

    def sighted(self, signature: Signature) -> None:
        """Count a violation that has the signature of a bug; `save` writes the counts."""
        self._unsaved[key_of(signature), self._release_of(signature)] += 1

    def save(self) -> bool:
        """Write the counts of sightings; tell whether another process has changed the ledger meanwhile."""
        by_release: dict[str, dict[str, int]] = {}
        for (key, release), times in self._unsaved.items():
            by_release.setdefault(release, {})[key] = times
        self._unsaved.clear()
        for release, counts in by_release.items():
            for key in self.ledger.sight(counts, release):  # its first finding is still in triage
                self._unsaved[key, release] = counts[key]
        return self.ledger.changed_elsewhere()

    def _release_of(self, signature: Signature) -> str:
        """Return the release under test that a signature's target names."""
        found = (release for name, release in self.releases.items() if parse_target(name).release == signature.target)
        return next(found, "")


def enter_findings(known: KnownBugs, store: Store) -> list[str]:
    """Hold the findings of earlier sessions against the ledger, which may be another one, or have changed.

    Returns a line for each finding that cannot be read.
    """
    problems = []
    for record in store.findings(own=True):
        try:
            stored = store.load(record.identifier)
            fresh = known.enter(stored)
            if fresh.status in REPEATED and known.outlived(fresh):
                fresh = replace(fresh, status="fixed")
        except StoreError as error:
            problems.append(str(error))
        else:
            if fresh != stored:
                store.update(fresh)
    return problems


def without_entry(stored: Stored) -> Stored:
    """Return a finding without the fact that a ledger knows it."""
    facts = {name: value for name, value in stored.finding.facts.items() if name != ENTERED}
    return replace(stored, finding=replace(stored.finding, facts=facts))


def learn_variant(store: Store, merged: Stored) -> Stored | None:
    """Add the predicate of a finding that was merged to the one with its signature, and return that one's new state.

    None when there is nothing to learn.
    """
    owner = store.with_signature(merged.finding.property.signature)
    fresh = None if owner is None else with_variant(owner, merged)
    return fresh if fresh is not None and fresh != owner and store.update(fresh) else None


def name_in_ledger(campaign: Campaign | None) -> str:
    """Return the name by which a ledger tells campaigns apart: target, seed and start; empty when they are unknown."""
    if campaign is None:
        return ""
    return f"{campaign.target}, seed {campaign.seed}, started {campaign.started:.6f}"


def new_ones(bugs: Sequence[SignedPredicate], known: Sequence[SignedPredicate]) -> list[SignedPredicate]:
    """Return the bugs that are not among `known`, by signature."""
    names = {bug.signature for bug in known}
    return [bug for bug in bugs if bug.signature not in names]


def new_entry(stored: Stored, campaign: str) -> LedgerEntry:
    """Return the entry of a finding that the ledger lacks; `campaign` is the name of its campaign there."""
    finding, now = stored.finding, utc_now()
    known = finding.facts.get("known")
    link, note = (str(known.get("link", "")), str(known.get("note", ""))) if isinstance(known, Mapping) else ("", "")
    entry = LedgerEntry(
        of_all_releases(finding.property.signature), "reported" if link else "open", link, note, found=now, changed=now,
        seen=0, campaign=campaign, finding=finding.identifier, message=finding.message,
        predicate=finding.facts.get("predicate"),
    )  # fmt: skip
    return entry.sighted(release_of(stored))


def _announcement(root: LedgerEntry) -> dict[str, str]:
    state = {"fixed-in": f"fixed in {root.fixed_in}"}.get(root.state, root.state)
    return {"link": root.link, "note": " ".join(filter(None, (f"({state} in the ledger: {root.key})", root.note)))}


def _regression(root: LedgerEntry) -> dict[str, str]:
    return {"fixed_in": root.fixed_in, "release": root.regressed_in, "link": root.link}


def _with_facts(stored: Stored, status: FindingStatus, more: Mapping[str, Any]) -> Stored:
    finding = replace(stored.finding, facts={**stored.finding.facts, **more})
    return replace(stored, finding=finding, status=status)


def _program(stored: Stored) -> Described:
    try:
        return described(read(stored.finding.case.program.payload))
    except ModelError:
        return Described(())
