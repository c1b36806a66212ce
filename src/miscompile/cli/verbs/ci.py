"""`miscompile ci`: a bounded, repeatable run against a baseline of known bugs, with reports for CI servers."""

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from miscompile.api.plans import check_out, default_out, validate
from miscompile.base.errors import StoreError, UsageError
from miscompile.base.wording import counted
from miscompile.cli import values
from miscompile.cli.campaigns import conduct
from miscompile.cli.exit_codes import FINDINGS, NOTHING, UNTESTED
from miscompile.cli.options import ready
from miscompile.cli.screens import Verb
from miscompile.cli.verbosity import tell, verbosity_options
from miscompile.engine.checks import CHECKS
from miscompile.engine.plan import Plan
from miscompile.findings.folder import place, writing
from miscompile.findings.ledger_entry import LedgerEntry, key_of
from miscompile.findings.store import Record, Store
from miscompile.reports.annotations import annotations
from miscompile.reports.ci_result import CiFinding, CiResult
from miscompile.reports.junit import junit_text
from miscompile.reports.sarif import sarif_log
from miscompile.reports.summary import summarise
from miscompile.targets.registry import parse_target

LANES = 2
"""Lanes by default: a constant, because the number of lanes decides which tests are made."""

TRIAGE, UPDATE_TRIAGE = 30.0, 600.0
"""Seconds of triage after the tests by default: an update may take longer, because people wait for it less often."""

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(
    "ci",
    cls=Verb,
    usual=("--baseline", "--update-baseline", "--tests", "--shard", "--out", "--junit", "--sarif"),
)
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...")
@click.option(
    "--baseline",
    type=_FILE,
    metavar="FILE",
    help="The known bugs, which do not fail the run. A ledger as TOML, as `miscompile bugs export` writes it.",
)
@click.option(
    "--update-baseline",
    "update",
    is_flag=True,
    help="Add the new bugs to the baseline, and make it if there is none. Exit code 0 then.",
)
@click.option(
    "--tests",
    type=click.IntRange(min=1),
    metavar="N",
    help="Tests of the whole run. [default: what takes less than a minute, for each compiler]",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    default=0,
    show_default=True,
    metavar="N",
    help="Another seed makes other tests.",
)
@click.option("--shard", default="1/1", show_default=True, metavar="I/N", help="Only part I of N, for N parallel jobs.")
@click.option(
    "--workers",
    type=click.IntRange(1, 1024),
    default=LANES,
    show_default=True,
    metavar="N",
    help="Lanes of a job. Another number makes other tests.",
)
@click.option(
    "--check",
    "checks",
    callback=values.names,
    metavar="NAMES",
    help=f"What to check: {', '.join(CHECKS)}, or all. [default: all]",
)
@click.option(
    "--triage-time",
    "triage_seconds",
    metavar="TIME",
    callback=values.duration,
    help="Reduce new findings for at most this long after the tests. [default: 30s, or 10m with --update-baseline]",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder for the findings. [default: miscompile-out, or the next free miscompile-out-2, ...]",
)
@click.option("--junit", type=_FILE, metavar="FILE", help="Write JUnit XML.")
@click.option("--sarif", type=_FILE, metavar="FILE", help="Write SARIF 2.1.0, for code scanning.")
@click.option(
    "--github/--no-github",
    default=None,
    help="Print annotations for GitHub Actions. [default: if GITHUB_ACTIONS is set]",
)
@click.option(
    "--limit-seconds",
    type=click.FloatRange(0, min_open=True),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="A single run that takes longer is a hang.",
)
@click.option("--install", is_flag=True, help="Install the compiler in an environment of its own when it is not here.")
@verbosity_options
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON, and no progress.")
def command(
    targets: tuple[str, ...], baseline: Path | None, update: bool, shard: str, junit: Path | None, sarif: Path | None,
    github: bool | None, install: bool, as_json: bool, **given: Any,  # noqa: ANN401 - click passes options by name
) -> int:  # fmt: skip
    """Make a fixed number of tests of TARGET, the same in every run, and fail on findings that the baseline lacks.

    \b
    Examples:
      miscompile ci onnxruntime --baseline ledger.toml --junit junit.xml
      miscompile ci onnxruntime --baseline ledger.toml --update-baseline
      miscompile ci onnxruntime --tests 40000 --shard 2/8

    Exit code 0: something was tested, and the baseline has all findings. 1: it lacks one. 4: nothing was tested.
    """
    from miscompile.engine import ci

    part = ci.shard_from(shard)
    if update and (baseline is None or part.count > 1):
        raise UsageError("--update-baseline goes with --baseline FILE, and without --shard")
    if given["triage_seconds"] is None:
        given["triage_seconds"] = UPDATE_TRIAGE if update else TRIAGE
    entries = ci.baseline_entries(baseline, may_be_absent=update)
    plan = _plan(targets, given, install=install)
    github = bool(os.environ.get("GITHUB_ACTIONS")) if github is None else github
    head = f"testing {plan.title}, seed {plan.seed}, shard {part}, findings go to {plan.out}"
    code = conduct(plan, partial(ci.run, plan, part, entries), head, as_json=as_json)
    result = _result(plan, str(part), entries, str(baseline or ""))
    for path, text in ((junit, junit_text(result)), (sarif, json.dumps(sarif_log(result), indent=2) + "\n")):
        if path is not None:
            _write(path, text)
    if github:
        click.echo("\n".join(annotations(result)), err=as_json)
    if not as_json:
        click.echo(result.verdict)
    if result.untested and not result.new:
        return UNTESTED
    if update and baseline is not None:
        with Store.open(plan.out, create=False) as store:
            added = ci.update_baseline(baseline, entries, store, plan.ledger_file)
        tell(f"{counted(added, 'bug')} new or changed in {baseline}", as_json=as_json)
        if added:
            tell("run it again until none is: look-alikes of known bugs are examined more closely", as_json=as_json)
        return NOTHING
    return FINDINGS if result.new else NOTHING if code == FINDINGS else code


