"""`miscompile rules`: the rewrite rules, with their certificates, proofs and how often each applies."""

import json
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from miscompile.base.errors import SpecError, UsageError
from miscompile.base.wording import counted
from miscompile.cli.screens import Verb
from miscompile.reports.tables import PlainTable, plain_table


@click.command("rules", cls=Verb)
@click.argument("names", nargs=-1, metavar="[NAME...]")
@click.option(
    "--file",
    type=click.Path(exists=True, dir_okay=False, readable=True, path_type=Path),
    help="Rules of your own instead, in TOML: each is certified before it is listed.",
)
@click.option(
    "--trials", type=click.IntRange(min=0), default=12, show_default=True, help="Trials of each certificate; 0: none."
)
@click.option(
    "--graphs", type=click.IntRange(min=0), default=200, show_default=True, help="Generated graphs to count on."
)
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, metavar="N")
@click.option("--prove", is_flag=True, help="Prove each rule as far as possible: about a second a rule.")
@click.option("--markdown", is_flag=True, help="Print the proofs as a page in Markdown.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def command(names: tuple[str, ...], as_json: bool, markdown: bool, **given: Any) -> int:  # noqa: ANN401 - by name
    """List rules and groups of rules by NAME, all of them without one.

    \b
    Examples:
      miscompile rules
      miscompile rules associative distributive --trials 300
      miscompile rules lattice --prove
    \f
    A certificate gives the number of random trials in which both sides had the same type and the same values: in exact
    arithmetic, over ranks 0 to 5, broadcasting, every dtype the rule admits, and with NaN, infinities, signed zeros and
    extreme integers as far as the rule's class promises. Exit code 1 means that a rule did not pass.

    A proof covers all small shapes up to a bound. On integers and truth values it holds for all values of every width;
    on floats it gives the exceptions: NaN, infinities, signed zeros, overflow, subnormals, rounding. Some proofs need
    z3 (pip install 'miscompile[proofs]').

    \b
    More examples:
      miscompile rules --json
      miscompile rules --file my-rules.toml
    """
    if names and given["file"] is not None:
        raise UsageError("--file lists the rules of that file; leave the names out")
    from miscompile.engine.rulebook import rulebook, totals

    try:
        proofs = given["prove"] or markdown
        entries = rulebook("+".join(names), given["file"], given["trials"], given["graphs"], given["seed"], proofs)
    except SpecError as error:
        raise UsageError(str(error)) from None
    rows, counts = [entry.as_json() for entry in entries], totals(entries)
    if as_json:
        click.echo(json.dumps({"totals": counts, "rules": rows}, indent=2))
    elif markdown:
        from miscompile.reports.rule_proofs import page

        click.echo(page([entry.proof for entry in entries if entry.proof is not None]), nl=False)
    else:
        _show(rows, counts, given["prove"])
    return 0 if all(entry.sound for entry in entries) else 1


def _show(rows: Sequence[Mapping[str, Any]], counts: Mapping[str, int], prove: bool) -> None:
    """Print the table, the counterexamples and the counts."""
    Console().print(_proof_table(rows) if prove else _table(rows))
    for row in rows:
        if row["certificate"] is not None and not row["certificate"]["accepted"]:
            click.echo(f"unsound: {row['name']}: {row['certificate']['reason']}")
    if prove and find_spec("z3") is None:
        click.echo("z3 is not installed, and some proofs need it: pip install 'miscompile[proofs]'", err=True)
    sums = [counted(counts["rules"], "rule"), counted(counts["groups"], "group")]
    sums.extend((f"{counts['certified']} certified", f"{counts['applied']} applied"))
    if prove:
        sums.extend(f"{counts[status]} {status}" for status in _STATUSES)
    click.echo(", ".join(sums))


_STATUSES = ("proved", "exact on a domain", "tested only", "refuted")


def _proof_table(rows: Sequence[Mapping[str, Any]]) -> PlainTable:
    table = plain_table("rule", "class", "proof", numbers=("instances",))
    for row in rows:
        proof = row["proof"]
        table.add_row(row["name"], row["exactness"], proof["text"], str(proof["instances"]))
    return table


def _table(rows: Sequence[Mapping[str, Any]]) -> PlainTable:
    table = plain_table("rule", "group", "class", "left", "right", numbers=("certificate", "applied"))
    for row in rows:
        table.add_row(
            row["name"], row["group"], row["exactness"], row["left"], row["right"], _certified(row), str(row["unions"])
        )
    return table


def _certified(row: Mapping[str, Any]) -> str:
    """Return the cell for a certificate."""
    found = row["certificate"]
    if found is None:
        return "-"
    return f"{found['built']}/{found['trials']}" if found["accepted"] else "unsound"
