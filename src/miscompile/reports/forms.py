"""Issue forms: in which order, and under which headings, a target's project wants to read about a bug.

A target may have `issue_form.toml` beside its `about.py`:

title = "[Graph optimizer] {title}"       # {title} is the one that this package makes
compile = "`InferenceSession(...)`"       # what a user calls to compile a model, and to run it
run = "`InferenceSession.run`"
missing = "creating an InferenceSession raises RuntimeError"   # what a user sees where an output is missing

[[section]]
heading = "Describe the issue"
parts = ["summary", "message", "values"]  # names of parts; a section without any text is left out

[[section]]
heading = "Platform"
text = "Linux"                            # stands before the parts
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from miscompile.base.errors import SpecError
from miscompile.targets.registry import parse_target

FILE = "issue_form.toml"
PARTS = ("summary", "message", "values", "cause", "boundary", "alike", "script", "environment", "regression", "known")
"""The parts of an issue; everything else about a finding is in the folded details at the end."""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading of an issue with a fixed text and parts of the report below it."""

    heading: str
    parts: tuple[str, ...] = ()
    text: str = ""


_PLAIN = (
    Section("What happens", ("summary", "message", "values", "regression", "known")),
    Section("Cause", ("cause", "boundary", "alike")),
    Section("To reproduce", ("script",)),
    Section("Environment", ("environment",)),
)


@dataclass(frozen=True, slots=True)
class IssueForm:
    """The form of one project."""

    title: str = "[{target}] {title}"
    compile: str = "compilation"
    run: str = "execution"
    missing: str = "an output is missing"
    sections: tuple[Section, ...] = field(default=_PLAIN)


@cache
def form_of(target: str) -> IssueForm:
    """Return the issue form of the target that a spec names; the plain one for a target without a form.

    Raises SpecError for a form that cannot be read, or that names an unknown part.
    """
    try:
        package = parse_target(target).about.package
    except SpecError:  # a store may hold findings of a target that is not installed any more
        return IssueForm()
    place = files(package).joinpath(FILE)
    if not place.is_file():
        return IssueForm()
    try:
        return _form(tomllib.loads(place.read_text("utf-8")))
    except (OSError, tomllib.TOMLDecodeError, TypeError, KeyError, ValueError) as error:
        raise SpecError(f"{FILE} of {package} cannot be read: {error}") from None


def _form(data: Mapping[str, Any]) -> IssueForm:
    sections = tuple(
        Section(one["heading"], tuple(one.get("parts", ())), one.get("text", "").strip()) for one in data["section"]
    )
    unknown = {part for section in sections for part in section.parts} - set(PARTS)
    if unknown:
        raise ValueError(f"unknown parts {sorted(unknown)}; there are {', '.join(PARTS)}")
    texts = {key: str(value) for key, value in data.items() if key != "section"}
    return IssueForm(**texts, sections=sections)
