"""`miscompile reduce`: make a stored finding smaller."""

from pathlib import Path

import click

from miscompile.cli import values
from miscompile.cli.single import id_argument, json_option, one_record, out_argument, show_record


@click.command("reduce", short_help="Make a finding smaller.")
@out_argument
@id_argument
@click.option("--time", "seconds", default="2m", show_default=True, metavar="TIME", callback=values.duration,
              help="Stop after 90, 5m, 2h, ...")  # fmt: skip
@json_option
def command(out: Path, identifier: str, seconds: float, as_json: bool) -> int:
    """Reduce finding ID in OUT further: fewer nodes, smaller shapes, plainer attributes and values.

    \b
    Example:
      miscompile reduce miscompile-out wrong-0a1b2c3d4e --time 10m

    The finding's folder then holds the smaller model; the first one stays as original.onnx.
    """
    one_record(out, identifier)
    from miscompile.engine.single import reduce

    reduce(out, identifier, seconds)
    show_record(out, identifier, as_json=as_json)
    return 0
