"""Transforms: rewritings of a program into an equivalent one, by name, and their application to cases.

A build names the transform whose result the target builds. A pure function derives that program from the case's own
program wherever it is needed (campaign, reduction, bisection, script). Both programs therefore remain equivalent in
every step of a reduction, and every oracle that compares two builds also serves metamorphic testing.

A transformed program has outputs with the same names and in the same order as the case's own program. It may have
further outputs after them, which no oracle compares, and further inputs.
"""

from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

from miscompile.base.errors import ModelError, RejectedDraft, SpecError
from miscompile.base.plugins import Catalogue
from miscompile.base.specs import Spec, parse_options
from miscompile.core.case import Case, Feed, Program
from miscompile.graph.emit import emit, to_program
from miscompile.graph.model import Model
from miscompile.graph.read import read
from miscompile.graph.specialise import folded, is_symbolic, specialised
from miscompile.ops.analysis import exact_outputs
from miscompile.targets.batching import BATCHED
from miscompile.targets.derivatives import derivative_of, rewritten_by
from miscompile.targets.registry import faces
from miscompile.transforms.kinds import Feeding, Fixing, Picking, Reforming, Sited, Storing, Transform

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
        "copies": "miscompile.transforms.copies:Copies",
        "form": "miscompile.transforms.forms.transform:OtherForm",
    },
)
"""Transforms of ONNX models by name, each a class; other packages add theirs."""

_UNSPEAKABLE = frozenset("+,{}=")
"""Characters that an option of a spec cannot contain; places with such names are always changed."""

STATIC = Spec("static")
"""The transform that replaces every symbolic size by its size in a feed: one program for each set of sizes."""

AGAIN = Spec("again")
"""The transform in which the program runs on every feed a second time, in reverse order; the later results count.

Both runs use the same memory for the inputs, which reveals a program that writes to its inputs or keeps state.
"""

FORM = "form"
"""The name of the transform that makes another call of the only one (`transforms/forms`)."""

UNEQUAL = frozenset({FORM, "copies"})
"""Transforms whose programs have other results: only an oracle that compares no values asks for them."""

SEEDLESS = frozenset({STATIC, AGAIN})
"""Transforms without options."""


OLDEST = 13
"""The oldest opset in whose forms transforms write operators. Older models have `PLAIN_CHANGES` alone."""

PLAIN_CHANGES = frozenset(
    {"constness", "opened", "closed", "duplicate", "merge", "order", "rename", "inline", "taps", "identity",
     "noidentity", "stored"}
)  # fmt: skip
"""Transforms that add no operators but those of the model, Constant and Identity."""


@dataclass(frozen=True, slots=True)
class Share:
    """One case of a transformed case, and the feeds of the original case whose results it provides.

    If a feed of the original occurs twice, the later result counts.
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
    """Return `case` after `transform`; the same case if the transform does not apply to it."""
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
    """Tell whether adapters apply `transform`, in their compiler's representation."""
    return transform is not None and transform not in SEEDLESS and transform.name not in TRANSFORMS


def alters(transform: Spec | None) -> bool:
    """Tell whether `transform` changes the results of the program: one of an adapter, or of one call.

    An oracle may then only compare builds with the same transform.
    """
    return transform is not None and transform.name in _altering()


@lru_cache(1)
def _altering() -> frozenset[str]:
    return frozenset((FORM, *(name for face in faces() for name in face.altering)))


def with_noise(transform: Spec) -> Spec:
    """Return a variant of a transform that `alters`, with which the adapter instruments the program with noise
    (`montecarlo.numbered`)."""
    return transform.with_options(noise="yes")


def may_be_refused(transform: Spec | None) -> bool:
    """Tell whether a compiler may refuse the transformed program although it accepts the case's own.

    It may if the transform adds operators or kinds of nodes that the program does not have. A transform whose programs
    every target that supports it must take says so in an attribute `may_be_refused`.
    """
    derivative = derivative_of(transform)
    if derivative is not None and derivative.mode == "adjoint":
        return True  # the reference is in forward mode, and not every operation can be transposed
    transform = rewritten_by(transform) or transform  # the derivative of such a program
    if transform is not None and transform.name == BATCHED:
        return True  # a library does not map every operation
    if transform is None or transform in SEEDLESS or is_own(transform):
        return False
    return bool(getattr(transform_of(transform), "may_be_refused", True))


