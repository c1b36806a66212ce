"""Transforms: equivalent ways to write a program, by name, and the programs that they make of a case's own.

A build names the transform whose result the target gets to see. That program is derived from the case's own anew
wherever it is needed (campaign, reduction, bisection, script), by a pure function, so the two stay equivalent at every
step of a reduction, and whatever holds one build against another serves metamorphic testing as it is.

A transformed program gives what the case's own gives: outputs with the same names, in the same order. It may have
further outputs after them, which nobody compares, and it may be fed more than the case's own.
"""

from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

from miscompile.base.errors import ModelError, RejectedDraft, SpecError
from miscompile.base.plugins import Catalogue
from miscompile.base.specs import Spec, parse_options
from miscompile.core.case import Case, Feed, Program
from miscompile.graph.emit import emit
from miscompile.graph.model import Model
from miscompile.graph.program import to_program
from miscompile.graph.read import read
from miscompile.graph.specialise import folded, is_symbolic, specialised
from miscompile.ops.analysis import exact_outputs
from miscompile.transforms.kinds import Feeding, Fixing, Picking, Sited, Storing, Transform

_EXACT = "miscompile.transforms.exact"

TRANSFORMS: Catalogue[type[Any]] = Catalogue(
    "transform",
    "miscompile.transforms",
    type,
    {
        "functions": "miscompile.transforms.functions.transform:Functions",
        "egraph": "miscompile.transforms.egraph.transform:Saturated",
        "resist": "miscompile.transforms.resist.transform:Resistant",
        "constness": f"{_EXACT}.constness:Constness",
        "opened": f"{_EXACT}.feeding:Opened",
        "closed": f"{_EXACT}.feeding:Closed",
        "duplicate": f"{_EXACT}.duplicate:Duplicate",
        "merge": f"{_EXACT}.merge:Merge",
        "order": f"{_EXACT}.order:NodeOrder",
        "rename": f"{_EXACT}.rename:Rename",
        "inline": f"{_EXACT}.inline:Inline",
        "expand": f"{_EXACT}.expand:Expand",
        "wrap": f"{_EXACT}.wrap:Wrap",
        "taps": f"{_EXACT}.taps:Taps",
        "dead": f"{_EXACT}.dead:Dead",
        "identity": f"{_EXACT}.identity:Identity",
        "noidentity": f"{_EXACT}.identity:NoIdentity",
        "stored": f"{_EXACT}.storage:Storage",
    },
)
"""Transforms of ONNX models by name, each a class; other packages add theirs."""

_UNSPEAKABLE = frozenset("+,{}=")
"""What a spec cannot say within an option; places with such names are always changed."""

STATIC = Spec("static")
"""The transform in which every symbolic size is what it is fed: one program for each set of sizes."""

AGAIN = Spec("again")
"""The transform in which the program runs on every feed once more, in the opposite order; the later results count.

What is fed is the same memory both times: a program that writes to its inputs, or that remembers, gives itself away.
"""

ALTERING = frozenset({"splice"})
"""Transforms of adapters whose result computes something else than the case's own program, by name: both builds must
be of the same one."""

SEEDLESS = frozenset({STATIC, AGAIN})
"""Transforms without options."""


@dataclass(frozen=True, slots=True)
class Share:
    """A part of what a transformed case consists of: a case, and which feeds of the original it answers for.

    Where a feed of the original stands there twice, the last answer counts.
    """

    case: Case
    feeds: tuple[int, ...]


@lru_cache(4096)
def transform_of(spec: Spec) -> object:
    """Return the transform that `spec` names: one of `kinds`.

    Raises SpecError for an unknown name or option, UsageError for another package's transform that is broken.
    """
    if spec.name not in TRANSFORMS:
        known = ", ".join(sorted([*TRANSFORMS.usable(), *(one.name for one in SEEDLESS)]))
        raise SpecError(f"there is no transform '{spec.name}'; there are: {known}")
    transform: object = parse_options(TRANSFORMS.get(spec.name), dict(spec.options), str(spec))
    return transform


def present(case: Case, transform: Spec | None) -> tuple[Share, ...]:
    """Return what `transform` makes of `case`; the case as it is where the transform has nothing to say about it."""
    if transform is None:
        return (Share(case, _all(case)),)
    try:
        if transform == STATIC:
            return _static(case)
        if transform == AGAIN:
            order = (*_all(case), *reversed(_all(case)))
            return (Share(replace(case, feeds=tuple(case.feeds[place] for place in order)), order),)
        return _presented(case, transform)
    except (RejectedDraft, ModelError):
        return (Share(case, _all(case)),)


def is_own(transform: Spec | None) -> bool:
    """Tell whether `transform` is one that adapters apply themselves, in their compiler's own representation."""
    return transform is not None and transform not in SEEDLESS and transform.name not in TRANSFORMS


