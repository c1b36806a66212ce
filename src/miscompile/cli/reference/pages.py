"""All that the long screens say, as data: one entry for each command, for the pages that are made from it."""

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import dedent

import click

from miscompile.cli.main import VERBS, program
from miscompile.cli.screens import Verb, VerbSet


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph of a description; `verbatim` if its lines are not to be filled."""

    text: str
    verbatim: bool


@dataclass(frozen=True, slots=True)
class CommandPage:
    """One command: what is called, what it says, its options by heading (names, text), and its own commands."""

    path: str
    usage: str
    line: str
    blocks: tuple[Block, ...]
    options: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    commands: "tuple[CommandPage, ...]"


def command_pages() -> CommandPage:
    """Return the page of `miscompile`, with those of all verbs below it. Imports every verb."""
    return _page(program, click.Context(program, info_name="miscompile", **program.context_settings), "")


def walk(page: CommandPage) -> Iterator[CommandPage]:
    """Yield a page and all below it."""
    yield page
    for inner in page.commands:
        yield from walk(inner)


def _page(command: click.Command, ctx: click.Context, line: str) -> CommandPage:
    assert isinstance(command, Verb), f"{ctx.command_path} has one screen of help only"
    return CommandPage(
        path=ctx.command_path,
        usage=" ".join((ctx.command_path, *command.collect_usage_pieces(ctx))),
        line=line or command.get_short_help_str(limit=200),
        blocks=tuple(_blocks(inspect.cleandoc(command.help or "").replace("\f", ""))),
        options=tuple((title, tuple(records)) for title, records in command.headed(ctx)),
        commands=tuple(_inner(command, ctx)) if isinstance(command, VerbSet) else (),
    )


def _inner(command: VerbSet, ctx: click.Context) -> Iterator[CommandPage]:
    for name in command.list_commands(ctx):
        found = command.get_command(ctx, name)
        assert found is not None
        yield _page(found, click.Context(found, info_name=name, parent=ctx), VERBS[name] if command is program else "")


def _blocks(text: str) -> Iterator[Block]:
    """Split a description at empty lines; a mark of click keeps the lines of a paragraph."""
    for part in filter(None, (one.strip("\n") for one in text.split("\n\n"))):
        if part.startswith("\b"):
            yield Block(dedent(part[1:].strip("\n")), verbatim=True)
        else:
            yield Block(" ".join(part.split()), verbatim=False)
