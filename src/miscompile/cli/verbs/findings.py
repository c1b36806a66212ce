"""The verbs on a stored campaign: `findings`, `report`, and on one finding `reduce`, `bisect`, `repro`, `replay`."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from miscompile.api.findings import one_record
from miscompile.base.errors import ExecutionError, InputError, StoreError, UsageError
from miscompile.base.wording import counted
from miscompile.cli import values
from miscompile.cli.campaigns import show
from miscompile.cli.exit_codes import code_of
from miscompile.cli.options import id_argument, json_option, out_argument, phases, progress, whole_identifier
from miscompile.cli.screens import Verb
from miscompile.cli.verbosity import Verbosity, tell, verbosity, verbosity_options, warn
from miscompile.findings.folder import load, place
from miscompile.findings.store import Record, Store, record_of
from miscompile.reports.registry import REPORTS
from miscompile.reports.summary import record_json, summarise
from miscompile.reports.writer import write_issue_of_cluster
from miscompile.triage.clusters import one_of_each_cause


def show_record(out: Path, identifier: str, sentence: str, *, as_json: bool) -> None:
    """Write a changed finding's issue anew, and print a sentence about the change, or its row as JSON."""
    write_issue_of_cluster(out, identifier)
    if as_json:
        click.echo(json.dumps(record_json(one_record(out, identifier)), indent=2))
        return
    click.echo(sentence)
    if verbosity() == Verbosity.VERBOSE:
        click.echo(f"The issue text and the script are in {place(out, identifier)}")


@click.command("findings", cls=Verb)
@out_argument
@click.argument("identifier", metavar="[ID]", required=False, callback=whole_identifier)
@verbosity_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table or text.")
def findings(out: Path, identifier: str | None, as_json: bool) -> int:
    """List the findings in OUT, or print the issue text of finding ID.

    \b
    Examples:
      miscompile findings miscompile-out
      miscompile findings miscompile-out wrong-0a1b2c3d4e > issue.md
      miscompile findings miscompile-out wrong-0a    its beginning suffices

    Exit code 1 when there are findings, 0 when there are none, 4 when nothing was tested; with ID, 0.
    """
    if identifier is None:
        with Store.open(out, create=False) as store:
            summary, damaged = summarise(store), store.damaged
        show(summary, out, as_json=as_json)
        for problem in damaged:
            warn(problem)
        return code_of(summary)
    record = one_record(out, identifier)
    if record.status == "pending" and not as_json:
        tell(
            f"{identifier} is pending: it was not repeated or reduced yet; `miscompile reduce {out} {identifier}` does"
        )
    text = write_issue_of_cluster(out, identifier)
    click.echo(json.dumps({**record_json(record), "issue": text}, indent=2) if as_json else text, nl=as_json)
    return 0


@click.command("report", cls=Verb)
@click.argument("words", nargs=-1, required=True, metavar="OUT... [NAME]...")
@click.option("--out", "folder", type=click.Path(path_type=Path), metavar="DIR",
              help="Write the site of all campaigns OUT into this folder.")  # fmt: skip
@click.option("--support", multiple=True, type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR",
              help="With --out: show the support tables in this folder; can be repeated.")  # fmt: skip
@json_option
def report(words: tuple[str, ...], folder: Path | None, support: tuple[Path, ...], as_json: bool) -> int:
    """Write the reports NAME of the campaign in OUT, and print the files; without NAME, list the reports there are.

    `summary`, `issues` and `site` are built in; other packages add theirs through the entry points miscompile.reports.
    With --out, write the static site of one or more campaigns, and print the path of its overview. A site that is
    written again into its folder shows what is new since.

    \b
    Examples:
      miscompile report miscompile-out
      miscompile report miscompile-out summary issues
      miscompile report nightly-ort nightly-tvm --out site
    """
    if folder is not None:
        return _site(words, folder, support, as_json=as_json)
    if support:
        raise UsageError("--support goes with --out")
    out, names = _campaign(words[0]), words[1:]
    if not names:
        titles = {name: REPORTS.get(name).title for name in REPORTS.usable()} | REPORTS.broken()
        click.echo(json.dumps(titles, indent=2) if as_json else "\n".join(map("  ".join, titles.items())))
        return 0
    reports = [REPORTS.get(name) for name in names]
    with Store.open(out, create=False) as store:
        written = {report.name: [str(path) for path in report.write(store, out)] for report in reports}
    click.echo(
        json.dumps(written, indent=2) if as_json else "\n".join(path for paths in written.values() for path in paths)
    )
    return 0


def _campaign(word: str) -> Path:
    """Return the folder that a command line names. Raises UsageError when there is none."""
    path = Path(word)
    if not path.is_dir():
        raise UsageError(f"there is no folder '{word}'; name the folder of a campaign")
    return path