def alters(transform: Spec | None) -> bool:
    """Tell whether the program that `transform` makes computes something else than the case's own."""
    return transform is not None and transform.name in ALTERING


def with_noise(transform: Spec) -> Spec:
    """Return a transform that `alters`, with which the adapter computes with noise (`montecarlo.numbered`)."""
    return transform.with_options(noise="yes")


def may_be_refused(transform: Spec | None) -> bool:
    """Tell whether a compiler may refuse the transformed program although it takes the case's own.

    It may where the transform brings operators, or kinds of node, that the program does not have.
    """
    if transform is None or transform in SEEDLESS:
        return False
    return not is_own(transform) and transform.name != "functions"


def keeps_bits(transform: Spec | None) -> bool:
    """Tell whether the transformed program computes the very same values, so that exact outputs stay exact.

    A transform whose class depends on the model, as that of function bodies does, counts as one that rounds.
    """
    if transform is None or transform in SEEDLESS or is_own(transform):
        return True
    return getattr(transform_of(transform), "exactness", "bits") == "bits"


def exact_beside(case: Case, transform: Spec | None) -> frozenset[str]:
    """Return the outputs on which the case's own program and the transformed one agree to the bit on every compiler.

    Reassociated sums may leave the numbers in which arithmetic is exact although the original does not.
    """
    own = frozenset(port.name for port in case.program.outputs if port.exact)
    if not own or keeps_bits(transform):
        return own
    for share in present(case, transform):
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


def places_of(case: Case, transform: Spec | None) -> tuple[str, ...]:
    """Return the keys of the places that `transform` changes in `case`; none for one that is all or nothing."""
    if transform is None or transform in SEEDLESS or is_own(transform):
        return ()
    parsed = transform_of(transform)
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


def seeded(transform: Spec, seed: int) -> Spec:
    """Return `transform` with `seed` among its options; one that has no such option comes back as it is.

    A transform without that option draws nothing, so every build gets the same program from it. Raises UsageError for
    another package's transform that is broken.
    """
    if transform in SEEDLESS:
        return transform
    if transform.name in TRANSFORMS and "seed" not in {field.name for field in fields(TRANSFORMS.get(transform.name))}:
        return transform
    return transform.with_options(seed=str(seed))


def restricted(transform: Spec, places: tuple[str, ...]) -> Spec:
    """Return `transform` as one that changes a program in `places` only."""
    return transform.with_options(only="+".join(places))


def _all(case: Case) -> tuple[int, ...]:
    return tuple(range(len(case.feeds)))


def _presented(case: Case, transform: Spec) -> tuple[Share, ...]:
    parsed = transform_of(transform)
    if isinstance(parsed, Feeding):
        program, fed = _opened(case.program, transform)
        return (Share(replace(case, program=program, feeds=tuple(feed + fed for feed in case.feeds)), _all(case)),)
    if isinstance(parsed, Fixing):
        return tuple(_closed(case, parsed, place) for place in _all(case))
    return (Share(replace(case, program=_other(case.program, transform)), _all(case)),)


@lru_cache(64)
def _other(program: Program, transform: Spec) -> Program:
    """Return the transformed program; remembered, because triage asks for the same one again and again."""
    parsed = transform_of(transform)
    if isinstance(parsed, Storing):
        return replace(program, payload=parsed.apply_bytes(program.payload))
    assert isinstance(parsed, Transform)
    model = parsed.apply(read(program.payload))
    return _with_outputs(replace(program, payload=emit(model)), model)


@lru_cache(64)
def _opened(program: Program, transform: Spec) -> tuple[Program, Feed]:
    parsed = transform_of(transform)
    assert isinstance(parsed, Feeding)
    model, more = parsed.apply_with_feeds(read(program.payload))
    ports = {port.name: port for port in to_program(model).inputs}
    inputs = (*program.inputs, *(ports[name] for name, _ in more))
    return replace(program, payload=emit(model), inputs=inputs), tuple(value for _, value in more)


def _closed(case: Case, transform: Fixing, place: int) -> Share:
    """Return the program for one feed, with what is still fed."""
    names = [port.name for port in case.program.inputs]
    fed = dict(zip(names, case.feeds[place], strict=True))
    model = transform.apply_to_feed(read(case.program.payload), case.feeds[place])
    left = {info.name for info in model.graph.inputs} - model.graph.initializers.keys()
    inputs = tuple(port for port in case.program.inputs if port.name in left)
    program = replace(case.program, payload=emit(model), inputs=inputs)
    return Share(replace(case, program=program, feeds=(tuple(fed[port.name] for port in inputs),)), (place,))


def _with_outputs(program: Program, model: Model) -> Program:
    """Name the outputs that a transform has added at the end, so that adapters which return all of them can."""
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
