"""`miscompile bisect`: find the passes that are to blame, or the first release that shows a finding."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from miscompile.base.errors import UsageError
from miscompile.cli.environments import tell
from miscompile.cli.single import id_argument, json_option, one_record, out_argument, show_record


@click.command("bisect", short_help="Find the passes, or the release, that are to blame.")
@out_argument
@id_argument
@click.option("--releases", is_flag=True, help="Find the first release of the compiler that shows the finding.")
@click.option("--keep", is_flag=True, help="With --releases: keep the environments that are made.")
@json_option
def command(out: Path, identifier: str, releases: bool, keep: bool, as_json: bool) -> int:
    """Find the smallest set of passes that must be on for finding ID in OUT to show.

    With --releases, find the first release that shows it: the finding's script runs in environments with older
    releases, which are made one after the other (each some hundred megabytes) and removed again. The search assumes
    that every release from the first bad one to the one of the finding shows it. Releases that cannot be
    installed or cannot run the script are skipped.

    \b
    Examples:
      miscompile bisect miscompile-out wrong-0a1b2c3d4e
      miscompile bisect miscompile-out wrong-0a1b2c3d4e --releases
    """
    if keep and not releases:
        raise UsageError("--keep goes with --releases")
    one_record(out, identifier)
    from miscompile.engine import single

    if not releases:
        single.bisect(out, identifier)
        show_record(out, identifier, as_json=as_json)
        return 0
    found = single.releases(out, identifier, keep, tell).as_json()
    click.echo(json.dumps({"id": identifier, **found}, indent=2) if as_json else verdict(identifier, found))
    return 0


def verdict(identifier: str, found: Mapping[str, Any]) -> str:
    """Return the result of a search among releases, in a few lines."""
    name, newest = found["distribution"], found["newest"]
    lines = [f"{identifier} first shows in {name} {found['first_bad']}", _before(found)]
    if newest["release"] != found["first_bad"]:
        answer = {"shows": "shows it", "absent": "does not show it", "skipped": "cannot say"}[newest["answer"]]
        lines.append(f"the newest release, {newest['release']}, {answer}")
    if found["skipped"]:
        lines.append(f"skipped: {', '.join(found['skipped'])}")
    return "\n".join(lines)


def _before(found: Mapping[str, Any]) -> str:
    if found["last_good"] is not None:
        return f"the last release without it is {found['last_good']}"
    if found["tried"][0]["release"] == found["first_bad"]:
        return "that is the oldest release"
    return "no older release can run its script"
