"""Counts of the operators in a compiler's own tests, from a checkout of its repository:

python -m evaluation.opera.counting CHECKOUT COMPILER LIBRARY [--repository R] [--add] --out FILE
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from evaluation.opera.counting.checkout import checkout
from evaluation.opera.counting.recipes import Recipe, apply, recipes
from miscompile.base.errors import UsageError
from miscompile.migration.ranking.counts import SCHEMA, Counts, Source, from_json


def count(path: Path, compiler: str, library: str, repository: str = "") -> Counts:
    """Count a checkout. `repository` chooses between several that hold the compiler's tests; the first is the default.

    Raises UsageError when there is no recipe, or when the checkout has no such tests.
    """
    recipe = _recipe(compiler, library, repository)
    tree = checkout(path)
    found = apply(recipe, tree)
    suite = f"onnx {metadata.version('onnx')}, {found.cases} cases" if recipe.suite else ""
    command = f"python -m evaluation.opera.counting {recipe.repository} {compiler} {library}"
    source = Source(recipe.repository, tree.commit, tree.date, found.files, command, suite)
    return Counts(compiler, library, (source,), found.uses, found.suite)


def _recipe(compiler: str, library: str, repository: str) -> Recipe:
    known = recipes()
    kept = [recipe for recipe in known.get((compiler, library), ()) if repository in ("", recipe.repository)]
    if not kept:
        named = ", ".join(f"{one} {other}" for one, other in known)
        raise UsageError(f"the locations of the tests of {compiler} for {library} are not known; known are: {named}")
    return kept[0]


def added(one: Counts, other: Counts) -> Counts:
    """Return the counts of both, for a compiler whose tests are in several repositories.

    Raises UsageError when they are not for the same front end, or when both count one repository.
    """
    if (one.compiler, one.library) != (other.compiler, other.library):
        raise UsageError(f"counts of {one.compiler} and of {other.compiler} are not for the same front end")
    repositories = {source.repository for source in other.sources}
    if twice := [source.repository for source in one.sources if source.repository in repositories]:
        raise UsageError(f"{twice[0]} is counted already; count every repository anew into a new file")
    uses, suite = Counter(one.uses) + Counter(other.uses), Counter(one.suite) + Counter(other.suite)
    return replace(one, sources=(*one.sources, *other.sources), uses=uses, suite=suite)


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
            counts = added(from_json(json.loads(given.out.read_text("utf-8"))), counts)
        given.out.write_text(json.dumps(to_json(counts), indent=1) + "\n", "utf-8")
    except (UsageError, OSError, json.JSONDecodeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