def _site(words: tuple[str, ...], folder: Path, support: tuple[Path, ...], *, as_json: bool) -> int:
    """Write the site of the campaigns that `words` name; the report's name may be among them."""
    from miscompile.reports.site.writer import SITE, write_site

    outs = [_campaign(word) for word in dict.fromkeys(words) if word != SITE.name or Path(word).is_dir()]
    if not outs:
        raise UsageError("--out needs at least one campaign's folder before it")
    written, problems = write_site(outs, folder, support)
    for problem in problems:
        warn(problem)
    click.echo(json.dumps({SITE.name: [str(path) for path in written]}, indent=2) if as_json else str(written[0]))
    return 0


@click.command("reduce", cls=Verb)
@out_argument
@id_argument
@click.option("--time", "seconds", default="2m", show_default=True, metavar="TIME", callback=values.duration,
              help="Stop after 90, 5m, 2h, ...")  # fmt: skip
@verbosity_options
@json_option
def reduce(out: Path, identifier: str, seconds: float, as_json: bool) -> int:
    """Reduce finding ID in OUT further: fewer nodes, smaller shapes, plainer attributes and values.

    \b
    Example:
      miscompile reduce miscompile-out wrong-0a1b2c3d4e --time 10m

    The finding's folder then holds the smaller model; the first one stays as original.onnx.
    """
    before = one_record(out, identifier)
    from miscompile.engine import single

    with phases(as_json=as_json) as on_phase:
        stored = single.reduce(out, identifier, seconds, on_phase)
    if stored is None:
        told = f"{identifier} is the bug of another finding, which now counts it"
        click.echo(json.dumps({"id": identifier, "status": "duplicate"}) if as_json else told)
        return 0
    show_record(out, identifier, f"{identifier}: {reduced_sentence(before, record_of(stored))}", as_json=as_json)
    return 0


def reduced_sentence(before: Record, after: Record) -> str:
    """Say what became of a finding that was reduced: its size, its culprits, its status."""
    size = f"{before.nodes} -> {counted(after.nodes, 'node')}" if before.nodes else counted(after.nodes, "node")
    if before.nodes == after.nodes:
        size = f"{counted(after.nodes, 'node')}, as before"
    guilty = f"guilty: {' + '.join(after.culprits)}" if after.culprits else ""
    return "; ".join(filter(None, (size, guilty, after.status)))


def bisected_sentence(before: Sequence[str], after: Sequence[str]) -> str:
    """Say which passes are to blame, and what was blamed before."""
    guilty = f"guilty: {' + '.join(after)}" if after else "no pass that can be switched off is to blame"
    told = f"before: {' + '.join(before) or 'none'}"
    return f"{guilty}, {'unchanged' if set(before) == set(after) else told}"


@click.command("bisect", cls=Verb, usual=("--releases", "--keep", "--json"))
@out_argument
@click.argument("identifier", metavar="[ID]", required=False, callback=whole_identifier)
@click.option("--releases", is_flag=True, help="Find the first release of the compiler that shows the finding.")
@click.option("--keep", is_flag=True, help="With --releases: keep the environments that are made.")
@verbosity_options
@json_option
def bisect(out: Path, identifier: str | None, releases: bool, keep: bool, as_json: bool) -> int:
    """Find the smallest set of passes that must be on for finding ID in OUT to show.

    With --releases, find the first release that shows it: the finding's script runs in environments with older
    releases, which are made (each some hundred megabytes) and removed again. The search assumes that every release
    from the first bad one to the one of the finding shows it. Releases that cannot be installed or cannot run the
    script are skipped. Without ID, the smallest confirmed finding of each cause is searched for, and the environments
    are removed at the end. The issue text then says which releases were tried.

    \b
    Examples:
      miscompile bisect miscompile-out wrong-0a1b2c3d4e
      miscompile bisect miscompile-out --releases

    \f
    Exit code 1 when a search of releases gives no answer.
    """
    if keep and not releases:
        raise UsageError("--keep goes with --releases")
    if not releases and identifier is None:
        raise UsageError("name a finding; only --releases goes without ID")
    if identifier is not None:
        one_record(out, identifier)
    from miscompile.engine import single

    if not releases:
        assert identifier is not None
        with phases(as_json=as_json) as on_phase:
            guilty = single.bisect(out, identifier, on_phase)
        show_record(out, identifier, f"{identifier}: {bisected_sentence(*guilty)}", as_json=as_json)
        return 0
    return _releases(out, identifier, keep, as_json=as_json)


