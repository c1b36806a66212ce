"""From what `miscompile migrate` left to the subjects of the table: tests with their bugs, counts and coverage."""

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from evaluation.opera.orders import CoveredFacts
from evaluation.opera.prioritisation import Subject, subject_of
from evaluation.opera.reach import PYTHON, reached_by
from miscompile.base.errors import UsageError
from miscompile.core.events import ProgressListener
from miscompile.findings.folder import REPEATED
from miscompile.findings.store import Store
from miscompile.harvest.libraries.sources import instances_of
from miscompile.instances.archive import distinct
from miscompile.instances.instance import Instance
from miscompile.migration.ranking.counts import counts_of
from miscompile.migration.results import ResultRow, place_of, read_rows
from miscompile.targets.front_ends import FrontEnd, chosen
from miscompile.targets.registry import parse_target


@dataclass(frozen=True, slots=True)
class MigrationFolders:
    """Folders that migrations left, and the archives that were migrated (none: the libraries' own tests).

    With `coverage`, statements that tests reach are collected where they have not been yet, which runs every test.
    """

    folders: tuple[Path, ...]
    instances: tuple[Path, ...] = ()
    coverage: bool = False


def subjects(where: MigrationFolders, seed: int, on_progress: ProgressListener) -> list[Subject]:
    """Return a subject for each front end of each folder. Raises UsageError for a folder that holds no migration."""

    @cache
    def every(library: str) -> tuple[Instance, ...]:
        return tuple(distinct(instances_of(library, where.instances, on_progress)))

    found = []
    for folder in where.folders:
        for front, rows, constants in _migrated(folder):
            tests = every(front.library)
            facts = CoveredFacts(seed, counts_of(front.target, front.library))
            spec = parse_target(front.target)
            subject = subject_of(front.name, spec.about.name, front.library, tests, rows, facts)
            found.append(_covered(subject, folder, front, where, on_progress, constants=constants))
    return found


def _migrated(folder: Path) -> list[tuple[FrontEnd, list[ResultRow], bool]]:
    """Return the front ends of a migration with their results, and whether operands were constants.

    Bugs that were not confirmed do not count.
    """
    with Store.open(folder, create=False) as store:
        campaign, records = store.campaign(), store.findings()
    if campaign is None or not campaign.options.get("migration"):
        raise UsageError(f"{folder} holds no migration; `miscompile migrate --out {folder}` makes one")
    doubtful = {record.signature for record in records if record.status in ("unconfirmed", "pending")}
    sure = {record.signature for record in records if record.status in REPEATED}
    found = []
    targets = campaign.options.get("targets", campaign.target.split(" "))  # older ones have no list
    for target, library in zip(targets, campaign.options["libraries"], strict=True):
        (front,) = chosen([target], [library])
        rows = read_rows(place_of(folder, front.name))
        kept = [row if row.bug not in doubtful - sure else replace(row, bug="") for row in rows]
        found.append((front, kept, bool(campaign.options["constants"])))
    return found


def _covered(
    subject: Subject,
    folder: Path,
    front: FrontEnd,
    where: MigrationFolders,
    on_progress: ProgressListener,
    *,
    constants: bool,
) -> Subject:
    """Return the subject with the statements that its tests reach, if they are known or wanted."""
    place = folder / "coverage" / f"{front.name}.json.gz"
    if front.name not in PYTHON or not (where.coverage or place.exists()):
        return subject
    reached = reached_by(subject.instances, front.name, front.target, place, on_progress, constants=constants)
    return replace(subject, facts=replace(subject.facts, coverage=reached.tests))
