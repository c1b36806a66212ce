"""Campaigns on the releases that have public bugs, and the findings that may be these bugs.

A finding is a candidate for a bug if its script shows it in the release with the bug and not in the one that mends it,
and if its program has all operators of the bug's trigger. Whether it is the bug, a person decides.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from evaluation.kept_campaigns import SUMMARY, run_campaign
from evaluation.known.calls import called
from evaluation.known.listed import MendedBug
from miscompile.base.errors import UsageError
from miscompile.cli.exit_codes import UNTESTED
from miscompile.findings.folder import REPEATED, load
from miscompile.findings.store import Store
from miscompile.graph.read import read
from miscompile.ops.registry import specs
from miscompile.triage.predicate import inner_operators


@dataclass(frozen=True, slots=True)
class KnownSettings:
    """One campaign of `seconds` for each release that has some of `bugs`, in a folder of `folder`.

    With `focused` there is one for each bug, with the operators of its trigger alone.
    """

    folder: Path
    bugs: tuple[MendedBug, ...]
    seconds: float
    seed: int
    workers: int
    focused: bool = False


@dataclass(frozen=True, slots=True)
class BugOutcome:
    """What the campaign on the release with a bug gave: the findings that may be it, each with its signature.

    `repeated` counts the findings that triage has repeated. Those that `known.toml` has are among them, because it may
    have the very bug.
    `not_run` says why there was no campaign, empty if there was one.
    """

    bug: MendedBug
    tests: int = 0
    repeated: int = 0
    mended: int = 0
    candidates: tuple[tuple[str, str], ...] = ()
    not_run: str = ""


@dataclass(frozen=True, slots=True)
class KnownFigures:
    """The outcomes so far."""

    settings: KnownSettings
    outcomes: tuple[BugOutcome, ...]

    def as_json(self) -> dict[str, Any]:
        """Return everything as a JSON object."""
        rows = [{**asdict(one), "name": one.bug.name} for one in self.outcomes]
        return {"seed": self.settings.seed, "seconds": self.settings.seconds, "bugs": rows}


def with_operators(bugs: Sequence[MendedBug]) -> list[MendedBug]:
    """Return the bugs whose trigger consists of operators of ONNX, as a campaign can be given them."""
    return [bug for bug in bugs if bug.operators and all(op[:1].isupper() for op in bug.operators)]


def operators_to_ask_for(bug: MendedBug) -> tuple[str, ...]:
    """Return the operators of a bug's trigger that the generator makes on request; all of them if it makes none.

    A Constant node is another form of a constant, which programs have without being asked.
    """
    known = specs()
    return tuple(op for op in bug.operators if op in known) or bug.operators


def run(settings: KnownSettings) -> Iterator[KnownFigures]:
    """Run each campaign that is not yet in its folder, check its findings on the mending releases, yield as they come.

    A bug whose release cannot be had, or on which no campaign starts, is an outcome that says so.
    """
    done: list[BugOutcome] = []
    for bug in settings.bugs:
        out, words = settings.folder / f"{bug.target}-{bug.has_it}", list[str]()
        if settings.focused:
            words = ["--ops", ",".join(operators_to_ask_for(bug))]
            out = out.with_name(f"{out.name}-{'-'.join(bug.operators)}")
        try:
            _campaign(settings, f"{bug.target}=={bug.has_it}", out, words)
        except UsageError as error:
            done.append(BugOutcome(bug, not_run=str(error)))
        else:
            done.append(_outcome(bug, out))
        yield KnownFigures(settings, tuple(done))


def _campaign(settings: KnownSettings, release: str, out: Path, words: Sequence[str]) -> None:
    if not (out / SUMMARY).exists():
        called(["targets", "install", release])
        run_campaign(release, out, settings.seconds, settings.seed, settings.workers, words)


def _outcome(bug: MendedBug, out: Path) -> BugOutcome:
    file = out / f"recheck-{bug.fixed_in}.json"
    if not file.exists():
        words = ["recheck", str(out), "--target", f"{bug.target}=={bug.fixed_in}", "--install", "--json"]
        file.write_text(called(words, (0, 1, UNTESTED)), "utf-8")
    mended = {one["id"] for one in json.loads(file.read_text("utf-8"))["findings"] if one["answer"] == "fixed"}
    with Store.open(out, create=False) as store:
        repeated = [one for one in store.findings() if one.status in REPEATED]
    found = [one for one in repeated if one.identifier in mended]
    alike = tuple((one.identifier, one.signature) for one in found if may_be(bug, _operators(out, one.identifier)))
    tests = json.loads((out / SUMMARY).read_text("utf-8"))["tests"]
    return BugOutcome(bug, tests, len(repeated), len(found), alike)


def may_be(bug: MendedBug, operators: frozenset[str]) -> bool:
    """Tell whether a reduced program with these operators has the trigger of a bug."""
    return bool(bug.operators) and operators.issuperset(bug.operators)


def _operators(out: Path, identifier: str) -> frozenset[str]:
    graph = read(load(out, identifier).finding.case.program.payload).graph
    return frozenset(op for node in graph.nodes for op in (node.op, *inner_operators(node)))