def _releases(out: Path, identifier: str | None, keep: bool, *, as_json: bool) -> int:
    """Search the releases for one finding, or for one of each cause; return the exit code."""
    from miscompile.engine import single

    with Store.open(out, create=False) as store:
        chosen = [identifier] if identifier is not None else one_of_each_cause(store)
    told, unanswered = [], 0
    for name, found in single.releases(out, chosen, keep, progress(as_json=as_json)):
        if isinstance(found, str):
            unanswered += 1
            warn(f"{name}: {found}")
            continue
        write_issue_of_cluster(out, name)
        history = found.as_json()
        told.append({"id": name, **history})
        if not as_json:
            click.echo(verdict(name, history))
    if as_json:
        click.echo(json.dumps(told[0] if identifier is not None and told else told, indent=2))
    return int(unanswered > 0)


_SAID = {"shows": "shows it", "absent": "does not show it", "other": "raises another error", "skipped": "cannot say"}


def verdict(identifier: str, found: Mapping[str, Any]) -> str:
    """Return the result of a search among releases as a few lines of text."""
    name, newest = found["distribution"], found["newest"]
    lines = [f"{identifier} first shows in {name} {found['first_bad']}", _before(found)]
    if newest["release"] != found["first_bad"]:
        answer = _SAID[newest["answer"]]
        lines.append(f"the newest release, {newest['release']}, {answer}")
    others = [one["release"] for one in found["tried"] if one["answer"] == "other"]
    if others:
        lines.append(f"another error: {', '.join(others)}")
    if found["skipped"]:
        lines.append(f"skipped: {', '.join(found['skipped'])}")
    return "\n".join(lines)


def _before(found: Mapping[str, Any]) -> str:
    if found["last_good"] is not None:
        return f"the last release without it is {found['last_good']}"
    if found["tried"][0]["release"] == found["first_bad"]:
        return "that is the oldest release"
    return "no older release gives an answer"


@click.command("repro", cls=Verb)
@out_argument
@id_argument
@click.option("--limit-seconds", type=click.FloatRange(0, min_open=True), default=300.0, show_default=True,
              metavar="SECONDS", help="Give up after this long.")  # fmt: skip
@json_option
def repro(out: Path, identifier: str, limit_seconds: float, as_json: bool) -> int:
    """Run the standalone script of finding ID in OUT, in a fresh Python process.

    \b
    Example:
      miscompile repro miscompile-out wrong-0a1b2c3d4e

    Exit code 1 when the bug shows, 0 when it does not.
    """
    from miscompile.environments.resolve import python_of, versions_of
    from miscompile.triage.confirm import run_script

    script = place(out, identifier).resolve() / "repro.py"
    target = _target_of_script(out, identifier)
    versions_of(target)
    result = run_script(script, python_of(target), limit_seconds)
    if result.status == "broken":
        said = (result.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        code = f"did not end within {limit_seconds:g} s" if result.code is None else f"ended with status {result.code}"
        raise ExecutionError(f"the script {code}, which says neither that the bug shows nor that not: {said}")
    shows = result.status == "shows"
    if as_json:
        click.echo(json.dumps({"id": identifier, "shows": shows, "status": result.code, "stdout": result.stdout}))
    else:
        click.echo(f"{result.stdout.rstrip()}\n{identifier} {'shows' if shows else 'does not show'}".lstrip())
    return int(shows)


def _target_of_script(out: Path, identifier: str) -> str:
    """Return the target of a finding that has a script.

    The script alone says what it runs. If the rest of the folder is damaged, the campaign's first target gives the
    interpreter that it needs. Raises InputError when there is no script.
    """
    try:
        stored = load(out, identifier)
    except InputError:
        raise
    except StoreError as error:
        if not (place(out, identifier) / "repro.py").exists():
            raise
        with Store.open(out, create=False) as store:
            campaign = store.campaign()
        if campaign is None:
            raise
        warn(f"{error}; its script is run on {campaign.target.split()[0]}")
        return campaign.target.split()[0]
    if not stored.script:
        raise InputError(f"finding {identifier} has no script yet; `miscompile replay` runs its case")
    return stored.finding.property.target


@click.command("replay", cls=Verb)
@out_argument
@id_argument
@json_option
def replay(out: Path, identifier: str, as_json: bool) -> int:
    """Run the case of finding ID in OUT again, with the tool's own workers and judgement.

    \b
    Example:
      miscompile replay miscompile-out wrong-0a1b2c3d4e

    Exit code 1 when it shows, 0 when it does not.
    """
    one_record(out, identifier)
    from miscompile.engine import single

    shows, message = single.replay(out, identifier)
    if as_json:
        click.echo(json.dumps({"id": identifier, "shows": shows, "message": message}))
    else:
        click.echo(f"{identifier} {'shows' if shows else 'does not show'}: {message}")
    return int(shows)