def keeps_bits(transform: Spec | None) -> bool:
    """Tell whether the transformed program computes the same values to the bit, so that exact outputs remain exact.

    A transform whose exactness depends on the model, such as that of function bodies, counts as one that rounds.
    """
    if transform is None or transform in SEEDLESS or is_own(transform):
        return True
    return getattr(transform_of(transform), "exactness", "bits") == "bits"


def exact_beside(case: Case, transform: Spec | None) -> frozenset[str]:
    """Return the outputs that are equal to the bit in the case's own program and the transformed one, on every
    compiler.

    Reassociated sums may exceed the numbers in which arithmetic is exact although the original sums do not.
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
    """Return the keys of the places that `transform` changes in `case`; none for a transform without places."""
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
    """Return `transform`, restricted to change a program in `places` only."""
    return transform.with_options(only="+".join(places))


def _all(case: Case) -> tuple[int, ...]:
    return tuple(range(len(case.feeds)))


def _presented(case: Case, transform: Spec) -> tuple[Share, ...]:
    parsed = transform_of(transform)
    if isinstance(parsed, Feeding):
        program, fed = _opened(case.program, transform)
        return (Share(replace(case, program=program, feeds=tuple(feed + fed for feed in case.feeds)), _all(case)),)
    if isinstance(parsed, Reforming):
        model, feeds = parsed.apply_to_case(read(case.program.payload), case.feeds)
        return (Share(replace(case, program=to_program(model), feeds=feeds), _all(case)),)
    if isinstance(parsed, Fixing):
        return tuple(_closed(case, parsed, place) for place in _all(case))
    return (Share(replace(case, program=_other(case.program, transform)), _all(case)),)


@lru_cache(64)
def _other(program: Program, transform: Spec) -> Program:
    """Return the transformed program; cached, because triage needs the same one repeatedly."""
    parsed = transform_of(transform)
    if isinstance(parsed, Storing):
        return replace(program, payload=parsed.apply_bytes(program.payload))
    assert isinstance(parsed, Transform)
    model = parsed.apply(_young(read(program.payload), transform))
    return _with_outputs(replace(program, payload=emit(model)), model)


def _young(model: Model, transform: Spec) -> Model:
    """Return `model`. Raises RejectedDraft when it is too old for the operators that `transform` may add."""
    if model.opset < OLDEST and transform.name not in PLAIN_CHANGES:
        raise RejectedDraft(f"operators as in opset {OLDEST} do not fit a model of opset {model.opset}")
    return model


@lru_cache(64)
def _opened(program: Program, transform: Spec) -> tuple[Program, Feed]:
    parsed = transform_of(transform)
    assert isinstance(parsed, Feeding)
    model, more = parsed.apply_with_feeds(_young(read(program.payload), transform))
    ports = {port.name: port for port in to_program(model).inputs}
    inputs = (*program.inputs, *(ports[name] for name, _ in more))
    return replace(program, payload=emit(model), inputs=inputs), tuple(value for _, value in more)


def _closed(case: Case, transform: Fixing, place: int) -> Share:
    """Return the program for one feed, with the remaining inputs of that feed."""
    names = [port.name for port in case.program.inputs]
    fed = dict(zip(names, case.feeds[place], strict=True))
    model = transform.apply_to_feed(read(case.program.payload), case.feeds[place])
    left = {info.name for info in model.graph.inputs} - model.graph.initializers.keys()
    inputs = tuple(port for port in case.program.inputs if port.name in left)
    program = replace(case.program, payload=emit(model), inputs=inputs)
    return Share(replace(case, program=program, feeds=(tuple(fed[port.name] for port in inputs),)), (place,))


def _with_outputs(program: Program, model: Model) -> Program:
    """Name the outputs that a transform has appended, because some adapters return all outputs."""
    if len(model.graph.outputs) == len(program.outputs):
        return program
    added = to_program(model).outputs[len(program.outputs) :]
    return replace(program, outputs=(*program.outputs, *added))


def _static(case: Case) -> tuple[Share, ...]:
    """Return one case for each set of sizes in the feeds, in the order of first occurrence."""
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
