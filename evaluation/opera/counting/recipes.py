"""The locations of each compiler's own tests of a library's operators, and the ways to count them.

`data/<compiler>.toml` lists them. Paths there are those of the repositories in 2026, with older ones beside them
where an older checkout is counted as well.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from evaluation.opera.counting import node_suites, occurrences
from evaluation.opera.counting.checkout import Checkout
from evaluation.opera.counting.node_suites import Included
from miscompile.base.errors import SpecError, UsageError


@dataclass(frozen=True, slots=True)
class Part:
    """Tests of one kind: files by regular expression, and the function that counts the operators in one of them."""

    files: str
    count: Callable[[str, str], Counter[str]]


@dataclass(frozen=True, slots=True)
class Suite:
    """A compiler's run of onnx's node tests: the file that lists them, and its reader."""

    file: str
    included: Callable[[str], Included]


@dataclass(frozen=True, slots=True)
class Recipe:
    """How the tests of one compiler for the operators of one library are counted, in one of its repositories."""

    repository: str
    parts: tuple[Part, ...]
    suite: Suite | None = None
    excluded: str = ""
    """A file that lists the tests of `parts` which are not run, a part of their pytest name a line."""


@dataclass(frozen=True, slots=True)
class OperatorUses:
    """The uses of operators in a checkout: in its own tests, and in the cases of onnx's suite that it runs."""

    files: int
    uses: Mapping[str, int]
    suite: Mapping[str, int] = field(default_factory=dict)
    cases: int = 0


def apply(recipe: Recipe, checkout: Checkout) -> OperatorUses:
    """Count the uses.

    Raises UsageError when the checkout has none of the files, because its layout may have changed.
    """
    files, uses = 0, Counter[str]()
    excluded = _lines(checkout, recipe.excluded)
    for part in recipe.parts:
        for name, text in checkout.files(re.compile(part.files)):
            files += 1
            if recipe.excluded:
                uses.update(occurrences.keras_in_python(text, name, excluded))
            else:
                uses.update(part.count(text, name))
    if not uses:
        raise UsageError(f"{checkout.path} has none of the tests to count; is it {recipe.repository}?")
    if recipe.suite is None:
        return OperatorUses(files, uses)
    found = list(checkout.files(re.compile(re.escape(recipe.suite.file))))
    if not found:
        raise UsageError(f"{checkout.path} has no {recipe.suite.file}; is it {recipe.repository}?")
    included = recipe.suite.included(found[0][1])
    run = [operators for name, operators in node_suite().items() if included(name)]
    return OperatorUses(files + 1, uses, Counter(operator for operators in run for operator in operators), len(run))


def _lines(checkout: Checkout, file: str) -> list[str]:
    if not file:
        return []
    texts = [text for _, text in checkout.files(re.compile(re.escape(file)))]
    return [line.strip() for text in texts for line in text.splitlines() if line.strip()]


@cache
def node_suite() -> Mapping[str, tuple[str, ...]]:
    """Return the operators of every node case of the installed onnx, by the case's name."""
    from miscompile.producers.slices.node_cases import node_cases  # imported here, because it makes all cases

    return {case.name: (case.op,) for case in node_cases()}


@cache
def recipes() -> Mapping[tuple[str, str], tuple[Recipe, ...]]:
    """Return the recipes by compiler and library, read from `data`.

    Several recipes are for several repositories, whose counts are added. Raises SpecError for a malformed file.
    """
    found: dict[tuple[str, str], tuple[Recipe, ...]] = {}
    for file in sorted(Path(__file__).with_name("data").glob("*.toml")):
        for row in tomllib.loads(file.read_text("utf-8"))["recipe"]:
            try:
                key = (file.stem, row["library"])
                found[key] = (*found.get(key, ()), _recipe(row))
            except (KeyError, TypeError, AttributeError) as error:
                raise SpecError(f"{file} is malformed: {error}") from None
    return found


def _recipe(row: Mapping[str, Any]) -> Recipe:
    """Return one entry; `count` names a function of `occurrences`, `reader` one of `node_suites`."""
    parts = tuple(Part(part["files"], getattr(occurrences, part["count"])) for part in row["parts"])
    suite = row.get("suite")
    return Recipe(
        row["repository"],
        parts,
        None if suite is None else Suite(suite["file"], getattr(node_suites, suite["reader"])),
        row.get("excluded", ""),
    )
