"""How often a compiler's own tests use each operator (Num_DLC in OPERA), as data with provenance.

The data is in `counts-<library>.json` in the compiler's folder. A checkout of a repository is counted anew with

    python -m miscompile.migration.ranking.counts CHECKOUT COMPILER LIBRARY [--repository R] [--add] --out FILE
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import metadata, resources
from pathlib import Path
from typing import Any

from miscompile.base.errors import UsageError
from miscompile.migration.ranking.checkout import checkout
from miscompile.migration.ranking.recipes import Recipe, apply, recipes
from miscompile.targets.registry import parse_target

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Source:
    """The origin of counts: a repository at a commit of a date, the number of files, and the command.

    `suite` says which version of onnx the cases of its node suite are from and how many of them are run, empty when
    the compiler's tests do not run it.
    """

    repository: str
    commit: str
    date: str
    files: int
    command: str
    suite: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Counts:
    """Uses of a library's operators in a compiler's own tests, by `score.key_of`.

    `uses` are those that stand in the compiler's repositories, `suite` the cases of onnx's own node suite that its
    tests run.
    """

    compiler: str
    library: str
    sources: tuple[Source, ...]
    uses: Mapping[str, int]
    suite: Mapping[str, int]

    def total(self) -> Mapping[str, int]:
        """Return all uses."""
        return Counter(self.uses) + Counter(self.suite)

    def added(self, other: "Counts") -> "Counts":
        """Return the counts of both, for a compiler whose tests are in several repositories."""
        if (self.compiler, self.library) != (other.compiler, other.library):
            raise UsageError(f"counts of {self.compiler} and of {other.compiler} are not for the same front end")
        repositories = {source.repository for source in other.sources}
        if twice := [source.repository for source in self.sources if source.repository in repositories]:
            raise UsageError(f"{twice[0]} is counted already; count every repository anew into a new file")
        uses, suite = Counter(self.uses) + Counter(other.uses), Counter(self.suite) + Counter(other.suite)
        return replace(self, sources=(*self.sources, *other.sources), uses=uses, suite=suite)


def count(path: Path, compiler: str, library: str, repository: str = "") -> Counts:
    """Count a checkout. `repository` chooses between several that hold the compiler's tests; the first is the default.

    Raises UsageError when there is no recipe, or when the checkout has no such tests.
    """
    recipe = _recipe(compiler, library, repository)
    tree = checkout(path)
    found = apply(recipe, tree)
    suite = f"onnx {metadata.version('onnx')}, {found.cases} cases" if recipe.suite else ""
    command = f"python -m miscompile.migration.ranking.counts {recipe.repository} {compiler} {library}"
    source = Source(recipe.repository, tree.commit, tree.date, found.files, command, suite)
    return Counts(compiler, library, (source,), found.uses, found.suite)


def _recipe(compiler: str, library: str, repository: str) -> Recipe:
    known = recipes()
    kept = [recipe for recipe in known.get((compiler, library), ()) if repository in ("", recipe.repository)]
    if not kept:
        named = ", ".join(f"{one} {other}" for one, other in known)
        raise UsageError(f"nobody has said where the tests of {compiler} for {library} are; known are: {named}")
    return kept[0]


def counts_of(target: str, library: str) -> Mapping[str, int]:
    """Return all uses of the library's operators in the tests of the compiler that the spec `target` names.

    Empty when they have not been counted: then every operator counts as tested once. Data of one version of a compiler
    serves for all.
    """
    package = parse_target(target).about.package
    file = resources.files(package).joinpath(f"counts-{library}.json")
    return from_json(json.loads(file.read_text("utf-8"))).total() if file.is_file() else {}


def to_json(counts: Counts) -> dict[str, Any]:
    """Return the counts as a JSON object, operators by name."""
    return {
        "schema": SCHEMA,
        "compiler": counts.compiler,
        "library": counts.library,
        "sources": [asdict(source) for source in counts.sources],
        "uses": dict(sorted(counts.uses.items())),
        "suite": dict(sorted(counts.suite.items())),
    }


def from_json(data: Mapping[str, Any]) -> Counts:
    """Return the counts of a JSON object. Raises UsageError for what is none."""
    try:
        if data["schema"] != SCHEMA:
            raise UsageError(f"these counts have schema {data['schema']}, this miscompile reads {SCHEMA}; count anew")
        sources = tuple(Source(**source) for source in data["sources"])
        uses, suite = ({str(key): int(data[part][key]) for key in data[part]} for part in ("uses", "suite"))
        return Counts(str(data["compiler"]), str(data["library"]), sources, uses, suite)
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"these are no counts ({type(error).__name__}: {error})") from None


def main(arguments: Sequence[str]) -> int:
    """Count a checkout and write the file; return the exit code."""
    parser = argparse.ArgumentParser(prog="counts", description="Count operators in a compiler's own tests.")
    parser.add_argument("checkout", type=Path, help="a folder, or a git directory, whose newest commit is counted")
    parser.add_argument("compiler")
    parser.add_argument("library")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--add", action="store_true", help="add to the counts that --out holds, of other repositories")
    parser.add_argument("--repository", default="", help="which of the compiler's repositories this is")
    parser.add_argument("--from", dest="taken", default="", help="the repository that it was taken from, if another")
    parser.add_argument("--commit", default="", help="for a folder that is no git repository")
    parser.add_argument("--date", default="", help="for a folder that is no git repository")
    parser.add_argument("--note", default="")
    given = parser.parse_args(arguments)
    try:
        counts = count(given.checkout, given.compiler, given.library, given.repository)
        [source] = counts.sources
        named = replace(
            source,
            repository=given.taken or source.repository,
            commit=given.commit or source.commit,
            date=given.date or source.date,
            note=given.note,
        )
        counts = replace(counts, sources=(named,))
        if given.add:
            counts = from_json(json.loads(given.out.read_text("utf-8"))).added(counts)
        given.out.write_text(json.dumps(to_json(counts), indent=1) + "\n", "utf-8")
    except (UsageError, OSError, json.JSONDecodeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
