"""Forms: equivalent ways to present a program to a compiler, by name.

A build names the form in which the target gets to see the program. The presented program is derived from the case's
own anew wherever it is needed (campaign, reduction, bisection, script), by a pure function, so the two stay equivalent
at every step of a reduction, and whatever holds one build against another serves metamorphic testing as it is.

A presented program gives what the case's own gives: outputs with the same names, in the same order. It may have further
outputs after them, which nobody compares, and it may be fed more than the case's own.
"""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from miscompile.base.errors import ModelError, RejectedDraft, SpecError
from miscompile.base.specs import parse_options, split_spec
from miscompile.core.case import Case, Feed, Program
from miscompile.graph.emit import emit
from miscompile.graph.model import Model
from miscompile.graph.program import to_program
from miscompile.graph.read import read
from miscompile.graph.specialise import folded, is_symbolic, specialised
from miscompile.ops.analysis import exact_outputs
from miscompile.transforms.form_kinds import Feeding, Fixing, Form, Picking, Sited, Storing

_EXACT = "miscompile.transforms.exact"

FORMS: Mapping[str, str] = {
    "functions": "miscompile.transforms.functions.transform:Functions",
    "egraph": "miscompile.transforms.egraph.form:Saturated",
    "resist": "miscompile.transforms.resist.form:Resistant",
    "constness": f"{_EXACT}.constness:Constness",
    "opened": f"{_EXACT}.feeding:Opened",
    "closed": f"{_EXACT}.feeding:Closed",
    "duplicate": f"{_EXACT}.duplicate:Duplicate",
    "merge": f"{_EXACT}.merge:Merge",
    "order": f"{_EXACT}.order:Order",
    "rename": f"{_EXACT}.rename:Rename",
    "inline": f"{_EXACT}.inline:Inline",
    "expand": f"{_EXACT}.expand:Expand",
    "wrap": f"{_EXACT}.wrap:Wrap",
    "taps": f"{_EXACT}.taps:Taps",
    "dead": f"{_EXACT}.dead:Dead",
    "identity": f"{_EXACT}.identity:Identity",
    "noidentity": f"{_EXACT}.identity:NoIdentity",
    "stored": f"{_EXACT}.storage:Stored",
}
"""Forms of ONNX models: name and class."""

_UNSPEAKABLE = frozenset("+,{}=")
"""What a spec cannot say within an option; places with such names are always changed."""

STATIC = "static"
"""The form in which every symbolic size is what it is fed: one program for each set of sizes."""


AGAIN = "again"
"""The form in which the program runs on every feed once more, in the opposite order; the later results count.

What is fed is the same memory both times: a program that writes to its inputs, or that remembers, gives itself away.
"""

ALTERING = frozenset({"splice"})
"""Forms of adapters that compute something else than the case's own program: both builds must be of the same form."""

SEEDLESS = frozenset({STATIC, AGAIN})
"""Forms without options."""


@dataclass(frozen=True, slots=True)
class Share:
    """A part of what a presented case consists of: a case, and which feeds of the original it answers for.

    Where a feed of the original stands there twice, the last answer counts.
    """

    case: Case
    feeds: tuple[int, ...]


def parse_form(text: str) -> object:
    """Return the form that `text` names: one of `form_kinds`. Raises SpecError for an unknown name or option."""
    name, options = split_spec(text)
    if name not in FORMS:
        raise SpecError(f"there is no form '{name}'; there are: {', '.join(sorted([*FORMS, *SEEDLESS]))}")
    module, _, attribute = FORMS[name].partition(":")
    kind: type[Any] = getattr(importlib.import_module(module), attribute)
    form: object = parse_options(kind, options, text)
    return form


def present(case: Case, form: str) -> tuple[Share, ...]:
    """Return `case` as `form` presents it; as it is where the form has nothing to say about it."""
    if not form:
        return (Share(case, _all(case)),)
    try:
        if form == STATIC:
            return _static(case)
        if form == AGAIN:
            order = (*_all(case), *reversed(_all(case)))
            return (Share(replace(case, feeds=tuple(case.feeds[place] for place in order)), order),)
        return _presented(case, form)
    except (RejectedDraft, ModelError):
        return (Share(case, _all(case)),)


def is_own(form: str) -> bool:
    """Tell whether `form` is one that adapters present themselves, in their compiler's own representation."""
    return bool(form) and form not in SEEDLESS and split_spec(form)[0] not in FORMS


def alters(form: str) -> bool:
    """Tell whether the program that `form` presents computes something else than the case's own."""
    return form.partition("{")[0].strip() in ALTERING


def with_noise(form: str) -> str:
    """Return the spec of a form that `alters`, with which the adapter computes with noise (`montecarlo.numbered`)."""
    name, options = split_spec(form)
    return f"{name}{{{', '.join(f'{key}={value}' for key, value in {**options, 'noise': 'yes'}.items())}}}"


def may_be_refused(form: str) -> bool:
    """Tell whether a compiler may refuse the presented program although it takes the case's own.

    So it is where a form brings operators, or kinds of node, that the program does not have.
    """
    return bool(form) and form not in SEEDLESS and not is_own(form) and split_spec(form)[0] != "functions"


