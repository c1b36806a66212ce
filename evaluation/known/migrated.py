"""Migrations to the releases that have public bugs of one operator, with one archive of instances after the other.

An instance may show a bug if it fails in the release with the bug and not in the one that mends it, and if it is of the
bug's operator. Whether it is the bug, a person decides, from the kinds and messages of these failures.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from evaluation.known.calls import called
from evaluation.known.listed import MendedBug
from evaluation.measures import Watch
from miscompile.migration.results import ResultRow, read_rows

_RAN = frozenset({"pass", "finding", "unsupported"})


@dataclass(frozen=True, slots=True)
class MigrationSettings:
    """Bugs of one operator each, and the archives whose instances of these operators are migrated, by name."""

    folder: Path
    bugs: tuple[MendedBug, ...]
    archives: tuple[tuple[str, Path], ...]
    workers: int
    limit: float


@dataclass(frozen=True, slots=True)
class MigratedBug:
    """What the instances of one archive gave: how many ran, how many failed, and those whose failure was mended.

    `mended` has the kind and the message of each such failure, and how many instances gave it, the most frequent first.
    `taken` counts the instances that the release with the bug refuses, and the other one takes.
    """

    bug: MendedBug
    archive: str
    ran: int
    failed: int
    taken: int
    mended: tuple[tuple[str, str, int], ...]


@dataclass(frozen=True, slots=True)
class MigrationFigures:
    """The outcomes so far."""

    settings: MigrationSettings
    outcomes: tuple[MigratedBug, ...]

    def as_json(self) -> dict[str, Any]:
        """Return everything as a JSON object."""
        return {"bugs": [{**asdict(one), "name": one.bug.name} for one in self.outcomes]}


def of_one_operator(bugs: Sequence[MendedBug]) -> list[MendedBug]:
    """Return the bugs whose trigger is a single operator of ONNX."""
    return [bug for bug in bugs if len(bug.operators) == 1 and bug.operators[0][:1].isupper()]


def run(settings: MigrationSettings, watch: Watch) -> Iterator[MigrationFigures]:
    """Migrate to both releases of each bug, yield as the outcomes come; what is in the folder is not run again.

    Raises UsageError when a release cannot be had.
    """
    done: list[MigratedBug] = []
    for number, bug in enumerate(settings.bugs):
        watch(f"{bug.name} on {bug.target} {bug.has_it}", number, len(settings.bugs))
        for name, archive in settings.archives:
            before, after = (_rows(settings, bug, release, name, archive) for release in (bug.has_it, bug.fixed_in))
            done.append(compared(bug, name, before, after))
            yield MigrationFigures(settings, tuple(done))


def compared(bug: MendedBug, archive: str, before: Sequence[ResultRow], after: Sequence[ResultRow]) -> MigratedBug:
    """Compare the results in the release with the bug, and in the one that mends it."""
    passed = {row.digest for row in after if row.status == "pass"}
    ran = [row for row in before if row.status in _RAN]
    failed = [row for row in ran if row.status == "finding"]
    mended: dict[tuple[str, str], int] = {}
    for row in failed:
        if row.digest in passed:
            mended[row.kind, row.message] = mended.get((row.kind, row.message), 0) + 1
    taken = sum(row.status == "unsupported" and row.digest in passed for row in ran)
    most = sorted(mended.items(), key=lambda item: -item[1])
    return MigratedBug(bug, archive, len(ran), len(failed), taken, tuple((*key, count) for key, count in most))


def _rows(settings: MigrationSettings, bug: MendedBug, release: str, name: str, archive: Path) -> list[ResultRow]:
    """Return the results of the operator's instances on a release, which are run if they are not in the folder."""
    operator, target = bug.operators[0], f"{bug.target}=={release}"
    out = settings.folder / f"{target}-{operator}-{name}"
    if not (out / "totals.json").exists():
        words = ["migrate", "--to", target, "--install", "--from", "onnx", "--operators", operator]
        words += ["--instances", str(archive), "--workers", str(settings.workers), "--seed", "0"]
        words += ["--limit-seconds", str(settings.limit), "--triage-time", "0", "--out", str(out), "--json"]
        called([*words, *(["--resume"] if out.exists() else [])], fine=(0, 1, 4))
    return [row for file in sorted((out / "results").glob("*.jsonl")) for row in read_rows(file)]
