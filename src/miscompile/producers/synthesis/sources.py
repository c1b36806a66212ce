"""The patterns of a campaign: those that ship with the tool, and those of a library that the user names."""

from pathlib import Path

from miscompile.base.errors import UsageError
from miscompile.patterns.library import read_library
from miscompile.patterns.pattern import Pattern
from miscompile.patterns.shipped import shipped_patterns
from miscompile.producers.synthesis.options import OatestOptions


def patterns_for(options: OatestOptions) -> tuple[Pattern, ...]:
    """Return the patterns to use. Raises UsageError when the user's library cannot be read or holds none."""
    own: tuple[Pattern, ...] = ()
    if options.patterns:
        path = Path(options.patterns)
        if not path.is_file():
            raise UsageError(f"there is no file of patterns at {path}; `miscompile harvest` makes one")
        own = read_library(path)
        if not own:
            raise UsageError(f"{path} holds no patterns")
    return (*(shipped_patterns() if options.shipped else ()), *own)
