"""The ledger that a command works on: the one that it names, or that of a campaign."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from miscompile.api.plans import default_out
from miscompile.engine.plan import Plan
from miscompile.findings.ledger import LEDGER
from miscompile.findings.store import Store, holds_campaign

Function = TypeVar("Function", bound=Callable[..., object])


def ledger_options(function: Function) -> Function:
    """Decorate a verb with the options that name a ledger."""
    folder = click.Path(file_okay=False, path_type=Path)
    told = "Use the ledger of the campaign in DIR. [default: the last miscompile-out[-N] here]"
    out = click.option("--out", type=folder, metavar="DIR", help=told)
    return ledger_option(out(function))


def ledger_option(function: Function) -> Function:
    """Decorate a verb with the option that names a ledger's file."""
    return click.option("--ledger", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
                        help="Use this ledger. [default: the campaign's]")(function)  # fmt: skip


def ledger_place(ledger: Path | None, out: Path | None) -> Path:
    """Return the file of the ledger: `ledger`, or that of the campaign in `out`, None: in the last campaign's folder.

    Raises StoreError when the folder of the campaign cannot be read.
    """
    if ledger is not None:
        return ledger
    place = out or default_out(resume=True)
    if not holds_campaign(place):
        return place / LEDGER
    with Store.open(place, create=False) as store:
        campaign = store.campaign()
    return Plan("", out=place, ledger=None if campaign is None else campaign.options.get("ledger")).ledger_file
