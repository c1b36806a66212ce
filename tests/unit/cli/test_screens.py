"""Every `--help` fits on one screen of 24 lines and 80 columns; `--help-all` shows everything."""

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from miscompile.cli.main import SECTIONS, VERBS, program
from miscompile.cli.screens import COLUMNS, LINES, Verb, VerbSet

EIGHTY = {"COLUMNS": str(COLUMNS)}


def commands() -> Iterator[tuple[str, ...]]:
    """Yield the words of every command, those of subcommands as well."""
    context = click.Context(program)
    yield ()
    for verb in VERBS:
        yield (verb,)
        command = program.get_command(context, verb)
        if isinstance(command, click.Group):
            yield from ((verb, name) for name in command.list_commands(context))


COMMANDS = list(commands())


def screen(*words: str) -> str:
    result = CliRunner().invoke(program, words, env=EIGHTY, prog_name="miscompile")
    assert result.exit_code == 0, result.output
    return result.stdout


def command_of(words: tuple[str, ...]) -> Verb:
    command: click.Command | None = program
    for word in words:
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(program), word)
    assert isinstance(command, Verb)
    return command


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help_fits_on_a_screen(words: tuple[str, ...]) -> None:
    lines = screen(*words, "--help").splitlines()
    assert len(lines) <= LINES, "name the `usual` options of the verb, or end the short text with a form feed"
    assert [line for line in lines if len(line) > COLUMNS] == []


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_everything_is_on_the_long_screen(words: tuple[str, ...]) -> None:
    long, short, command = screen(*words, "--help-all"), screen(*words, "--help"), command_of(words)
    options = [one for one in command.params if isinstance(one, click.Option) and not one.hidden]
    assert all(name in long for option in options for name in option.opts + option.secondary_opts)
    assert all(long.count(f"  {option.opts[0]}") >= 1 for option in options)
    assert long.count("--help ") + long.count("--help  ") >= 1
    assert (f"More: {' '.join(('miscompile', *words))} --help-all" in short) == command.abridged
    assert command.abridged or long == short


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_headings_and_usual_options_name_options_that_exist(words: tuple[str, ...]) -> None:
    command = command_of(words)
    names = {name for option in command.params for name in option.opts}
    assert set(command.usual or ()) <= names
    listed = [name for names in command.sections.values() for name in names if name in names]
    assert len(listed) == len(set(listed)), "an option is under one heading"
    assert all(names & set(members) for members in command.sections.values()), "a heading without options"


def test_verbs_have_two_screens_and_subcommands_too() -> None:
    assert all(isinstance(command_of(words), Verb) for words in COMMANDS)
    assert isinstance(command_of(("bugs",)), VerbSet)


def test_the_first_screen_names_every_verb() -> None:
    short, long = screen("--help"), screen("--help-all")
    assert all(verb in short for verb in VERBS)
    for verbs in SECTIONS.values():
        assert all(f"  {verb} " in long and line in long for verb, line in verbs.items())


def test_an_option_is_cut_to_its_first_sentence() -> None:
    @click.command(cls=Verb, usual=("--one",))
    @click.option("--one", metavar="N", help="As in a.b, or more. It has bounds. [default: 7]")
    @click.option("--two", help="Another one.")
    def command() -> None:
        """Do something.

        \f
        This is the rest.
        """

    short = CliRunner().invoke(command, ["--help"]).stdout
    assert "As in a.b, or more.\n" in short
    assert "bounds" not in short
    assert "--two" not in short
    assert "the rest" not in short
    long = CliRunner().invoke(command, ["--help-all"]).stdout
    assert "[default: 7]" in long
    assert "--two" in long
    assert "This is the rest." in long
    assert "\f" not in long
