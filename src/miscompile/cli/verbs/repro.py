"""`miscompile repro`: run a finding's standalone script."""

import json
from pathlib import Path

import click

from miscompile.base.errors import ExecutionError, StoreError
from miscompile.cli.single import id_argument, json_option, out_argument
from miscompile.environments.resolve import python_of, versions_of
from miscompile.findings.folder import load, place
from miscompile.triage.confirm import run_script


@click.command("repro", short_help="Run a finding's standalone script.")
@out_argument
@id_argument
@click.option("--limit-seconds", type=click.FloatRange(0, min_open=True), default=300.0, show_default=True,
              metavar="SECONDS", help="Give up after this long.")  # fmt: skip
@json_option
def command(out: Path, identifier: str, limit_seconds: float, as_json: bool) -> int:
    """Run the standalone script of finding ID in OUT, in a fresh Python process.

    \b
    Example:
      miscompile repro miscompile-out wrong-0a1b2c3d4e

    Exit code 1 when the bug shows, 0 when it does not.
    """
    stored = load(out, identifier)
    script = place(out, identifier).resolve() / "repro.py"
    if not stored.script:
        raise StoreError(f"finding {identifier} has no script yet; `miscompile replay` runs its case")
    target = stored.finding.property.target
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
