"""Campaigns with one check or one technique each, kept in folders, and what they found."""

import json
import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from evaluation.kept_campaigns import SUMMARY, run_campaign
from miscompile.base.errors import InputError, UsageError
from miscompile.base.specs import Spec
from miscompile.engine.arms import TECHNIQUES
from miscompile.findings.folder import place
from miscompile.findings.store import Store


@dataclass(frozen=True, slots=True)
class OracleSettings:
    """Which campaigns are run: one for every target and check, in a folder of `folder`.

    With `techniques` there is one for every target and technique instead, with all of the checks. Each ends after
    `seconds`, or after `tests`.
    """

    folder: Path
    targets: tuple[str, ...]
    checks: tuple[str, ...]
    seconds: float
    seed: int
    workers: int
    tests: int | None = None
    techniques: tuple[str, ...] = ()

    def words(self, name: str) -> list[str]:
        """Return the options of `miscompile fuzz` for a check or a technique. Raises UsageError for an unknown one."""
        if not self.techniques:
            return ["--check", name]
        if name not in TECHNIQUES:
            raise UsageError(f"there is no technique '{name}'; there are: {', '.join(TECHNIQUES)}")
        technique = TECHNIQUES[name]
        return [
            "--check",
            ",".join(self.checks),
            "--producer",
            str(Spec(technique.producer, tuple(technique.options.items()))),
        ]


@dataclass(frozen=True, slots=True)
class OracleCampaign:
    """What the campaign of one check or technique (`name`) on one target found.

    `confirmed` and `unconfirmed` are signatures; `seen_after` are the seconds after which the first program with a
    confirmed one came, as far as its number tells. `false` are the findings that somebody has read and whose
    `verdict.toml` says so, `unread` the confirmed ones without a verdict.
    """

    target: str
    name: str
    tests: int
    seconds: float
    confirmed: frozenset[str]
    unconfirmed: frozenset[str]
    false: int
    unread: int
    seen_after: Mapping[str, float] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the figures as a JSON object."""
        listed = {"confirmed": sorted(self.confirmed), "unconfirmed": sorted(self.unconfirmed)}
        return {**asdict(self), **listed}


@dataclass(frozen=True, slots=True)
class OracleFigures:
    """All campaigns so far."""

    settings: OracleSettings
    campaigns: tuple[OracleCampaign, ...]

    def _others(self, one: OracleCampaign) -> list[OracleCampaign]:
        return [other for other in self.campaigns if other.target == one.target and other.name != one.name]

    def alone(self, one: OracleCampaign) -> frozenset[str]:
        """Return the confirmed signatures that no other campaign on the target has, confirmed or not."""
        return one.confirmed.difference(*(other.confirmed | other.unconfirmed for other in self._others(one)))

    def first(self, one: OracleCampaign) -> frozenset[str]:
        """Return the confirmed signatures that came no later than in every other campaign on the target."""
        others = self._others(one)
        return frozenset(
            signature
            for signature, after in one.seen_after.items()
            if all(after <= other.seen_after.get(signature, math.inf) for other in others)
        )

    def as_json(self) -> dict[str, Any]:
        """Return everything as a JSON object."""
        rows = [
            {**one.as_json(), "alone": sorted(self.alone(one)), "first": sorted(self.first(one))}
            for one in self.campaigns
        ]
        return {"seed": self.settings.seed, "seconds": self.settings.seconds, "campaigns": rows}


def run(settings: OracleSettings) -> Iterator[OracleFigures]:
    """Run each campaign that is not yet in its folder, and yield the figures after each.

    Raises UsageError for an unknown technique, and when `miscompile fuzz` refuses its options; InputError for a verdict
    that cannot be read.
    """
    done: list[OracleCampaign] = []
    names = settings.techniques or settings.checks
    most = ["--tests", str(settings.tests)] if settings.tests else []
    options = {name: [*settings.words(name), *most] for name in names}
    for target in settings.targets:
        for name in names:
            out = settings.folder / target / name
            run_campaign(target, out, settings.seconds, settings.seed, settings.workers, options[name])
            done.append(read(target, name, out))
            yield OracleFigures(settings, tuple(done))


def read(target: str, name: str, out: Path) -> OracleCampaign:
    """Return what the store at `out` holds. Raises InputError for a verdict that cannot be read."""
    summary = json.loads((out / SUMMARY).read_text("utf-8"))
    with Store.open(out, create=False) as store:
        records = store.findings()
    confirmed = [one for one in records if one.status == "confirmed"]
    verdicts = [_verdict(place(out, one.identifier) / "verdict.toml") for one in confirmed]
    return OracleCampaign(
        target=target,
        name=name,
        tests=summary["tests"],
        seconds=summary["seconds"],
        confirmed=frozenset(one.signature for one in confirmed),
        unconfirmed=frozenset(one.signature for one in records) - {one.signature for one in confirmed},
        false=verdicts.count("false"),
        unread=verdicts.count(""),
        seen_after={
            one.signature: round(summary["seconds"] * max(one.first_seen, 0) / max(summary["tests"], 1), 1)
            for one in confirmed
        },
    )


def _verdict(file: Path) -> str:
    """Return the verdict in a file, empty when there is no file."""
    try:
        return str(tomllib.loads(file.read_text("utf-8"))["verdict"])
    except FileNotFoundError:
        return ""
    except (tomllib.TOMLDecodeError, KeyError) as error:
        raise InputError(f"{file}: {error}") from error
