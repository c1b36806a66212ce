"""`python -m miscompile.cli.reference [FOLDER]`: write the files that are made from the commands.

FOLDER is a checkout of the repository, without it the one that the package is imported from.
"""

import sys
from pathlib import Path

from miscompile.cli.completion import TABLE
from miscompile.cli.reference.man import man_page
from miscompile.cli.reference.markdown import markdown
from miscompile.cli.reference.pages import command_pages
from miscompile.cli.reference.table import table


def made() -> dict[str, str]:
    """Return the text of each file by its path in the repository."""
    page = command_pages()
    return {
        f"src/miscompile/cli/{TABLE}": table(),
        "docs/commands.md": markdown(page),
        "man/miscompile.1": man_page(page),
    }


def main() -> None:
    """Write the files below the folder that the command line names."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[4]
    for name, text in made().items():
        place = root / name
        place.parent.mkdir(exist_ok=True)
        place.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
