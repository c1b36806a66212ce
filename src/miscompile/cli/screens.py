"""The help of the command: `--help` shows what most people need on one screen, `--help-all` shows everything.

A screen has 24 lines of 80 columns, because a terminal that scrolls hides the usage line and the examples. A verb with
more to say names its usual options, and a form feed (`\\f`) in its docstring ends the part for the short screen.
"""

import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any

import click

LINES, COLUMNS = 24, 80
"""The smallest terminal that a short screen fits in."""

_EVERYTHING = "miscompile.everything"
_SENTENCE = re.compile(r"\.\s|\s\[|\.$")


class Verb(click.Command):
    """A command with two screens of help."""

    more = ""
    """What else the short screen says where to find, after the long screen."""

    def __init__(
        self,
        *args: Any,  # noqa: ANN401 - click's interface
        usual: Sequence[str] | None = None,
        sections: Mapping[str, Sequence[str]] | None = None,
        **given: Any,  # noqa: ANN401
    ) -> None:
        """`usual` has the options of the short screen, as in "--time"; with None the short screen has all of them.

        `sections` has the options of the long screen by heading; those that it does not name are listed last.
        """
        super().__init__(*args, **given)
        self.usual = usual
        self.sections = dict(sections or {})

    @property
    def abridged(self) -> bool:
        """Tell whether the short screen leaves something out."""
        return self.usual is not None or "\f" in (self.help or "")

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters of the command, `--help-all` and `--help`."""
        *own, last = super().get_params(ctx)
        return [*own, _HELP_ALL, last]

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the description, on the short screen up to the form feed."""
        shown, _, more = inspect.cleandoc(self.help or "").partition("\f")
        paragraphs = (shown.strip(), more.strip() if everything(ctx) else "")
        for text in filter(None, paragraphs):
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text(text)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the usual options with the first sentence of each, or all options under their headings."""
        if self.usual is not None and not everything(ctx):
            by_name = {name: option for option in self._listed(ctx) for name in option.opts}
            _write("Options", [_brief(by_name[name], ctx) for name in self.usual], formatter)
            return
        for title, records in self.headed(ctx):
            _write(title, records, formatter)

    def headed(self, ctx: click.Context) -> list[tuple[str, list[tuple[str, str]]]]:
        """Return names and text of all options, by heading."""
        rest = self._listed(ctx)
        found = []
        for title, names in self.sections.items():
            members = [option for name in names for option in rest if name in option.opts]
            rest = [option for option in rest if option not in members]
            found.append((title, [_record(option, ctx) for option in members]))
        found.append(("Other options" if found else "Options", [_record(option, ctx) for option in rest]))
        return [(title, records) for title, records in found if records]

    def _listed(self, ctx: click.Context) -> list[click.Option]:
        options = (param for param in self.get_params(ctx) if isinstance(param, click.Option) and not param.hidden)
        return [option for option in options if option is not _HELP_ALL]

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Name the long screen on the short one."""
        if self.abridged and not everything(ctx):
            formatter.write_paragraph()
            formatter.write_text(f"More: {ctx.command_path} --help-all{self.more}")


class VerbSet(Verb, click.Group):
    """A command with subcommands, which have two screens of help as well."""

    command_class = Verb

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options and then the subcommands."""
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)


def everything(ctx: click.Context) -> bool:
    """Tell whether the long screen was asked for."""
    return bool(ctx.meta.get(_EVERYTHING))


def long_help(command: click.Command, ctx: click.Context) -> str:
    """Return the long screen of a command."""
    ctx.meta[_EVERYTHING] = True
    try:
        return command.get_help(ctx)
    finally:
        del ctx.meta[_EVERYTHING]


def _print_everything(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    del param
    if value and not ctx.resilient_parsing:
        click.echo(long_help(ctx.command, ctx), color=ctx.color)
        ctx.exit()


_HELP_ALL = click.Option(
    ["--help-all"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_everything,
    help="Show this message with everything that it can say.",
)


def _record(option: click.Option, ctx: click.Context) -> tuple[str, str]:
    record = option.get_help_record(ctx)
    assert record is not None, "hidden options are left out before"
    return record


def _brief(option: click.Option, ctx: click.Context) -> tuple[str, str]:
    """Return the names and the first sentence of an option, without its default and its bounds."""
    names, text = _record(option, ctx)
    return names, _SENTENCE.split(text, maxsplit=1)[0] + "."


def _write(title: str, records: Sequence[tuple[str, str]], formatter: click.HelpFormatter) -> None:
    if records:
        with formatter.section(title):
            formatter.write_dl(records)
