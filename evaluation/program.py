"""The command `python -m evaluation`: one table of a paper each."""

from importlib import import_module

import click

from miscompile.cli.exit_codes import USAGE
from miscompile.cli.main import ExitCodeGroup

TABLES = {
    "hirfuzz-diversity": "evaluation.hirfuzz.commands:diversity",
    "hirfuzz-invalid": "evaluation.hirfuzz.commands:invalid",
    "hirfuzz-failures": "evaluation.hirfuzz.commands:failures",
    "polyjuice-sequences": "evaluation.polyjuice.commands:sequences",
    "polyjuice-overhead": "evaluation.polyjuice.commands:overhead",
    "orthrus-optbench": "evaluation.orthrus.commands:optbench",
    "orthrus-overhead": "evaluation.orthrus.commands:overhead",
    "mutants": "evaluation.mutants.commands:mutants",
    "known": "evaluation.known.commands:known",
    "known-operators": "evaluation.known.commands:operators",
    "bugs": "evaluation.bugs.commands:bugs",
    "oracles": "evaluation.oracles.commands:oracles",
    "oatest-splicing": "evaluation.oatest.commands:splicing",
    "oatest-ablation": "evaluation.oatest.commands:ablation",
    "oatest-relax": "evaluation.oatest.commands:relax",
    "opera": "evaluation.opera.commands:orders",
    "opera-cost": "evaluation.opera.commands:cost",
}
"""Where the command of each table is; it is imported when it is named or listed."""


class Tables(ExitCodeGroup):
    """The group of all tables, with the exit codes of `miscompile`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the tables, by paper."""
        del ctx
        return list(TABLES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a table, None when there is none."""
        del ctx
        if cmd_name not in TABLES:
            return None
        module, _, name = TABLES[cmd_name].partition(":")
        command = getattr(import_module(module), name)
        assert isinstance(command, click.Command)
        return command


@click.group(
    cls=Tables,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)
@click.option("--debug", is_flag=True, expose_value=False, help="On failure (exit code 3) show the traceback.")
@click.pass_context
def program(ctx: click.Context) -> None:
    """Measure the tables of published fuzzers again, with this tool, beside the figures of the papers.

    \b
    Examples:
      python -m evaluation hirfuzz-diversity --repetitions 3
      python -m evaluation oatest-splicing --targets toy --syntheses 50 --json figures.json
      python -m evaluation orthrus-optbench

    A table exits with 0 whatever its figures are. Ctrl-C keeps the figures so far.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        ctx.exit(USAGE)
