"""`miscompile bugs`: the ledger of known bugs, which campaigns keep and people decide about."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.text import Text

from miscompile.base.errors import UsageError
from miscompile.base.versions import is_version
from miscompile.base.wording import counted
from miscompile.cli.ledgers import ledger_options, ledger_place
from miscompile.cli.options import json_option
from miscompile.cli.screens import VerbSet
from miscompile.findings.ledger import Ledger
from miscompile.findings.ledger_entry import STATES, BugState, LedgerEntry, utc_now
from miscompile.findings.ledger_file import read_ledger, write_ledger
from miscompile.reports.tables import PlainTable, plain_table

Function = TypeVar("Function", bound=Callable[..., object])

_STYLES: dict[BugState, str] = {"open": "red", "reported": "yellow"}
_SIG = click.argument("signature", metavar="SIG")
_NOTE = click.option("--note", default="", metavar="TEXT", help="A line for people.")
_OPENED = click.Path(dir_okay=False, path_type=Path)


@click.group("bugs", cls=VerbSet)
def command() -> None:
    """List the bugs in a ledger, and decide about them.

    \b
    Examples:
      miscompile bugs list --state open
      miscompile bugs close wrong-0a1b --fixed-in 1.25
      miscompile bugs export bugs.toml --ledger nightly.db
    \f
    Campaigns enter their findings. A look-alike of a bug that is open, reported, wontfix or a duplicate is counted and
    not announced; one of a bug that is fixed in the release under test, or an older one, is announced as a regression;
    one of an invalid entry is never announced.

    SIG is a signature, the identifier of the finding, or the beginning of one of them.
    """


@command.command("list", short_help="List the bugs.")
@click.option("--state", "states", multiple=True, type=click.Choice(STATES), help="Only this state; can be repeated.")
@ledger_options
@json_option
def list_bugs(states: tuple[BugState, ...], ledger: Path | None, out: Path | None, as_json: bool) -> int:
    """List the bugs in the ledger.

    \b
    Examples:
      miscompile bugs list
      miscompile bugs list --state open --state reported --json
    """
    with _opened(ledger, out) as book:
        entries = book.entries(states)
    if as_json:
        click.echo(json.dumps([entry_json(entry) for entry in entries], indent=2))
    elif entries:
        Console().print(_table(entries))
    else:
        click.echo("no bugs")
    return 0


@command.command("link", short_help="Note the upstream issue of a bug.")
@_SIG
@click.argument("url", metavar="URL")
@_NOTE
@ledger_options
@json_option
def link(signature: str, url: str, note: str, **where: Any) -> int:  # noqa: ANN401 - click passes options by name
    """Note that bug SIG is reported upstream as URL. An open bug gets the state reported.

    \b
    Example:
      miscompile bugs link wrong-0a1b https://github.com/openxla/xla/issues/1
    """
    if "://" not in url:
        raise UsageError(f"'{url}' is no link; write https://...")
    return _change(signature, lambda entry: entry.linked(url, note, utc_now()), **where)


@command.command("close", short_help="Note that a bug is fixed, stays, or is none.")
@_SIG
@click.option("--fixed-in", metavar="V", help="Fixed in release V: look-alikes from V on are regressions.")
@click.option("--wontfix", is_flag=True, help="It will stay.")
@click.option("--invalid", is_flag=True, help="It is no bug of the compiler.")
@_NOTE
@ledger_options
@json_option
def close(signature: str, fixed_in: str | None, wontfix: bool, invalid: bool, note: str, **where: Any) -> int:  # noqa: ANN401
    """Close bug SIG.

    \b
    Examples:
      miscompile bugs close wrong-0a1b --fixed-in 1.25
      miscompile bugs close onnxruntime:wrong:DivMul --wontfix --note 'documented'
    """
    if (fixed_in is not None) + wontfix + invalid != 1:
        raise UsageError("say one of --fixed-in V, --wontfix and --invalid")
    if fixed_in is not None and not is_version(fixed_in):
        raise UsageError(f"'{fixed_in}' is no version; write one such as 1.20.1")
    state: BugState = "fixed-in" if fixed_in is not None else "wontfix" if wontfix else "invalid"
    return _change(signature, lambda entry: entry.closed(state, note, utc_now(), fixed_in or ""), **where)


@command.command("reopen", short_help="Note that a closed bug is there.")
@_SIG
@ledger_options
@json_option
def reopen(signature: str, **where: Any) -> int:  # noqa: ANN401 - click passes options by name
    """Open bug SIG again: with a link it is reported, else open."""
    return _change(signature, lambda entry: entry.reopened(utc_now()), **where)


@command.command("dup", short_help="Note that two bugs are one.")
@_SIG
@click.argument("of", metavar="OF")
@ledger_options
@json_option
def dup(signature: str, of: str, ledger: Path | None, out: Path | None, as_json: bool) -> int:
    """Note that bug SIG is the same as bug OF, whose state then decides."""
    with _opened(ledger, out) as book:
        key = book.find(signature).key
        book.duplicate(key, book.find(of).key, utc_now())
        _show(book, key, as_json=as_json)
    return 0


@command.command("undup", short_help="Note that a duplicate is a bug of its own.")
@_SIG
@ledger_options
@json_option
def undup(signature: str, **where: Any) -> int:  # noqa: ANN401 - click passes options by name
    """Note that bug SIG, a duplicate, is a bug of its own: with a link it is reported, else open."""

    def step(entry: LedgerEntry) -> LedgerEntry:
        if entry.state != "duplicate-of":
            raise UsageError(f"{entry.key} is no duplicate, but {entry.state}")
        return entry.reopened(utc_now())

    return _change(signature, step, **where)


@command.command("export", short_help="Write the ledger to a TOML file.")
@click.argument("file", type=_OPENED, metavar="FILE")
@ledger_options
def export(file: Path, ledger: Path | None, out: Path | None) -> int:
    """Write all bugs to FILE, as TOML, for `miscompile bugs import` elsewhere."""
    with _opened(ledger, out) as book:
        entries = book.entries()
    write_ledger(file, entries)
    click.echo(f"{counted(len(entries), 'bug')} in {file}")
    return 0


@command.command("import", short_help="Take over the bugs of a TOML file.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE")
@ledger_options
def import_bugs(file: Path, ledger: Path | None, out: Path | None) -> int:
    """Take over the bugs in FILE, as `miscompile bugs export` writes it. The ledger is made if there is none.

    Of a bug that both know, the later decision counts. A campaign that then starts steers past the bugs of FILE.
    """
    entries = read_ledger(file)
    with Ledger.open(ledger_place(ledger, out)) as book:
        new, changed = book.merge(entries)
        click.echo(f"{counted(len(entries), 'bug')} in {file}: {new} new, {changed} changed, in {book.path}")
    return 0


def entry_json(entry: LedgerEntry) -> dict[str, Any]:
    """Return an entry as a JSON object: the signature as text, and in its parts."""
    data = asdict(entry)
    parts = data.pop("signature")
    return {"signature": entry.key, **data, "parts": {**parts, "culprits": list(parts["culprits"])}}


def _opened(ledger: Path | None, out: Path | None) -> Ledger:
    return Ledger.open(ledger_place(ledger, out), create=False)


def _change(
    signature: str, step: Callable[[LedgerEntry], LedgerEntry], ledger: Path | None, out: Path | None, as_json: bool
) -> int:
    with _opened(ledger, out) as book:
        key = book.find(signature).key
        book.change(key, step)
        _show(book, key, as_json=as_json)
    return 0


def _show(book: Ledger, key: str, *, as_json: bool) -> None:
    entry = book.get(key)
    assert entry is not None
    click.echo(json.dumps(entry_json(entry), indent=2) if as_json else f"{entry.key}: {_state(entry)}")


def _state(entry: LedgerEntry) -> str:
    told = {"fixed-in": entry.fixed_in, "duplicate-of": entry.duplicate_of}.get(entry.state, "")
    again = f" (regression in {entry.regressed_in})" if entry.regressed_in else ""
    return f"{entry.state} {told}".strip() + again


def _table(entries: list[LedgerEntry]) -> PlainTable:
    table = plain_table("state", "finding", "signature, link", "releases", numbers=("seen",))
    for entry in entries:
        ends = dict.fromkeys(filter(None, (entry.first_release, entry.last_release)))
        table.add_row(
            Text(_state(entry), style=_STYLES.get(entry.state, "dim")), Text(entry.finding),
            Text("\n".join(filter(None, (entry.key, entry.link)))), Text(" to ".join(ends)), str(entry.seen),
        )  # fmt: skip
    return table