def keeps_bits(form: str) -> bool:
    """Tell whether the program that `form` presents computes the very same values, so that exact outputs stay exact.

    A form whose class depends on the model, as that of function bodies does, counts as one that rounds.
    """
    return not form or form in SEEDLESS or is_own(form) or getattr(parse_form(form), "exactness", "bits") == "bits"


def exact_beside(case: Case, form: str) -> frozenset[str]:
    """Return the outputs on which the case's own program and the presented one agree to the bit on every compiler.

    Reassociated sums may leave the numbers in which arithmetic is exact although the original does not.
    """
    own = frozenset(port.name for port in case.program.outputs if port.exact)
    if not own or keeps_bits(form):
        return own
    for share in present(case, form):
        for feed in share.case.feeds:
            own &= _exact(share.case.program, feed)
    return own


def _exact(program: Program, feed: Feed) -> frozenset[str]:
    names = [port.name for port in program.inputs]
    fed = dict(zip(names, feed, strict=True))
    model = read(program.payload)
    if is_symbolic(program.inputs):
        model = folded(specialised(model, {name: value.shape for name, value in fed.items()}))
    return exact_outputs(model, fed)


def places_of(case: Case, form: str) -> tuple[str, ...]:
    """Return the keys of the places that `form` changes in `case`; none for a form that is all or nothing."""
    parsed = parse_form(form) if form and form not in SEEDLESS and not is_own(form) else None
    places: tuple[str, ...] = ()
    try:
        if isinstance(parsed, Storing):
            places = parsed.places_of_bytes(case.program.payload)
        elif isinstance(parsed, Sited):
            places = parsed.places(read(case.program.payload))
        picked = parsed.picked(places) if places and isinstance(parsed, Picking) else frozenset(places)
    except (RejectedDraft, ModelError):
        return ()
    return tuple(place for place in places if place in picked and _UNSPEAKABLE.isdisjoint(place))


def restricted(form: str, places: tuple[str, ...]) -> str:
    """Return the spec of `form` that changes a program in `places` only."""
    name, options = split_spec(form)
    shown = {**options, "only": "+".join(places)}
    return f"{name}{{{', '.join(f'{key}={value}' for key, value in shown.items())}}}"


def _all(case: Case) -> tuple[int, ...]:
    return tuple(range(len(case.feeds)))


def _presented(case: Case, form: str) -> tuple[Share, ...]:
    parsed = parse_form(form)
    if isinstance(parsed, Feeding):
        program, fed = _opened(case.program, form)
        return (Share(replace(case, program=program, feeds=tuple(feed + fed for feed in case.feeds)), _all(case)),)
    if isinstance(parsed, Fixing):
        return tuple(_closed(case, parsed, place) for place in _all(case))
    return (Share(replace(case, program=_other(case.program, form)), _all(case)),)


@lru_cache(64)
def _other(program: Program, form: str) -> Program:
    """Return `program` in another form; remembered, because triage asks for the same one again and again."""
    parsed = parse_form(form)
    if isinstance(parsed, Storing):
        return replace(program, payload=parsed.apply_bytes(program.payload))
    assert isinstance(parsed, Form)
    model = parsed.apply(read(program.payload))
    return _with_outputs(replace(program, payload=emit(model)), model)


@lru_cache(64)
def _opened(program: Program, form: str) -> tuple[Program, Feed]:
    parsed = parse_form(form)
    assert isinstance(parsed, Feeding)
    model, more = parsed.apply_with_feeds(read(program.payload))
    ports = {port.name: port for port in to_program(model).inputs}
    inputs = (*program.inputs, *(ports[name] for name, _ in more))
    return replace(program, payload=emit(model), inputs=inputs), tuple(value for _, value in more)


def _closed(case: Case, form: Fixing, place: int) -> Share:
    """Return the program for one feed, with what is still fed."""
    names = [port.name for port in case.program.inputs]
    fed = dict(zip(names, case.feeds[place], strict=True))
    model = form.apply_to_feed(read(case.program.payload), case.feeds[place])
    left = {info.name for info in model.graph.inputs} - model.graph.initializers.keys()
    inputs = tuple(port for port in case.program.inputs if port.name in left)
    program = replace(case.program, payload=emit(model), inputs=inputs)
    return Share(replace(case, program=program, feeds=(tuple(fed[port.name] for port in inputs),)), (place,))


def _with_outputs(program: Program, model: Model) -> Program:
    """Name the outputs that a form has added at the end, so that adapters which return all of them can."""
    if len(model.graph.outputs) == len(program.outputs):
        return program
    added = to_program(model).outputs[len(program.outputs) :]
    return replace(program, outputs=(*program.outputs, *added))


def _static(case: Case) -> tuple[Share, ...]:
    """Return one case for each set of sizes that is fed, in the order in which they first appear."""
    from miscompile.transforms.static import specialise

    groups: dict[tuple[tuple[int, ...], ...], list[int]] = {}
    for place, feed in enumerate(case.feeds):
        groups.setdefault(tuple(value.shape for value in feed), []).append(place)
    shares = []
    for places in groups.values():
        program = specialise(case.program, case.feeds[places[0]])
        feeds = tuple(case.feeds[place] for place in places)
        shares.append(Share(Case(program, feeds, case.recipe), tuple(places)))
    return tuple(shares)
