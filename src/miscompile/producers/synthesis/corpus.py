"""The stored form of a seed pool, so that a campaign resumes with its seeds and lanes share theirs.

A corpus is a folder with one file for each pool that writes. A file is a readable library of patterns
(`patterns/library.py`), which `fuzz --producer 'oatest{patterns=FILE}'` accepts too. An entry is a seed with the passes
that changed it. Entries are only appended; an incomplete last entry, left by a killed process, is ignored.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from miscompile.base.errors import StoreError, write_error
from miscompile.ops.seed import Seed
from miscompile.patterns.library import HEAD, print_pattern, read_entries
from miscompile.patterns.pattern import Pattern, Trigger

_ENDING = ".patterns"
_END = "\nend\n"


class Kept(NamedTuple):
    """A seed of a corpus, with the passes that changed it and the names of the patterns in it."""

    seed: Seed
    passes: frozenset[str]
    patterns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Corpus:
    """The seeds in `folder`; this pool appends its own to the file called `name`. `target` is the target on which
    passes were observed.
    """

    folder: Path
    name: str
    target: str

    def load(self, most: int) -> Iterator[Kept]:
        """Yield the seeds of all files, at most `most` of the newest of each; unreadable ones are ignored."""
        for path in sorted(self.folder.glob(f"*{_ENDING}")):
            for pattern in _whole(path)[-most:]:
                if pattern.seed is not None:
                    passes = frozenset(trigger.name for trigger in pattern.triggers)
                    yield Kept(pattern.seed, passes, tuple(pattern.origin.split(" + ")) if pattern.origin else ())

    def add(self, kept: Kept, number: int) -> None:
        """Append a seed to this pool's file. Raises StoreError when it cannot be written."""
        triggers = tuple(Trigger(self.target, "", name) for name in sorted(kept.passes))
        entry = Pattern(f"{self.name}/{number}", kept.seed, None, "subgraph", triggers, " + ".join(kept.patterns))
        path = self.folder / f"{self.name}{_ENDING}"
        try:
            for place in (self.folder.parent, self.folder):  # not OUT: a deleted campaign must not come back in part
                place.mkdir(exist_ok=True)
            _mend(path)
            with path.open("a", encoding="utf-8") as file:
                file.write(print_pattern(entry))
        except OSError as error:
            raise write_error(f"seeds to {path}", error) from None


def _whole(path: Path) -> list[Pattern]:
    """Return the complete entries of a file; none if it is damaged otherwise."""
    try:
        text = path.read_text("utf-8", errors="replace")
        return list(
            read_entries(text[: text.rfind(_END) + len(_END)] if _END in text else HEAD + "\n", path, vetted=False)
        )
    except (OSError, StoreError):
        return []  # a corpus only saves work, so a campaign can do without it


def _mend(path: Path) -> None:
    """Write the header of a new file, and truncate an incomplete entry that a killed process left."""
    if not path.exists() or not path.stat().st_size:
        path.write_text(HEAD + "\n", "utf-8")
        return
    with path.open("rb+") as file:
        file.seek(max(0, path.stat().st_size - len(_END)))
        if file.read() in (_END.encode(), HEAD.encode()[-len(_END) + 1 :] + b"\n"):
            return
        file.seek(0)
        text = file.read()
        end = text.rfind(_END.encode())
        file.truncate(end + len(_END) if end >= 0 else len(HEAD) + 1)
