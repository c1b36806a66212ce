"""`miscompile serve`: the site of campaigns, live, on this machine alone."""

from pathlib import Path

import click

from miscompile.cli.screens import Verb
from miscompile.cli.verbosity import tell
from miscompile.reports.site.live import SiteServer


@click.command("serve", cls=Verb)
@click.argument("outs", nargs=-1, required=True, metavar="OUT...",
                type=click.Path(exists=True, file_okay=False, path_type=Path))  # fmt: skip
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="0: any that is free.")
@click.option("--refresh", type=click.IntRange(0, 86400), default=15, show_default=True, metavar="SECONDS",
              help="Load pages anew after so long; 0: never.")  # fmt: skip
@click.option("--support", multiple=True, type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR",
              help="Show the support tables in this folder; can be repeated.")  # fmt: skip
def command(outs: tuple[Path, ...], port: int, refresh: int, support: tuple[Path, ...]) -> int:
    """Serve the site of the campaigns in OUT on the loopback address, until Ctrl-C.

    \b
    Examples:
      miscompile serve miscompile-out
      miscompile serve nightly-ort nightly-tvm --port 9000

    The pages are made from the stores when they are asked for, so that they show a running campaign as it stands.
    Nobody on another machine can reach them.
    """
    with SiteServer.start(outs, port, refresh, support) as server:
        click.echo(server.address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            tell("miscompile: stopped")
    return 0
