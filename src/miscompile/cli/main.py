"""The command `miscompile`: the verbs, and the handling of errors.

The exit codes are those of `cli.exit_codes`.
"""

import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

import click

from miscompile import __version__
from miscompile.base.errors import MiscompileError, NothingTested, StoreError, UsageError
from miscompile.cli.exit_codes import FAILED, NOTHING, STOPPED, UNTESTED, USAGE
from miscompile.cli.screens import VerbSet, everything

_STORED = ("findings", "report", "reduce", "bisect", "repro", "replay")
SECTIONS: dict[str, dict[str, str]] = {
    "Test a compiler": {
        "fuzz": "A campaign against one compiler.",
        "check": "A campaign around your own model.",
        "ci": "A bounded, repeatable run that fails on new findings.",
        "targets": "What can be tested here.",
    },
    "Handle findings": {
        "findings": "What a campaign found.",
        "repro": "Run a finding's standalone script.",
        "ready": "Which findings can be filed, and what the others lack.",
        "report": "Write reports of a campaign, or the site of several.",
    },
    "Go on with findings": {
        "reduce": "Make a finding smaller.",
        "bisect": "Find the passes, or the release, that are to blame.",
        "replay": "Run a finding's case through the tool again.",
        "recheck": "Run all findings' scripts on another release.",
        "bugs": "The ledger of known bugs.",
        "serve": "Show the site of campaigns live while they run.",
    },
    "Prepare campaigns": {
        "plan": "Plan files for repeatable campaigns.",
        "corpus": "Real models as seeds.",
        "harvest": "Patterns and operator instances out of tests.",
    },
    "Look at compilers and optimisations": {
        "support": "onnx's own test cases on a compiler.",
        "passes": "Which passes are triggered, and together with which others.",
        "patterns": "Pieces of graphs that passes look for.",
        "rules": "The rewrite rules of equivalent programs.",
    },
    "Test front ends": {
        "migrate": "Operators of library tests through compilers' front ends.",
        "export": "Regression suites for a compiler's own CI.",
    },
    "This command": {
        "help": "Explain a verb.",
        "completion": "Print the script that completes verbs and options in a shell.",
    },
}
"""The verbs with a line each, by heading. Every verb is `miscompile.cli.verbs.<verb>:command`, or
`miscompile.cli.verbs.findings:<verb>` if it takes a stored campaign; it is imported when it is called."""

VERBS = {verb: line for verbs in SECTIONS.values() for verb, line in verbs.items()}
_USUAL = ("Test a compiler", "Handle findings")
"""The headings of the short screen, which only names the other verbs."""


class ExitCodeGroup(VerbSet):
    """A click group that turns every error into one line and an exit code."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,  # noqa: ANN401 - click's interface
    ) -> NoReturn:
        """Run the command line and exit with its code."""
        del standalone_mode
        words, debug = _without_debug(sys.argv[1:] if args is None else args)
        sys.exit(self._guarded(words, prog_name or "miscompile", complete_var, extra, debug=debug))

    def _guarded(
        self, words: list[str], prog_name: str, complete_var: str | None, extra: dict[str, Any], *, debug: bool
    ) -> int:
        try:
            result = super().main(words, prog_name, complete_var, standalone_mode=False, **extra)
        except click.ClickException as error:
            return _print_error(_click_message(error), USAGE, debug=False)
        except UsageError as error:
            return _print_error(str(error), USAGE, debug=False)
        except (click.Abort, KeyboardInterrupt):
            click.echo("miscompile: stopped", err=True)
            return STOPPED
        except NothingTested as error:
            return _print_error(str(error), UNTESTED, debug=False)
        except StoreError as error:
            return _print_error(str(error), FAILED, debug=debug, hint="")
        except MiscompileError as error:
            return _print_error(str(error), FAILED, debug=debug)
        except Exception as error:  # noqa: BLE001 - every other error must end as exit code 3
            return _print_error(f"{type(error).__name__}: {error}", FAILED, debug=debug)
        return result if isinstance(result, int) else NOTHING


class VerbGroup(ExitCodeGroup):
    """The group of all verbs, which are loaded when they are called."""

    more = ", miscompile help VERB"

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs in the order of the help text."""
        del ctx
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the verb called `cmd_name`, None when there is none."""
        if cmd_name not in VERBS:
            return None
        if ctx.resilient_parsing:  # a shell asks for completions
            from miscompile.cli.completion import light_command

            return light_command(cmd_name, VERBS[cmd_name])
        module, name = ("findings", cmd_name) if cmd_name in _STORED else (cmd_name, "command")
        command = getattr(import_module(f"miscompile.cli.verbs.{module}"), name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs under their headings; the short screen only names the rarer ones. No verb is imported."""
        titles = SECTIONS if everything(ctx) else _USUAL
        for title in titles:
            with formatter.section(title):
                formatter.write_dl(list(SECTIONS[title].items()), col_max=12)
        if not everything(ctx):
            others = sorted(verb for title, verbs in SECTIONS.items() if title not in _USUAL for verb in verbs)
            formatter.write_paragraph()
            formatter.write_text(f"Other verbs: {', '.join(others)}.")


@click.group(
    cls=VerbGroup,
    usual=(),
    subcommand_metavar="VERB [ARGS]...",
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, message="miscompile %(version)s")
@click.option("--debug", is_flag=True, expose_value=False, help="On failure (exit code 3) show the traceback.")
@click.pass_context
def program(ctx: click.Context) -> None:
    """Find crashes and wrong results in deep-learning compilers.

    \b
      miscompile fuzz onnxruntime           five minutes, into ./miscompile-out
      miscompile findings miscompile-out    what was found
      miscompile repro miscompile-out ID    run a finding's standalone script
    \f
    Exit codes: 0 nothing found, 1 findings, 2 usage error, 3 the tool itself failed, 4 nothing was tested.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        ctx.exit(USAGE)


def main() -> NoReturn:
    """Entry point of the command."""
    program.main()


def _without_debug(args: Sequence[str]) -> tuple[list[str], bool]:
    """Remove `--debug` before `--` from the arguments, so that it can follow any verb."""
    words = list(args)
    end = words.index("--") if "--" in words else len(words)
    kept = [word for word in words[:end] if word != "--debug"] + words[end:]
    return kept, len(kept) < len(words)


def _click_message(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    hint = f" (see '{context.command_path} --help')" if context is not None else ""
    return f"{error.format_message().rstrip('.')}{hint}"


def _print_error(
    message: str, code: int, *, debug: bool, hint: str = "; run again with --debug for the traceback"
) -> int:
    if debug:
        traceback.print_exc()
    line = " ".join(message.split()) or "no message"
    click.echo(f"miscompile: error: {line}{hint if code == FAILED and not debug else ''}", err=True)
    return code
