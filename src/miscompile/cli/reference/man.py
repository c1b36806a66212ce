"""The manual page `miscompile(1)`, in the macros that groff and mandoc know."""

from collections.abc import Iterator

from miscompile.cli.exit_codes import FAILED, FINDINGS, NOTHING, STOPPED, UNTESTED, USAGE
from miscompile.cli.reference.pages import Block, CommandPage, walk

_CODES = {
    NOTHING: "Something was tested, and nothing was found.",
    FINDINGS: "There are findings; for repro and replay: the bug shows.",
    USAGE: "Another command line helps; one line on standard error says which.",
    FAILED: "The tool or the machine failed.",
    UNTESTED: "No test ended, or the compiler took none of the programs.",
    STOPPED: "The verb was interrupted before it had a result.",
}


_SIGNS = str.maketrans({"\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti", '"': "\\(dq"})
"""Signs that roff takes for requests or escapes, or prints as other signs."""


def man_page(page: CommandPage) -> str:
    """Return the source of the manual page. Without date and version it changes with the commands only."""
    lines = ['.TH MISCOMPILE 1 "" "miscompile" "User Commands"', ".SH NAME"]
    lines += ["miscompile \\- find crashes and wrong results in deep\\-learning compilers"]
    lines += [".SH SYNOPSIS", f".B {_text(page.usage)}", ".SH DESCRIPTION"]
    lines += _description(page)
    for title, records in page.options:
        lines += [f".SH {title.upper()}", *_records(records)]
    lines += [".SH COMMANDS"]
    for one in list(walk(page))[1:]:
        lines += [f".SS {_text(one.usage)}"]
        lines += _description(one)
        for title, records in one.options:
            lines += [".PP", f".I {_text(title)}:", *_records(records)]
    lines += [".SH EXIT STATUS"]
    for code, text in _CODES.items():
        lines += [".TP", f".B {code}", _text(text)]
    return "\n".join(lines) + "\n"


def _description(page: CommandPage) -> list[str]:
    """Return the lines of a description; no macro for a paragraph stands between a heading and the first one."""
    return [line for block in page.blocks for line in (".PP", *_block(block))][1:]


def _block(block: Block) -> Iterator[str]:
    if not block.verbatim:
        yield _text(block.text)
        return
    yield ".nf"
    yield from map(_text, block.text.split("\n"))
    yield ".fi"


def _records(records: tuple[tuple[str, str], ...]) -> Iterator[str]:
    for names, text in records:
        yield from (".TP", f".B {_text(names)}", _text(" ".join(text.split())) or "\\&")


def _text(text: str) -> str:
    """Return a line of text as roff: signs that it would take for requests or escapes are told so."""
    plain = text.translate(_SIGNS)
    return f"\\&{plain}" if plain.startswith(".") else plain
