"""`python -m evaluation.bugs.page`: write `docs/bugs-found.md`, one line for each cause of a bug that was found.

The lines come from the `known.toml` files of the targets, whose bugs campaigns have found and somebody had reported,
and from `docs/bugs-found.toml`, whose bugs the documents describe.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from miscompile.targets.known import KnownBug, known, known_in
from miscompile.targets.registry import about, target_names

ROOT = Path(__file__).parents[2]
PAGE, DATA = ROOT / "docs" / "bugs-found.md", ROOT / "docs" / "bugs-found.toml"
CLASSES = (
    "memory safety",
    "wrong values",
    "crash",
    "wrong shape or type",
    "invalid result",
    "error on a valid model",
    "wrong on special values",
    "hang",
    "not noted",
)
"""The worst first: what reads or writes memory that is not its own, then wrong values that nobody is told about."""

_KINDS = {
    "memory": "memory safety",
    "wrong": "wrong values",
    "death": "crash",
    "shape": "wrong shape or type",
    "dtype": "wrong shape or type",
    "exception": "error on a valid model",
    "special": "wrong on special values",
    "hang": "hang",
}
"""The class of a signature's kind."""

_PASS = re.compile(r"[A-Za-z_]\w*(?:(?:\+|::)\w+)*")
_PLANTED = frozenset({"toy", "reference"})
"""A compiler with planted bugs, and one that votes only."""

_HEAD = """# Bugs found

Each line is one cause of a bug in a compiler, an optimiser or an exporter. `python -m evaluation.bugs.page` makes this
page of the files `known.toml` in the folders of the targets, and of `bugs-found.toml` beside this page. The bugs in
`known.toml` had been reported when a campaign found them. A campaign counts them in every release, so that no version
is noted. Where the column *upstream* says "none found", somebody has looked for a report and found none; "not noted"
says that no document tells. The bugs that are planted in the toy compiler are left out.

A cause with a *script* can be seen. The script needs the compiler and `onnx`. Its exit code is 1
where the bug shows, or the bug ends it. `python -m evaluation bugs` runs all scripts whose compilers are installed.
"""


@dataclass(frozen=True, slots=True)
class Bug:
    """One cause: the target, the version (empty if none is noted), what is to blame, a sentence, class and link.

    `script` is the path of a standalone script from the root of the repository, and `fixed_in` the first release
    without the bug; both are empty where there is none.
    """

    target: str
    version: str
    culprit: str
    cause: str
    kind: str
    upstream: str
    script: str = ""
    fixed_in: str = ""


def described() -> list[Bug]:
    """Return the bugs in `docs/bugs-found.toml`. Raises KeyError for an incomplete entry."""
    return [_described(entry) for entry in tomllib.loads(DATA.read_text("utf-8"))["bug"]]


def reported() -> list[Bug]:
    """Return the bugs in the `known.toml` files, those with one link as one bug of the first target that has it.

    Those of which `docs/bugs-found.toml` has the link are left out, because it has a script or tells more.
    """
    told = {entry["link"] for entry in tomllib.loads(DATA.read_text("utf-8"))["bug"] if "link" in entry}
    by_link: dict[str, tuple[str, list[KnownBug]]] = {}
    for target in sorted(set(target_names()) - _PLANTED):
        for via in ("", *_vias(target)):
            for entry in (bug for bug in _bugs(target, via) if bug.link not in told):
                owner, entries = by_link.setdefault(entry.link, (target, []))
                entries += [entry] if owner == target else []
    return [_reported(target, link, bugs) for link, (target, bugs) in by_link.items()]


def page(bugs: Sequence[Bug]) -> str:
    """Return the text of the page."""
    kinds = ", ".join(f"{sum(bug.kind == kind for bug in bugs)} {kind}" for kind in CLASSES if _any(bugs, kind))
    parts = [_HEAD, f"{len(bugs)} causes: {kinds}.\n"]
    for target in sorted({bug.target for bug in bugs}):
        parts += [f"## {target}\n", "| class | culprit | cause | seen in | upstream |\n|---|---|---|---|---|"]
        own = (bug for bug in bugs if bug.target == target)
        parts += [_row(bug) for bug in sorted(own, key=lambda bug: (CLASSES.index(bug.kind), bug.culprit, bug.cause))]
        parts.append("")
    return "\n".join(parts).rstrip() + "\n"


def _any(bugs: Iterable[Bug], kind: str) -> bool:
    return any(bug.kind == kind for bug in bugs)


def _row(bug: Bug) -> str:
    cause = bug.cause.replace("|", "\\|")
    cause += f" [Script]({bug.script.removeprefix('docs/')})" if bug.script else ""
    version = f"{bug.version}; mended in {bug.fixed_in}" if bug.fixed_in else bug.version
    cells = (bug.kind, bug.culprit and f"`{bug.culprit}`", cause, version, bug.upstream)
    return "| " + " | ".join(cell or "-" for cell in cells) + " |"


def _described(entry: Mapping[str, Any]) -> Bug:
    absent = "none found" if entry.get("looked_up") else "not noted"
    upstream = _short(entry["link"]) if "link" in entry else absent
    kind = CLASSES[CLASSES.index(entry["class"])]
    script = entry["source"] if entry["source"].endswith(".py") else ""
    named = (entry["target"], entry.get("version", ""), entry.get("culprit", ""), entry["cause"], kind, upstream)
    return Bug(*named, script, entry.get("fixed_in", ""))


def _vias(target: str) -> Iterator[str]:
    """Yield the front ends of a target that have a `known.toml` of their own."""
    folder = files(about(target).package)
    return (via for via in about(target).fronts if folder.joinpath(f"known-{via}.toml").is_file())


def _bugs(target: str, via: str) -> list[KnownBug]:
    """Return the bugs of one file, without those that it takes over from another target."""
    found = known_in(about(target).package, via).bugs if via else known(target).bugs
    own = f"{target}{{via={via}}}" if via else target
    return [bug for bug in found if bug.signature.partition(":")[0] == own]


def _reported(target: str, link: str, bugs: Sequence[KnownBug]) -> Bug:
    parts = [bug.signature.rstrip("$").split(":", 2) for bug in bugs]
    kind = min((_KINDS[part[1].partition("@")[0]] for part in parts), key=CLASSES.index)
    culprits = [part[2].rstrip(":") for part in parts if len(part) > 2]
    named = dict.fromkeys(one for one in culprits if _PASS.fullmatch(one))
    note = bugs[0].note
    first = note.partition(" ")[0]
    sentence = f"{note[0].upper()}{note[1:]}." if first.islower() and first.isalpha() and len(first) > 1 else f"{note}."
    return Bug(target, "", ", ".join(named), sentence, kind, _short(link))


def _short(link: str) -> str:
    """Return a link with the name that GitHub gives it, such as `onnxruntime#123`."""
    found = re.fullmatch(r"https://github\.com/[\w.-]+/([\w.-]+)/(?:issues|pull)/(\d+)", link)
    return f"[{found[1]}#{found[2]}]({link})" if found else f"<{link}>"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page([*described(), *reported()]), "utf-8")


if __name__ == "__main__":
    main()
