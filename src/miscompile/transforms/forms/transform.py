"""Other forms of one call: with an operand fed, constant or left out, of another rank or size, without an attribute.

The results of another form are others. So this is no equivalent program, and no oracle compares its values: the oracle
of forms asks whether a compiler that refuses a call takes the same operator, with the same element types, in a form
beside it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from onnx import defs

from miscompile.base.errors import ModelError, RejectedDraft, SpecError
from miscompile.base.specs import Spec
from miscompile.core.case import Case, Feed
from miscompile.graph.model import Model, TensorType
from miscompile.graph.read import read
from miscompile.ops.registry import schema
from miscompile.transforms.catalogue import FORM
from miscompile.transforms.forms.call import CallForm, call_form, program_of
from miscompile.transforms.forms.changes import CHANGES

_GOALS = (1, 2, 3, 4, 8)
"""Sizes that are tried in place of each size."""

_MOST_SIZES = 4
"""Different sizes of a call that are changed at most."""


@dataclass(frozen=True, slots=True)
class OtherForm:
    """The transform `form{change=CHANGE, of=WHAT}`: changes the call in one respect.

    | change | of | the call gets |
    |---|---|---|
    | `constant`, `fed` | number of an operand | the operand as a constant, or as an input |
    | `ones` | number of an operand | ones in an operand that holds sizes or settings |
    | `omitted` | number of an operand | no such operand, which is optional |
    | `default` | attribute | no such attribute |
    | `more`, `less` | attribute | an integer that is one more, or one less |
    | `deeper`, `flatter` | | operands of one axis more, or one axis less |
    | `wider`, `narrower` | | a window of one axis more, or one axis less |
    | `resized` | `3to4` | 4 in place of the size 3, wherever it occurs |
    """

    may_be_refused: ClassVar[bool] = True

    change: str = "deeper"
    of: str = ""

    def __post_init__(self) -> None:
        """Raise SpecError for an unknown change."""
        if self.change not in CHANGES:
            raise SpecError(f"there is no change '{self.change}' of a call; there are: {', '.join(CHANGES)}")

    def apply_to_case(self, model: Model, feeds: Sequence[Feed]) -> tuple[Model, tuple[Feed, ...]]:
        """Return the model and the feeds of the other form.

        Raises RejectedDraft when the change does not apply, or changes an element type; ModelError when the result
        breaks the operator's rules.
        """
        before = call_form(model, feeds)
        after = CHANGES[self.change](before, self.of)
        if after.values and not after.fed:
            raise RejectedDraft("a call of constants is folded, which says nothing about its kernel")
        changed, other = program_of(after)
        if _dtypes(changed) != _dtypes(program_of(before)[0]):
            raise RejectedDraft("another element type")
        return changed, other


def forms_of(case: Case) -> tuple[tuple[Spec, ...], ...]:
    """Return the other forms of the call in `case`, in steps: operands and attributes, then ranks, then sizes.

    Each is the spec of a transform that applies to `case`. There are none for a program of several operators.
    """
    try:
        model = read(case.program.payload) if case.program.kind == "onnx" else None
        call = None if model is None else call_form(model, case.feeds)
    except (RejectedDraft, ModelError):
        return ()
    if model is None or call is None:
        return ()
    ranks = tuple((change, "") for change in ("deeper", "flatter", "wider", "narrower"))
    steps = (tuple(_of_parts(call)), ranks, tuple(_of_sizes(call)))
    return tuple(
        tuple(
            Spec(FORM).with_options(change=change, **({"of": of} if of else {}))
            for change, of in step
            if _applies(OtherForm(change, of), model, case)
        )
        for step in steps
    )


def described(form: Spec, case: Case) -> str:
    """Return what another form of the call in `case` has, in words: `axes as a constant`."""
    options = dict(form.options)
    change, of = options["change"], options.get("of", "")
    call = call_form(read(case.program.payload), case.feeds)
    part = f"`{call.parameter(int(of))}`" if of.isdigit() else f"`{of}`"
    old, _, new = of.partition("to")
    return {
        "constant": f"{part} as a constant",
        "fed": f"{part} as an input",
        "ones": f"ones in {part}",
        "omitted": f"{part} left out",
        "default": f"{part} left out",
        "more": f"{part} one more",
        "less": f"{part} one less",
        "deeper": "one axis more",
        "flatter": "one axis less",
        "wider": "one axis more in its window",
        "narrower": "one axis less in its window",
        "resized": f"size {new} in place of {old}",
    }[change]


def _applies(form: OtherForm, model: Model, case: Case) -> bool:
    try:
        form.apply_to_case(model, case.feeds)
    except (RejectedDraft, ModelError):
        return False
    return True


def _of_parts(call: CallForm) -> Iterator[tuple[str, str]]:
    seen = set[str]()
    for place, name in enumerate(call.node.inputs):
        if not name or name in seen:
            continue
        seen.add(name)
        yield ("constant" if name in call.fed else "fed"), str(place)
        yield "omitted", str(place)
        if name in call.structural:
            yield "ones", str(place)
    for name, attribute in call.node.attributes.items():
        yield "default", name
        if attribute.kind == "int":
            yield from (("more", name), ("less", name))


def _of_sizes(call: CallForm) -> Iterator[tuple[str, str]]:
    sizes = sorted({size for name in call.data for size in call.values[name][0].shape})
    for size in sizes[:_MOST_SIZES]:
        yield from (("resized", f"{size}to{goal}") for goal in _GOALS if goal != size)


def _dtypes(model: Model) -> list[str]:
    """Return the element types of the operands and results of the only call, by its places."""
    graph = model.graph
    types = {info.name: info.type for info in (*graph.inputs, *graph.outputs)}
    known = {name: kind.dtype for name, kind in types.items() if isinstance(kind, TensorType)}
    known |= {name: value.dtype for name, value in graph.initializers.items()}
    node = graph.nodes[0]
    return [known[name] for name in (*sorted(set(filter(None, node.inputs)) & _kept(model)), *node.outputs) if name]


def _kept(model: Model) -> set[str]:
    """Return the operands whose element types decide which kernel runs: those that are not optional."""
    node = model.graph.nodes[0]
    form = schema(node.op, model.opset)
    optional = defs.OpSchema.FormalParameterOption.Optional
    formals = form.inputs if form is not None else ()
    return {
        name
        for place, name in enumerate(node.inputs)
        if not formals or formals[min(place, len(formals) - 1)].option != optional
    }
