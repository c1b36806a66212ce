"""The locations of each compiler's own tests of a library's operators, and the ways to count them.

Each target lists them in `tests.toml`. Paths there are those of the repositories in 2026, with older ones beside them
where an older checkout is counted as well.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from miscompile.base.errors import SpecError, UsageError
from miscompile.migration.ranking import counting
from miscompile.migration.ranking.checkout import Checkout
from miscompile.targets.registry import faces, load_attribute

Included = Callable[[str], bool]
"""Tells whether a case of onnx's own suite of node tests is run, by its name."""


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
                uses.update(counting.keras_in_python(text, name, excluded))
            else:
                uses.update(part.count(text, name))
    if not uses:
        raise UsageError(f"{checkout.path} has none of the tests that are counted; is it {recipe.repository}?")
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
    """Return the recipes by compiler and library, read from `tests.toml` beside each target's `about.py`.

    Several recipes are for several repositories, whose counts are added. Raises SpecError for a malformed file.
    """
    found: dict[tuple[str, str], tuple[Recipe, ...]] = {}
    for face in faces():
        file = files(face.package).joinpath("tests.toml")
        for row in tomllib.loads(file.read_text("utf-8"))["recipe"] if file.is_file() else ():
            try:
                key = (face.name, row["library"])
                found[key] = (*found.get(key, ()), _recipe(row))
            except (KeyError, TypeError, AttributeError) as error:
                raise SpecError(f"tests.toml of {face.package} is malformed: {error}") from None
    return found


def _recipe(row: Mapping[str, Any]) -> Recipe:
    """Return one entry; `count` names a function of `counting`, `reader` is a path `module:function`."""
    parts = tuple(Part(part["files"], getattr(counting, part["count"])) for part in row["parts"])
    suite = row.get("suite")
    return Recipe(
        row["repository"],
        parts,
        None if suite is None else Suite(suite["file"], load_attribute(suite["reader"])),
        row.get("excluded", ""),
    )
