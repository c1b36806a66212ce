"""Campaigns with one check each, kept in folders, and what they found."""

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from miscompile.base.errors import InputError, UsageError
from miscompile.findings.folder import place
from miscompile.findings.store import Store

SUMMARY = "summary.json"
"""The file that `miscompile fuzz` writes when a campaign ends."""


@dataclass(frozen=True, slots=True)
class OracleSettings:
    """Which campaigns are run: one for every target and check, in a folder of `folder`.

    Each ends after `seconds`, or after `tests`.
    """

    folder: Path
    targets: tuple[str, ...]
    checks: tuple[str, ...]
    seconds: float
    seed: int
    workers: int
    tests: int | None = None


@dataclass(frozen=True, slots=True)
class OracleCampaign:
    """What the campaign of one check on one target found.

    `confirmed` and `unconfirmed` are signatures. `false` are the findings that somebody has read and whose
    `verdict.toml` says so, `unread` the confirmed ones without a verdict.
    """

    target: str
    check: str
    tests: int
    seconds: float
    confirmed: frozenset[str]
    unconfirmed: frozenset[str]
    false: int
    unread: int

    def as_json(self) -> dict[str, Any]:
        """Return the figures as a JSON object."""
        listed = {"confirmed": sorted(self.confirmed), "unconfirmed": sorted(self.unconfirmed)}
        return {**asdict(self), **listed}


@dataclass(frozen=True, slots=True)
class OracleFigures:
    """All campaigns so far."""

    settings: OracleSettings
    campaigns: tuple[OracleCampaign, ...]

    def alone(self, one: OracleCampaign) -> frozenset[str]:
        """Return the confirmed signatures that no campaign of another check on the target has, confirmed or not."""
        others = [other for other in self.campaigns if other.target == one.target and other.check != one.check]
        return one.confirmed.difference(*(other.confirmed | other.unconfirmed for other in others))

    def as_json(self) -> dict[str, Any]:
        """Return everything as a JSON object."""
        rows = [{**one.as_json(), "alone": sorted(self.alone(one))} for one in self.campaigns]
        return {"seed": self.settings.seed, "seconds": self.settings.seconds, "campaigns": rows}


def run(settings: OracleSettings) -> Iterator[OracleFigures]:
    """Run each campaign that is not yet in its folder, and yield the figures after each.

    Raises UsageError when `miscompile fuzz` refuses its options, InputError for a verdict that cannot be read.
    """
    done: list[OracleCampaign] = []
    for target in settings.targets:
        for check in settings.checks:
            out = settings.folder / target / check
            if not (out / SUMMARY).exists():
                _fuzz(settings, target, check, out)
            done.append(read(target, check, out))
            yield OracleFigures(settings, tuple(done))


def _fuzz(settings: OracleSettings, target: str, check: str, out: Path) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    words = ["--check", check, "--time", f"{settings.seconds:.0f}", "--seed", str(settings.seed)]
    words += ["--workers", str(settings.workers), "--out", str(out), *(["--resume"] if out.exists() else [])]
    words += ["--tests", str(settings.tests)] if settings.tests else []
    command = [sys.executable, "-m", "miscompile", "fuzz", target, *words]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    if not (out / SUMMARY).exists():
        raise UsageError(f"the campaign of {check} on {target} did not start: {ended.stderr.strip()[-500:]}")


def read(target: str, check: str, out: Path) -> OracleCampaign:
    """Return what the store at `out` holds. Raises InputError for a verdict that cannot be read."""
    summary = json.loads((out / SUMMARY).read_text("utf-8"))
    with Store.open(out, create=False) as store:
        records = store.findings()
    confirmed = [one for one in records if one.status == "confirmed"]
    verdicts = [_verdict(place(out, one.identifier) / "verdict.toml") for one in confirmed]
    return OracleCampaign(
        target=target,
        check=check,
        tests=summary["tests"],
        seconds=summary["seconds"],
        confirmed=frozenset(one.signature for one in confirmed),
        unconfirmed=frozenset(one.signature for one in records) - {one.signature for one in confirmed},
        false=verdicts.count("false"),
        unread=verdicts.count(""),
    )


def _verdict(file: Path) -> str:
    """Return the verdict in a file, empty when there is no file."""
    try:
        return str(tomllib.loads(file.read_text("utf-8"))["verdict"])
    except FileNotFoundError:
        return ""
    except (tomllib.TOMLDecodeError, KeyError) as error:
        raise InputError(f"{file}: {error}") from error
