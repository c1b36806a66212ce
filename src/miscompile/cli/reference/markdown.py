"""The page `docs/commands.md`: every verb with all of its options."""

from collections.abc import Iterator
from textwrap import dedent, indent

from miscompile.cli.reference.pages import Block, CommandPage, walk

_HEAD = """# Commands

This page is made from the commands by `python -m miscompile.cli.reference`. `miscompile COMMAND --help-all`
shows the same in a terminal, and `man miscompile` has it as a manual page."""


def markdown(page: CommandPage) -> str:
    """Return the text of the page."""
    parts = [_HEAD]
    for one in walk(page):
        parts += [f"{'#' * (1 + len(one.path.split()))} {one.path}", f"    {one.usage}"]
        parts += map(_block, one.blocks)
        for title, records in one.options:
            parts += [f"{title}:", "\n".join(_items(records))]
        if one.commands:
            links = (f"- [{inner.path}](#{inner.path.replace(' ', '-')}): {inner.line}" for inner in one.commands)
            parts += ["Commands:", "\n".join(links)]
    return "\n\n".join(parts) + "\n"


def _block(block: Block) -> str:
    if not block.verbatim:
        return _escaped(block.text)
    title, _, rest = block.text.partition("\n")
    return f"{title}\n\n{_code(rest)}" if title.endswith(":") else _code(block.text)


def _code(text: str) -> str:
    return indent(dedent(text), "    ")


def _items(records: tuple[tuple[str, str], ...]) -> Iterator[str]:
    return (f"- `{names}`: {_escaped(' '.join(text.split()))}" for names, text in records)


def _escaped(text: str) -> str:
    """Return prose whose signs Markdown would take for its own; the text between backquotes stays."""
    pieces = text.split("`")
    return "`".join(piece if number % 2 else _marked(piece) for number, piece in enumerate(pieces))


def _marked(text: str) -> str:
    return "".join(f"\\{sign}" if sign in r"\*_[]<>" else sign for sign in text)
