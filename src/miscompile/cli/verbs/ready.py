"""The verb `ready`: which findings can be filed as they are, and what the others lack."""

import json
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console

from miscompile.base.wording import counted
from miscompile.cli.ledgers import ledger_option, ledger_place
from miscompile.cli.options import json_option, out_argument, phases, whole_identifier
from miscompile.cli.screens import Verb
from miscompile.cli.verbosity import verbosity_options
from miscompile.core.events import WorkPhase
from miscompile.findings.folder import Stored, place
from miscompile.findings.ledger import Ledger
from miscompile.findings.ledger_entry import key_of, of_all_releases
from miscompile.findings.store import Store
from miscompile.reports.tables import PlainTable, plain_table
from miscompile.reports.wording import title_of
from miscompile.triage.clusters import one_of_each_cause
from miscompile.triage.ready import Readiness


@click.command("ready", cls=Verb, usual=("--ledger", "--json"))
@out_argument
@click.argument("identifiers", nargs=-1, metavar="[ID]...", callback=whole_identifier)
@ledger_option
@click.option("--limit-seconds", type=click.FloatRange(0, min_open=True), default=120.0, show_default=True,
              metavar="SECONDS", help="Give up on one run of a script after this long.")  # fmt: skip
@verbosity_options
@json_option
def command(out: Path, identifiers: tuple[str, ...], ledger: Path | None, limit_seconds: float, as_json: bool) -> int:
    """Check which confirmed findings in OUT are ready to be filed with the compiler's project.

    A finding is ready if nobody has filed it (see `miscompile bugs`), if it needs no option and no pass switched off,
    if its script shows it in two fresh processes, and again with other processor features where the compiler can be
    told so, and if the first bad release is known. Without ID the smallest finding of each cause is checked.

    \b
    Examples:
      miscompile ready miscompile-out
      miscompile ready miscompile-out wrong-0a1b2c3d4e
      miscompile bisect miscompile-out wrong-0a1b2c3d4e --releases

    Exit code 0 when all are ready, 1 when one is not.
    """
    with Store.open(out, create=False) as store:
        chosen = identifiers or one_of_each_cause(store)
        found = [store.load(identifier) for identifier in chosen]
    links = _links(ledger_place(ledger, out), found)
    answers: list[tuple[Stored, Readiness]] = []
    with phases(as_json=as_json) as on_phase:
        for done, stored in enumerate(found):
            on_phase(WorkPhase("running the scripts of the findings", done, len(found)))
            answers.append((stored, _asked(out, stored, links.get(stored.finding.identifier, ""), limit_seconds)))
    _keep(out, answers)
    if as_json:
        click.echo(json.dumps([{"id": one.finding.identifier, **said.as_json()} for one, said in answers], indent=2))
    elif answers:
        Console().print(_table(answers))
        done = sum(not said.missing for _, said in answers)
        click.echo(f"{done} of {counted(len(answers), 'finding')} can be filed")
        for note in dict.fromkeys(note for _, said in answers for note in said.notes):
            click.echo(f"note: {note}")
    else:
        click.echo("There is no confirmed finding; `miscompile findings` lists those that there are.")
    return int(any(said.missing for _, said in answers))


def _links(file: Path, found: list[Stored]) -> dict[str, str]:
    """Return what the ledger in `file` has as upstream link of each finding; empty texts without a ledger."""
    if not file.exists():
        return {}
    with Ledger.open(file, create=False) as ledger:
        entries = {
            one.finding.identifier: ledger.get(key_of(of_all_releases(one.finding.property.signature))) for one in found
        }
        return {name: ledger.root(entry).link for name, entry in entries.items() if entry is not None}


def _asked(out: Path, stored: Stored, filed: str, seconds: float) -> Readiness:
    from miscompile.environments.resolve import python_of
    from miscompile.targets.registry import parse_target
    from miscompile.triage.ready import readiness, script_runner

    target = stored.finding.property.target
    about = parse_target(target).about
    script = place(out, stored.finding.identifier).resolve() / "repro.py"
    run = script_runner(script, python_of(target), seconds)
    return readiness(stored, about.cpu_caps, filed, run, several_releases=bool(about.distributions))


def _keep(out: Path, answers: list[tuple[Stored, Readiness]]) -> None:
    """Store the answers as the fact `ready` of each finding."""
    with Store.open(out) as store:
        for stored, said in answers:
            facts = {**stored.finding.facts, "ready": said.as_json()}
            store.update(replace(stored, finding=replace(stored.finding, facts=facts)))


def _table(answers: list[tuple[Stored, Readiness]]) -> PlainTable:
    table = plain_table("finding", "title", "lacks")
    for stored, said in answers:
        table.add_row(stored.finding.identifier, title_of(stored), "\n".join(said.missing) or "nothing: ready to file")
    return table
