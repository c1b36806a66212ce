"""Files of a repository: of a folder, or of the newest commit of a git directory without a work tree."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from miscompile.base.child import collect
from miscompile.base.errors import UsageError


@dataclass(frozen=True, slots=True)
class Checkout:
    """A repository at one commit. `commit` and `date` are empty for a folder that is no git repository."""

    path: Path
    git: Path | None
    commit: str = ""
    date: str = ""

    def files(self, pattern: "re.Pattern[str]") -> Iterator[tuple[str, str]]:
        """Yield name and text of the files whose whole name `pattern` matches, by name.

        In a git repository, only files of the commit count. A file that is listed but absent, as in a snapshot without
        its largest files, is skipped.
        """
        if self.git is None:
            for path in sorted(self.path.rglob("*")):
                name = path.relative_to(self.path).as_posix()
                if pattern.fullmatch(name) and path.is_file():
                    yield name, path.read_text("utf-8", "replace")
            return
        listed = _git(self.git, "ls-tree", "-r", "-z", "--name-only", self.commit).decode("utf-8", "replace")
        names = [name for name in listed.split("\0") if pattern.fullmatch(name)]
        yield from _contents(self.git, self.commit, names)


def checkout(path: Path) -> Checkout:
    """Return the repository at `path`. Raises UsageError when there is no folder, or git cannot read its own."""
    if not path.is_dir():
        raise UsageError(f"{path} is no folder; give a checkout of the compiler's repository")
    git = path / ".git" if (path / ".git").is_dir() else path if (path / "objects").is_dir() else None
    if git is None:
        return Checkout(path, None)
    commit, date = _git(git, "log", "-1", "--format=%H %cs").decode().split()
    return Checkout(path, git, commit, date)


def _contents(git: Path, commit: str, names: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the files of a commit, read by one process."""
    asked = "".join(f"{commit}:{name}\n" for name in names).encode()
    data = _git(git, "cat-file", "--batch", given=asked)
    place = 0
    for name in names:
        end = data.index(b"\n", place)
        head = data[place:end].split()
        place = end + 1
        if head[-1] == b"missing":
            continue
        size = int(head[-1])
        yield name, data[place : place + size].decode("utf-8", "replace")
        place += size + 1


def _git(git: Path, *arguments: str, given: bytes = b"") -> bytes:
    try:
        ended = collect(["git", f"--git-dir={git}", *arguments], given=given)
    except FileNotFoundError:
        raise UsageError("git is not installed; give a folder that is no git repository") from None
    if ended.status:
        reason = ended.errors().strip().splitlines() or ["no reason"]
        raise UsageError(f"git cannot read {git}: {reason[-1]}")
    return ended.stdout
