"""Forms: equivalent ways to present a program to a compiler, by name.

A build names the form in which the target gets to see the program. The presented program is derived from the case's
own anew wherever it is needed (campaign, reduction, bisection, script), by a pure function, so the two stay equivalent
at every step of a reduction, and whatever holds one build against another serves metamorphic testing as it is.
"""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Protocol

from miscompile.base.errors import ModelError, RejectedDraft, SpecError
from miscompile.base.specs import parse_options, split_spec
from miscompile.core.case import Case, Program
from miscompile.graph.emit import emit
from miscompile.graph.model import Model
from miscompile.graph.read import read


class Form(Protocol):
    """A rewriting that keeps the meaning; a frozen dataclass whose fields are its options."""

    def apply(self, model: Model) -> Model:
        """Return an equivalent model with the same inputs and outputs: the same one for the same model and options.

        Raises RejectedDraft when the model has nothing that this form could present otherwise.
        """
        ...


FORMS: Mapping[str, str] = {
    "functions": "miscompile.equivalence.functions:Functions",
}
"""Forms of ONNX models: name and class."""

STATIC = "static"
"""The form in which every symbolic size is what it is fed: one program for each set of sizes."""


@dataclass(frozen=True, slots=True)
class Share:
    """A part of what a presented case consists of: a case, and which feeds of the original it answers for."""

    case: Case
    feeds: tuple[int, ...]


def parse_form(text: str) -> Form:
    """Return the form that `text` names. Raises SpecError for an unknown name or option."""
    name, options = split_spec(text)
    if name not in FORMS:
        raise SpecError(f"there is no form '{name}'; there are: {', '.join(sorted([*FORMS, STATIC]))}")
    module, _, attribute = FORMS[name].partition(":")
    kind: type[Any] = getattr(importlib.import_module(module), attribute)
    form: Form = parse_options(kind, options, text)
    return form


def present(case: Case, form: str) -> tuple[Share, ...]:
    """Return `case` as `form` presents it; as it is where the form has nothing to say about it."""
    try:
        if form == STATIC:
            return _static(case)
        program = _presented(case.program, form)
    except (RejectedDraft, ModelError):
        program = case.program
    return (Share(replace(case, program=program), tuple(range(len(case.feeds)))),)


@lru_cache(64)
def _presented(program: Program, form: str) -> Program:
    """Return `program` in another form; remembered, because triage asks for the same one again and again."""
    model = parse_form(form).apply(read(program.payload))
    return replace(program, payload=emit(model))


def _static(case: Case) -> tuple[Share, ...]:
    """Return one case for each set of sizes that is fed, in the order in which they first appear."""
    from miscompile.equivalence.static import specialise

    groups: dict[tuple[tuple[int, ...], ...], list[int]] = {}
    for place, feed in enumerate(case.feeds):
        groups.setdefault(tuple(value.shape for value in feed), []).append(place)
    shares = []
    for places in groups.values():
        program = specialise(case.program, case.feeds[places[0]])
        feeds = tuple(case.feeds[place] for place in places)
        shares.append(Share(Case(program, feeds, case.recipe), tuple(places)))
    return tuple(shares)