def _plan(targets: tuple[str, ...], given: dict[str, Any], *, install: bool) -> Plan:
    """Return the plan of the whole run. Raises UsageError before anything is installed or written."""
    if len(set(targets)) < len(targets):
        raise UsageError("a target is named twice; a compiler can be held against another version of it: A==1.2")
    fewest = min(parse_target(target).about.ci_tests for target in targets)
    given["tests"], given["out"] = given["tests"] or fewest, given["out"] or default_out(resume=False)
    plan = Plan(targets[0], targets[1:], seconds=None, probe_seconds=None, schedule=True, steer=False, **given)
    validate(plan)
    check_out(plan.out, resume=False)
    first, *others = (ready(target, install=install) for target in targets)
    return replace(plan, target=first, others=tuple(others))


def _result(plan: Plan, shard: str, baseline: Sequence[LedgerEntry], name: str) -> CiResult:
    """Return the result of the campaign in `plan.out`: its findings that are announced, and those that are known."""
    with Store.open(plan.out, create=False) as store:
        summary = summarise(store)
        shown = [record for record in summary.findings if record.status in ("confirmed", "pending", "known")]
        found = tuple(_finding(store, record, baseline) for record in shown)
    versions = tuple(sorted(summary.versions.items()))
    return CiResult(
        plan.title, versions, plan.seed, shard, summary.tests, summary.judged, summary.seconds, summary.untested,
        found, name,
    )  # fmt: skip


def _finding(store: Store, record: Record, baseline: Sequence[LedgerEntry]) -> CiFinding:
    from miscompile.engine.ci import known_pending

    try:
        stored = store.load(record.identifier)
    except StoreError:  # its folder was damaged or moved away: the row is all that is left
        stored = None
    known = record.status == "known" or (stored is not None and known_pending(stored, baseline)
                                         and record.status == "pending")  # fmt: skip
    facts = {} if stored is None else stored.finding.facts
    told = facts.get("known")
    return CiFinding(
        record.identifier,
        record.signature if stored is None else key_of(stored.finding.property.signature),
        record.kind, record.status, record.message, not known,
        place(store.path, record.identifier).as_posix(), record.culprits, record.nodes, record.regression,
        str(told.get("link", "")) if isinstance(told, dict) else "", "" if stored is None else stored.issue,
    )  # fmt: skip


def _write(path: Path, text: str) -> None:
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8", "backslashreplace")
